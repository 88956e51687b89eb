"""The events: everything the engine tells a front end, its logs and its JSON. Standard library only, so a front end
draws its first frame before torch is loaded. Statistics are named as in vLLM and aiperf; *acceptance length* counts the
bonus token. ``None`` is what a source doesn't know. Probabilities come in 1/1000 and milliseconds in 1/1000
(:func:`rounded`), so that they can be stored exactly in few bytes."""

from __future__ import annotations

from dataclasses import asdict, dataclass, field, fields
from typing import Any, Literal, get_args

from .commands import CallSyntax, Method
from .rounds.step import (
    MICROSECONDS,
    PROBABILITY_STEPS,
    Channel,
    DraftSource,
    DraftToken,
    EmittedToken,
    Match,
    Step,
    TreeToken,
    Verdict,
    WidthChoice,
    accepted_in,
    rounded,
    sources_in,
)

__all__ = [
    "MICROSECONDS",
    "PROBABILITY_STEPS",
    "Channel",
    "Clock",
    "DraftSource",
    "DraftToken",
    "EmittedToken",
    "EngineError",
    "EngineReady",
    "ErrorKind",
    "Event",
    "FinishReason",
    "LoadProgress",
    "Match",
    "Notice",
    "PrefillDone",
    "SourceStatistics",
    "Step",
    "TreeToken",
    "TurnFinished",
    "TurnStarted",
    "TurnStatistics",
    "Verdict",
    "WidthChoice",
    "accepted_in",
    "event_from_dict",
    "event_to_dict",
    "rounded",
    "shortened",
    "sources_in",
    "statistics_from_dict",
]  # fmt: skip

FinishReason = Literal["stop", "length", "context", "stopped", "error"]
"""Why a turn ended: the model said so, ``max_new_tokens``, the context is full, the user stopped it, or an error."""

ErrorKind = Literal["usage", "weights", "device", "generation", "server"]
"""What was at fault. ``server`` is one that can't be reached, refuses, or sends what can't be understood."""

Clock = Literal["engine", "server", "arrival"]
"""Whose clock timed the rounds: the engine's in this process, a server's own, or this program's when their tokens
arrived. The moment at which a server's round ended is always that of its arrival."""


@dataclass(frozen=True, slots=True)
class LoadProgress:
    """One step of loading. ``done`` and ``total`` are in ``unit``; a ``total`` of 0 means unknown."""

    phase: str
    done: int
    total: int
    unit: Literal["bytes", "steps"] = "steps"
    bytes_per_second: float = 0.0
    """How fast a download is at the moment; 0 where it doesn't matter or isn't known yet."""
    remark: bool = False
    """Whether it is worth keeping on the screen when the next phase begins, such as what the models will take of the
    memory."""


@dataclass(frozen=True, slots=True)
class EngineReady:
    """The models are loaded and warm."""

    target: str
    drafter: str | None
    device: str
    dtype: str
    max_block_size: int
    """The block size the drafter was trained with, anchor included; 1 without a drafter."""
    max_context: int
    """Tokens of prompt and answer together."""
    load_seconds: float
    banner: str = ""
    """What the model itself says it can do (the bundled pair is honest about knowing little); may be empty."""
    attention_backend: str = ""
    """The kernels that compute the target's attention: one name, or several joined by ``+``."""
    draft_attention_backend: str = ""
    """The kernels that compute the drafter's attention; empty without a drafter."""
    target_hash: str = ""
    """A hash of the target's weights, by which two runs can be compared: see ``fingerprint.py``."""
    drafter_hash: str = ""
    """A hash of the drafter's weights, as the target's; empty without a drafter."""
    server: str = ""
    """The server's address, without keys; empty for the engine of this process."""
    dialect: str = ""
    """What answers at the server's address, with its version as it says: ``llama.cpp b11549``; empty without a
    server."""
    times: Clock = "engine"
    recurs: bool = False
    """Whether layers of the target keep a memory that forgets in place of keys and values; False also where that isn't
    known."""
    calls: CallSyntax | None = None
    """How the target writes calls of tools; None where its chat template knows no tools, and where that isn't known."""
    sampling: dict[str, float] | None = None
    """How the target's makers sample: fields of :class:`engine.commands.GenerationSettings`, and a repetition penalty,
    which isn't computed here (``generation_config.json``); None where they don't say."""
    method: Method | None = None
    """How the drafter guesses; None without one, and where that isn't known."""
    floor_ms: float | None = None
    """Milliseconds in which the memory reads the target's weights for one token; None where its pace isn't known."""
    pass_ms: tuple[float, ...] = ()
    """Entry r - 1: milliseconds of the target's pass over r rows, as timed on this machine; 0 where it wasn't. Empty
    where none was timed, and where that isn't known."""


@dataclass(frozen=True, slots=True)
class TurnStarted:
    turn: int
    num_prompt_tokens: int
    num_reused_tokens: int
    """How many prompt tokens were still in the caches from the turn before."""
    settings: dict[str, Any]
    """The known fields of :class:`engine.commands.GenerationSettings`; ``seed`` is that of this engine's noise."""
    question: str = ""
    """The question, for whoever shows the turn and did not ask it."""


@dataclass(frozen=True, slots=True)
class PrefillDone:
    turn: int
    milliseconds: float


@dataclass(frozen=True, slots=True)
class SourceStatistics:
    """Drafted and accepted tokens that name this source."""

    source: DraftSource
    num_draft_tokens: int
    num_accepted_draft_tokens: int


@dataclass(frozen=True, slots=True)
class TurnStatistics:
    """What a turn cost and what speculation gave. Decode time starts after the first token."""

    num_prompt_tokens: int = 0
    num_reused_tokens: int = 0
    num_tokens: int = 0
    """Emitted tokens, the stop token included."""
    num_spec_steps: int = 0
    num_draft_tokens: int = 0
    """Drafted tokens that the target verified."""
    num_accepted_draft_tokens: int = 0
    mean_acceptance_length: float = 0.0
    """(accepted + one) per speculative step; 0 without one."""
    acceptance_histogram: tuple[int, ...] = ()
    """Entry k counts the speculative steps that accepted k drafted tokens."""
    ttft_ms: float = 0.0
    decode_ms: float = 0.0
    tok_s: float = 0.0
    """Tokens after the first, per second of decode time."""
    by_source: tuple[SourceStatistics, ...] = ()
    """Figures of the sources that were named, in the order of their names; other drafted tokens name none."""
    num_rounds: int | None = None
    """Rounds behind the prompt's, with a draft or without; None where nobody counted them."""

    @property
    def tokens_per_round(self) -> float:
        """See :func:`tokens_per_round`. Where rounds weren't counted, each is taken to have written the drafts that it
        accepted and one of its own."""
        uncounted = max(self.num_tokens - 1 - self.num_accepted_draft_tokens, self.num_spec_steps)
        return tokens_per_round(self.num_tokens, uncounted if self.num_rounds is None else self.num_rounds)


def tokens_per_round(num_tokens: int, num_rounds: int) -> float:
    """Tokens behind the prompt's, per round behind the prompt's, those without a draft counted as well; 0 before the
    first."""
    return (num_tokens - 1) / num_rounds if num_tokens > 1 and num_rounds else 0.0


@dataclass(frozen=True, slots=True)
class TurnFinished:
    turn: int
    reason: FinishReason
    text: str
    """The whole answer: the pieces of its ``answer`` tokens joined."""
    thought: str = ""
    statistics: TurnStatistics = field(default_factory=TurnStatistics)


@dataclass(frozen=True, slots=True)
class EngineError:
    """Something went wrong, in words for people: what happened, and what to do next."""

    kind: ErrorKind
    message: str
    hint: str = ""
    fatal: bool = False
    """The engine thread has ended; nothing can be asked any more."""
    turn: int | None = None


@dataclass(frozen=True, slots=True)
class Notice:
    """Something worth telling the user once that is no error: a server accepts no drafts, a context isn't as long as
    was asked. A notice about an answer comes before its ``TurnFinished``."""

    message: str
    advice: str = ""
    """What to do about it, in words to copy."""
    ahead: bool = False
    """Whether the notice is about the answer that comes next, and worth knowing before it."""


Event = LoadProgress | EngineReady | TurnStarted | PrefillDone | Step | TurnFinished | EngineError | Notice

_EVENT_TYPES: dict[str, type] = {cls.__name__: cls for cls in get_args(Event)}
_LEFT_OUT: dict[str, Any] = {
    "server": "", "dialect": "", "times": "engine", "recurs": False, "calls": None, "sampling": None,
    "source": None, "match": None, "by_source": (), "ahead": False, "alone_ms": None,
    "floor_ms": None, "pass_ms": (), "num_rounds": None,
}  # fmt: skip
"""Fields that came after events were first written as JSON, with the values at which they are left out."""


def event_to_dict(event: Event) -> dict[str, Any]:
    """A JSON-ready dict; ``event`` names the type, the other keys are its fields."""
    data = {"event": type(event).__name__, **shortened(asdict(event))}
    if isinstance(event, TurnFinished):
        data["statistics"] = shortened(data["statistics"])
    return _shortened_step(data) if isinstance(event, Step) else data


def event_from_dict(data: dict[str, Any]) -> Event:
    """The inverse of :func:`event_to_dict`. Unknown keys are ignored; ``ValueError`` for an unknown type."""
    try:
        cls = _EVENT_TYPES[data["event"]]
    except KeyError:
        raise ValueError(f"not an event of this vocabulary: {data.get('event')!r}") from None
    if cls is Step:
        return _step(data)
    values = _known(cls, data)
    if cls is TurnFinished:
        values["statistics"] = statistics_from_dict(values["statistics"])
    if "pass_ms" in values:
        values["pass_ms"] = tuple(values["pass_ms"])
    event: Event = cls(**values)
    return event


def statistics_from_dict(data: dict[str, Any]) -> TurnStatistics:
    """The statistics in an event's JSON. Raises ``TypeError`` or ``KeyError`` where there are none."""
    sources = tuple(SourceStatistics(**each) for each in data.get("by_source", ()))
    return TurnStatistics(**{**data, "acceptance_histogram": tuple(data["acceptance_histogram"]), "by_source": sources})


def _step(data: dict[str, Any]) -> Step:
    values = _known(Step, data)
    values["draft"] = tuple(DraftToken(**token) for token in values["draft"])
    values["emitted"] = tuple(EmittedToken(**token) for token in values["emitted"])
    values["choice"] = WidthChoice(**choice) if (choice := values.get("choice")) else None
    values["tree"] = tuple(TreeToken(**token) for token in values.get("tree", ()))
    values["match"] = Match(**match) if (match := values.get("match")) else None
    return Step(**values)


def _known(cls: type, data: dict[str, Any]) -> dict[str, Any]:
    known = {field.name for field in fields(cls)}
    return {key: value for key, value in data.items() if key in known}


def _shortened_step(data: dict[str, Any]) -> dict[str, Any]:
    tokens = {name: tuple(shortened(token) for token in data[name]) for name in ("draft", "tree")}
    return {**shortened(data), **tokens}


def shortened(data: dict[str, Any]) -> dict[str, Any]:
    """The fields of an event or of a part, without those that came later and have the values at which they are left
    out."""
    return {key: value for key, value in data.items() if key not in _LEFT_OUT or value != _LEFT_OUT[key]}
