"""A round as columns, and ``Step``, its view. What is read off a round is defined here as well."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, fields
from functools import cached_property
from operator import attrgetter
from typing import TYPE_CHECKING, Any, Generic, Literal, NamedTuple, TypeVar

Verdict = Literal["accepted", "corrected", "bonus", "plain", "unknown"]
"""Why a token was emitted: its draft equalled the target's sample (``accepted``), the target's sample replaced the
first draft that differed (``corrected``), it came free where nothing more had been verified behind what was accepted
(``bonus``), or no draft was verified (``plain``: the first token of an answer, and every token without speculation).
``unknown``: the source doesn't say which of these. An engine always knows; a server may not tell."""

Channel = Literal["answer", "thought", "control"]
"""Where a token belongs: the answer, the model's thinking, or markup nobody reads (stop and channel tokens)."""

DraftSource = Literal["dflash", "lookup", "mtp", "eagle3"]
"""Who guessed a token: the DFlash drafter, the text itself (what followed where the newest tokens stood before), or one
that drafts a token at a time: a target's own assistant, an EAGLE-3. Without a name it was the run's DFlash drafter; at
a server, whatever that drafts with."""

PROBABILITY_STEPS, MICROSECONDS = 1000, 1000
"""How many steps a probability and a millisecond have where events round them."""


def rounded(value: float, steps: int) -> float:
    """``value`` at the nearest multiple of 1 / ``steps``."""
    return round(value * steps) / steps


@dataclass(frozen=True, slots=True)
class DraftToken:
    id: int | None
    text: str | None
    probability: float | None
    """The probability that the drafter gave its own argmax, in [0, 1]."""
    target_probability: float | None = None
    """The target's probability of this token at its position; None where it isn't known, and behind the first that was
    not accepted."""
    source: DraftSource | None = None


@dataclass(frozen=True, slots=True)
class TreeToken:
    """A verified token of a tree: one of the drafter's likeliest choices behind another token of the tree."""

    parent: int
    """Which token of the tree it stands behind, counted from 1; 0 is the newest token of the answer."""
    depth: int
    """How far behind the newest token of the answer it stands: 1 is right behind it."""
    choice: int
    """0 is the drafter's first choice there, 1 its second; a looked up token that is none of its choices counts as the
    last."""
    id: int
    text: str
    probability: float
    """The probability that the drafter gave it at its position, or that the match gave it which led to it, in [0,
    1]."""
    source: DraftSource | None = None


@dataclass(frozen=True, slots=True)
class EmittedToken:
    id: int | None
    text: str
    """Exactly what this token adds to its channel; empty for control tokens and for a half-finished character."""
    verdict: Verdict
    channel: Channel = "answer"
    probability: float | None = 1.0
    """The target's probability of this token in the distribution it sampled from (temperature 0: its softmax)."""


@dataclass(frozen=True, slots=True)
class Match:
    """Where the newest tokens stood before: of the places with the longest match the most recent. A lookup guesses the
    tokens that followed there."""

    length: int
    """How many tokens, the newest of the answer among them, stand in both places, up to ``lookup.LONGEST``."""
    distance: int
    """How many tokens back the earlier place is. Where that is less than ``length``, the text repeats, and the guess
    runs on into itself."""


@dataclass(frozen=True, slots=True)
class WidthChoice:
    """What decided how much of a draft was verified, at the edge between the tokens that were and those that weren't;
    or why nothing was drafted. The engine has exact numbers, an event rounded ones."""

    chance: float
    """The chance to be kept of the first token that was left out, or of the last one if none was; 0 without a draft."""
    cost_ms: float
    """Milliseconds that verifying that token adds to the round; without a draft, those that one would add."""
    tok_s: float
    """What decoding yields on this text, in tokens per second, whole ones in an event: a millisecond is worth a
    thousandth of it; 0 where nobody weighed that."""


class DraftColumns(NamedTuple):
    """The fields of a round's :class:`DraftToken`, a column each."""

    ids: tuple[int | None, ...] = ()
    texts: tuple[str | None, ...] = ()
    probabilities: tuple[float | None, ...] = ()
    target_probabilities: tuple[float | None, ...] = ()
    sources: tuple[DraftSource | None, ...] = ()


class TreeColumns(NamedTuple):
    """The fields of a round's :class:`TreeToken`, a column each."""

    parents: tuple[int, ...] = ()
    depths: tuple[int, ...] = ()
    choices: tuple[int, ...] = ()
    ids: tuple[int, ...] = ()
    texts: tuple[str, ...] = ()
    probabilities: tuple[float, ...] = ()
    sources: tuple[DraftSource | None, ...] = ()


class EmittedColumns(NamedTuple):
    """The fields of a round's :class:`EmittedToken`, a column each."""

    ids: tuple[int | None, ...] = ()
    texts: tuple[str, ...] = ()
    verdicts: tuple[Verdict, ...] = ()
    channels: tuple[Channel, ...] = ()
    probabilities: tuple[float | None, ...] = ()


Token = TypeVar("Token")
Columns = TypeVar("Columns", DraftColumns, TreeColumns, EmittedColumns)


class Tokens(Generic[Token, Columns]):
    """A field of a round that is kept as columns (``draft`` as ``draft_columns``) and read as tokens, which are made
    when somebody asks for them. It takes either: :func:`in_columns`."""

    def __init__(self, name: str, token: type[Token], columns: type[Columns]) -> None:
        self.name, self._made, self._kept = name, f"{name}_tokens", f"{name}_columns"
        self._token = token
        self._columns: type[Columns] = columns
        self._values = attrgetter(*(field.name for field in fields(token)))  # type: ignore[arg-type]

    def __get__(self, step: Step, owner: type[Step]) -> tuple[Token, ...]:
        columns = step.__dict__
        if self._made not in columns:
            columns[self._made] = tuple(map(self._token, *columns[self._kept]))
        tokens: tuple[Token, ...] = columns[self._made]
        return tokens

    def __set__(self, step: Step, tokens: Sequence[Token] | Columns) -> None:
        if not isinstance(tokens, self._columns):
            tokens = self._columns(*zip(*map(self._values, tokens), strict=True))
        step.__dict__[self._kept] = tokens


def in_columns(columns: DraftColumns | TreeColumns | EmittedColumns) -> Any:
    """The columns as the tokens of a ``Step`` that is to be made: the same object."""
    return columns


@dataclass(frozen=True)
class Step:
    """One round: draft, verify, accept. The first step of a turn (the token the prefill yields) has no draft. What it
    says of tokens is kept in columns; ``draft``, ``emitted`` and ``tree`` are views of them."""

    turn: int
    index: int
    time: float
    """Seconds since the turn started, at the end of the round."""
    draft: tuple[DraftToken, ...]
    """The drafter's first choice of each position. Without a ``tree``, the first ``verify_width - 1`` were verified."""
    num_accepted: int
    """How many drafted tokens were accepted *and* emitted; a server also counts those that the answer's end cut off."""
    emitted: tuple[EmittedToken, ...]
    verify_width: int
    """Rows of the target's forward pass: the anchor and the drafted tokens it verified."""
    draft_ms: float | None
    verify_ms: float | None
    total_ms: float
    context_length: int
    block_size: int
    temperature: float
    choice: WidthChoice | None = None
    """Why this many drafted tokens were verified, where that was chosen; None where all were."""
    tree: tuple[TreeToken, ...] = ()
    """The ``verify_width - 1`` verified tokens, parents first, where they aren't a chain; see ``accepted_in``."""
    match: Match | None = None
    """The match by which drafted tokens were looked up; None where none were. Tokens name their own source."""
    alone_ms: float | None = None
    """What a pass over one row took where this round began, or takes by what is measured all the time: a token of the
    target alone. None in most rounds. It is no part of ``total_ms``."""

    if TYPE_CHECKING:  # what ``Tokens`` keeps

        @property
        def draft_columns(self) -> DraftColumns: ...
        @property
        def emitted_columns(self) -> EmittedColumns: ...
        @property
        def tree_columns(self) -> TreeColumns: ...

    @property
    def num_drafted(self) -> int:
        return len(self.draft_columns.ids)

    @property
    def num_emitted(self) -> int:
        return len(self.emitted_columns.ids)

    @cached_property
    def num_verified(self) -> int:
        """Drafted tokens that the target verified."""
        return min(len(self.tree_columns.ids or self.draft_columns.ids), max(self.verify_width - 1, 0))

    @property
    def num_kept(self) -> int:
        """Verified drafts that were accepted: what figures count."""
        return min(self.num_accepted, self.num_verified)

    @property
    def is_corrected(self) -> bool:
        """Whether the round ended because the target disagreed with a verified draft."""
        return self.num_accepted < self.num_verified and self.emitted_columns.verdicts[-1:] == ("corrected",)

    def text(self, channel: Channel = "answer") -> str:
        """What the round adds to a channel."""
        _, texts, _, channels, _ = self.emitted_columns
        if (count := channels.count(channel)) in (0, len(channels)):
            return "".join(texts) if count else ""
        return "".join(text for text, of in zip(texts, channels, strict=True) if of == channel)


for _kept in (
    Tokens("draft", DraftToken, DraftColumns),
    Tokens("emitted", EmittedToken, EmittedColumns),
    Tokens("tree", TreeToken, TreeColumns),
):
    setattr(Step, _kept.name, _kept)


def accepted_in(step: Step) -> tuple[int, ...]:
    """Which tokens of a step's tree were accepted, counted from 1: one for each accepted position. Raises ``KeyError``
    for a step whose tree doesn't hold what was accepted."""
    tree, path = step.tree_columns, [0]
    rows = {index: row for row, index in enumerate(zip(tree.parents, tree.ids, strict=True), 1)}
    for token in step.emitted_columns.ids[: step.num_accepted]:
        path.append(rows[path[-1], token])  # type: ignore[index]
    return tuple(path[1:])


def sources_in(step: Step) -> tuple[DraftSource | None, ...]:
    """Who guessed each accepted token of a step, as far as it is named."""
    if step.tree_columns.ids:
        sources = step.tree_columns.sources
        return tuple(sources[row - 1] for row in accepted_in(step))
    return step.draft_columns.sources[: step.num_kept]


def verified_sources(step: Step) -> tuple[DraftSource | None, ...]:
    """Who guessed each verified token of a step, as far as it is named."""
    return step.tree_columns.sources or step.draft_columns.sources[: step.num_verified]
