"""The flags of the command without a name, as one value with types, and what they mean to the engine."""

from __future__ import annotations

import os
from collections.abc import Collection, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, TypeGuard

from dflash_tui.core.attachments.attachment import Attachment
from dflash_tui.core.attachments.attachment_reader import read_file
from dflash_tui.core.exit_codes import ExitCode
from dflash_tui.core.race.lanes import LOOKUP
from dflash_tui.core.settings.addresses import address_named, address_of, is_address, looks_like_host
from dflash_tui.core.settings.config import Config, Gauges
from dflash_tui.core.settings.decoding import SETTINGS, of_flags
from dflash_tui.core.settings.servers import Dialect
from dflash_tui.core.settings.system import read_system
from dflash_tui.core.source import Feature, Wanted
from dflash_tui.sources import Target
from engine.commands import (
    AUTO,
    BUNDLED,
    DFLASH,
    MTP,
    NO_DRAFTER,
    AttentionBackend,
    EngineOptions,
    GenerationSettings,
    WeightChoice,
)

from ..headless.answer import OutputFormat, WhenFull
from ..problems import Problem, value_problem

ENGINE_TOPICS = ("models",)
"""The topics of the flags that only the engine of this program takes."""
MEANT = (BUNDLED, DFLASH, MTP, NO_DRAFTER)
"""Words that may stand in the place of a model's name."""


def wanted_by(typed: Collection[str]) -> Wanted:
    """The features that flags were typed for, of those that a source may lack."""
    flags: dict[Feature, str] = {"system": "system", **{setting.name: setting.flag for setting in SETTINGS}}
    return {feature: f"--{name.replace('_', '-')}" for feature, name in flags.items() if name in typed}


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
    files: tuple[str, ...]
    force: bool
    when_full: WhenFull
    timeout: float | None
    settings: GenerationSettings
    """The settings of decoding, each of which has a flag."""
    device: str
    weights: WeightChoice
    draft: str | None
    context: int | None
    offline: bool
    server: str | None
    dialect: Dialect | None
    attention_backend: AttentionBackend
    out: Path | None
    latest: bool
    resume: str | None
    """The conversation to go on with, by its ID; empty: choose it in the chat."""
    trace: Path | None
    no_history: bool
    theme: str | None
    ascii: bool
    reduced_motion: bool
    no_mouse: bool
    rendered: bool
    gauges: Gauges
    plain: bool

    @classmethod
    def of(cls, values: dict[str, Any]) -> Flags:
        """The flags out of click's values, with the system prompt itself in the place of its file's name. Raises
        :class:`Problem` for one out of range, and ``AttachmentError``."""
        flags = {setting.flag for setting in SETTINGS}
        try:
            settings = GenerationSettings(**of_flags(values))
        except ValueError as error:
            raise value_problem(error, f"Choose a value in that range; {HELP_HINT}") from error
        given = {name: value for name, value in values.items() if name not in flags}
        if given["system"] is not None:
            given["system"] = read_system(given["system"])
        return cls(settings=settings, **given)

    def engine_options(self) -> EngineOptions:
        """What the engine is started with. Raises :class:`Problem` for a model's name that can only be a question."""
        model = self.model
        if model is not None and any(map(str.isspace, model)) and not os.path.exists(model):
            raise Problem(f"There is no model called {model!r}.", f'If this is a question: dflash-chat -p "{model}"')
        if model is not None and looks_like_host(model) and not os.path.exists(model):
            hint = f"A server's address begins with http:// or https://: dflash-chat http://{model}"
            raise Problem(f"There is no model called {model!r}.", hint)
        if self.draft == LOOKUP and not os.path.exists(LOOKUP):
            hint = f"To have drafts looked up in the text so far: --draft-by {LOOKUP}"
            raise Problem(f"There is no drafter called {LOOKUP!r}.", hint, ExitCode.WEIGHTS)
        _check_names(model, self.draft)
        return EngineOptions(
            model,
            # A drafter that is never asked would take seconds and gigabytes.
            self.draft if self.settings.uses_drafter else NO_DRAFTER,
            self.device,
            self.context,
            self.offline,
            self.attention_backend,
            weights=self.weights,
            time_rounds=self.settings.block_size == AUTO,
        )

    def target(self, given: Collection[str], of_engine: Collection[str], config: Config) -> Target:
        """What is to answer; ``given``: the flags that were typed, ``of_engine``: those of them that no server takes.
        Raises :class:`Problem` and ``ServerError``."""
        named = self.server is not None and ("server" in given or "model" not in given)
        if named and "model" in given:
            raise Problem("MODEL and --server both say what is to answer.", "Leave one of them out.")
        if not named and not is_address(self.model):
            if "dialect" in given:
                raise Problem("--dialect is a server's, and there is none.", "Name one: dflash-chat http://host:8000")
            return self.engine_options()
        for name in of_engine:
            flag = f"--{name.replace('_', '-')}"
            why = "is for the engine of this program; a server chose that when it was started."
            raise Problem(f"{flag} {why}", f"Leave {flag} out.")
        if named:
            return address_named(str(self.server), config, self.dialect)
        return address_of(str(self.model), self.dialect)

    def output_format(self) -> OutputFormat:
        """The format that the flags ask for. Raises :class:`Problem` for two at once."""
        wanted: dict[OutputFormat, bool] = {
            "code": self.extract, "json": self.as_json, "events": self.stream_json,
        }  # fmt: skip
        chosen = [form for form, flag in wanted.items() if flag]
        if len(chosen) > 1:
            raise Problem("--extract, --json and --stream-json exclude each other.", "Choose one of them.")
        return chosen[0] if chosen else "text"


def _check_names(model: str | None, drafter: str | None) -> None:
    """Raise ``WeightsFailure`` for names that no model has, before torch is imported or a screen opened."""

    def is_a_name(name: str | None) -> TypeGuard[str]:
        return not (name is None or name in MEANT)

    if not (is_a_name(model) or is_a_name(drafter)):
        return  # as most starts: what is imported here are the configs of all families
    from engine.hub.pairs import INSTEAD_OF_DRAFTER, INSTEAD_OF_TARGET, check_name

    for name, instead in ((model, INSTEAD_OF_TARGET), (drafter, INSTEAD_OF_DRAFTER)):
        if is_a_name(name):
            check_name(name, instead)


def attached_files(names: Sequence[str]) -> tuple[Attachment, ...]:
    """The files of ``--file``. Raises ``AttachmentError``, and :class:`Problem` for stdin and for no name."""
    if "-" in names:
        raise Problem("--file takes files.", "What is piped in goes with the prompt by itself.")
    if "" in names:  # which a path would read as the current folder
        raise Problem("The name of the file behind --file is empty.", "Name a file, or leave the flag out.")
    return tuple(read_file(Path(name)) for name in names)
