"""The flags of the command without a name, as one value with types, and what they mean to the engine."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from engine.commands import AUTO, AttentionBackend, BlockSize, EngineOptions, GenerationSettings, WeightChoice
from engine.hub.pairs import NO_DRAFTER

from .headless import OutputFormat
from .problems import Problem, value_problem

HELP_HINT = "dflash-chat --help and dflash-chat help list the flags."


@dataclass(frozen=True, slots=True, kw_only=True)
class Flags:
    """A field per flag, by the name that click gives its value; ``cli/chat.py`` says what each does."""

    model: str | None
    prompt: str | None
    output: Path | None
    extract: bool
    save_dir: Path | None
    as_json: bool
    stream_json: bool
    system: str | None
    timeout: float | None
    no_speculation: bool
    thinking: bool
    block_size: BlockSize
    temperature: float
    top_p: float
    top_k: int
    seed: int
    max_new_tokens: int
    device: str
    weights: WeightChoice
    draft: str | None
    context: int | None
    offline: bool
    attention_backend: AttentionBackend
    draft_attention_backend: AttentionBackend
    noise_embed_scale: float | None
    out: Path | None
    latest: bool
    resume: str | None
    """Empty: choose in the chat."""
    trace: Path | None
    no_history: bool
    theme: str | None
    ascii: bool
    reduced_motion: bool
    no_mouse: bool
    plain: bool

    def engine_options(self) -> EngineOptions:
        """Raises :class:`Problem` for a model's name that can only be a question."""
        model = self.model
        if model is not None and any(map(str.isspace, model)) and not Path(model).exists():
            raise Problem(f"There is no model called {model!r}.", f'If this is a question: dflash-chat -p "{model}"')
        return EngineOptions(
            model,
            # Without speculation a drafter would take seconds and gigabytes, and draft nothing.
            NO_DRAFTER if self.no_speculation else self.draft,
            self.device,
            self.context,
            self.offline,
            self.attention_backend,
            self.draft_attention_backend,
            self.noise_embed_scale,
            self.weights,
            time_rounds=self.block_size == AUTO,
        )

    def settings(self) -> GenerationSettings:
        """Raises :class:`Problem` for a value out of range."""
        try:
            return GenerationSettings(
                self.block_size,
                self.temperature,
                self.top_p,
                self.top_k,
                self.seed,
                self.max_new_tokens,
                speculation=not self.no_speculation,
                thinking=self.thinking,
            )
        except ValueError as error:
            raise value_problem(error, f"Choose a value in that range; {HELP_HINT}") from error

    def output_format(self) -> OutputFormat:
        """Raises :class:`Problem` for two formats at once."""
        wanted: dict[OutputFormat, bool] = {
            "code": self.extract, "json": self.as_json, "events": self.stream_json,
        }  # fmt: skip
        chosen = [form for form, flag in wanted.items() if flag]
        if len(chosen) > 1:
            raise Problem("--extract, --json and --stream-json exclude each other.", "Choose one of them.")
        return chosen[0] if chosen else "text"
