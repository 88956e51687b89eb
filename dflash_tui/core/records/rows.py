"""A step as a row, a list of positions that JSON can hold, and back. FORMAT.md has the table of positions.

Tokens are numbers of a table of (id, text) that the rows of a block share. Probabilities are thousandths and times
microseconds, which is what the engine hands out: events come back equal. What a source doesn't know is None."""

from __future__ import annotations

from collections.abc import Sequence
from math import isfinite
from typing import Any, get_args

from engine.commands import MAX_TEMPERATURE
from engine.events import (
    MICROSECONDS,
    Channel,
    DraftToken,
    EmittedToken,
    Match,
    Source,
    Step,
    TreeToken,
    Verdict,
    WidthChoice,
    accepted_in,
)

from .numbers import MAX_NUMBER, SECOND, RecordError, belief, doubt, whole

VERDICTS: tuple[Verdict, ...] = get_args(Verdict)
CHANNELS: tuple[Channel, ...] = get_args(Channel)
SOURCES: tuple[Source | None, ...] = (None, *get_args(Source))
MAX_LIST = 256
"""Tokens of a draft or a tree in a trace, and choices of a position: no honest round has so many."""

Piece = tuple[int | None, str | None]
"""A token's id and its text here, or None. Half-finished characters give one id several texts."""
Row = Sequence[Any]
"""One step: ``COLUMNS`` entries."""
COLUMNS = 17


class _Doubts(dict[float | None, int | None]):
    """:func:`doubt` by probability, kept: a step has dozens, and there are only a thousand."""

    def __missing__(self, probability: float | None) -> int | None:
        found = None if probability is None else doubt(probability)
        if len(self) < 4096:
            self[probability] = found
        return found


_DOUBTS = _Doubts()


def row_of(step: Step, pieces: dict[Piece, int]) -> Row:
    """The row of a step. ``pieces``: the table so far, by its entries, which grows by the step's new tokens."""
    put, doubts, draft = pieces.setdefault, _DOUBTS, step.draft
    kept = _emitted_as_drafted(step)
    given = [doubts[token.target_probability] for token in draft]
    while given and given[-1] is None:
        given.pop()
    own: list[int | None] = []
    for token in step.emitted[kept:]:
        kind = VERDICTS.index(token.verdict) * len(CHANNELS) + CHANNELS.index(token.channel)
        own += (put((token.id, token.text), len(pieces)), kind, doubts[token.probability])
    choice, draft_ms, verify_ms = step.choice, step.draft_ms, step.verify_ms
    return (
        step.index,
        whole(step.time, SECOND),
        None if draft_ms is None else whole(draft_ms, MICROSECONDS),
        None if verify_ms is None else whole(verify_ms, MICROSECONDS),
        whole(step.total_ms, MICROSECONDS),
        step.context_length,
        step.block_size,
        step.temperature if isfinite(step.temperature) else 0.0,
        step.verify_width,
        step.num_accepted,
        [put((token.id, token.text), len(pieces)) for token in draft],
        [doubts[token.probability] for token in draft],
        given,
        [kept, CHANNELS.index(step.emitted[0].channel)] if kept and step.emitted[0].channel != "answer" else kept,
        own,
        None
        if choice is None
        else [doubts[choice.chance], whole(choice.cost_ms, MICROSECONDS), whole(choice.tok_s, 1)],
        _rare(step, pieces),
    )


def _rare(step: Step, pieces: dict[Piece, int]) -> dict[str, Any] | None:
    """What few steps have, by name; None where there is nothing."""
    rare: dict[str, Any] = {}
    if step.alone_ms is not None:
        rare["alone"] = whole(step.alone_ms, MICROSECONDS)
    if step.match is not None:
        rare["match"] = [step.match.length, step.match.distance]
    sources = [SOURCES.index(source) for source in (*(t.source for t in step.draft), *(t.source for t in step.tree))]
    if any(sources):
        rare["sources"] = sources
    if step.tree:
        rare["tree"] = [
            number
            for token in step.tree
            for number in (
                token.parent,
                token.choice,
                pieces.setdefault((token.id, token.text), len(pieces)),
                doubt(token.probability),
            )
        ]
    return rare or None


def _emitted_as_drafted(step: Step) -> int:
    """How many emitted tokens, from the first on, are exactly what their draft says: accepted, in one channel."""
    if not step.emitted:
        return 0
    count, channel = 0, step.emitted[0].channel
    for kept, drafted in zip(step.emitted, step.draft, strict=False):
        if kept.verdict != "accepted" or kept.id != drafted.id or kept.text != drafted.text:
            break
        if kept.channel != channel or kept.probability != drafted.target_probability:
            break
        count += 1
    return count


def step_of(row: Row, turn: int, pieces: Sequence[Piece]) -> Step:
    """The inverse of :func:`row_of`; ``pieces``: the table. Raises :class:`RecordError` for what no program writes."""
    try:
        return _step(row, turn, pieces)
    except (TypeError, ValueError, IndexError, KeyError, AttributeError, OverflowError) as error:
        raise RecordError("a row is not a step") from error


def _step(row: Row, turn: int, pieces: Sequence[Piece]) -> Step:
    (index, time, draft_us, verify_us, total, context, block, temperature, width, accepted,
     refs, chances, given, kept, own, choice, rare) = row  # fmt: skip
    rare = rare or {}
    if not 0 <= float(temperature) <= MAX_TEMPERATURE:
        raise RecordError("a temperature is out of range")
    sources = _sources(rare, len(refs))
    given = [*given, *[None] * (len(refs) - len(given))]
    draft = tuple(
        DraftToken(*_at(pieces, ref), _chance(chance), _chance(judged), source)
        for ref, chance, judged, source in zip(refs, chances, given, sources, strict=True)
    )
    tree = _tree(rare, len(refs), pieces) if "tree" in rare else ()
    step = Step(
        turn=turn,
        index=_number(index),
        time=_number(time) / SECOND,
        draft=draft,
        num_accepted=_number(accepted),
        emitted=(*_as_drafted(kept, draft), *_own(own, pieces)),
        verify_width=_number(width),
        draft_ms=None if draft_us is None else _number(draft_us) / MICROSECONDS,
        verify_ms=None if verify_us is None else _number(verify_us) / MICROSECONDS,
        total_ms=_number(total) / MICROSECONDS,
        context_length=_number(context),
        block_size=_number(block),
        temperature=float(temperature),
        choice=None if choice is None else _choice(*choice),
        tree=tree,
        match=Match(*map(_number, rare["match"])) if "match" in rare else None,
        alone_ms=_number(rare["alone"]) / MICROSECONDS if "alone" in rare else None,
    )
    if tree and not holds_together(step):
        raise RecordError("a step's tree is not what was accepted of it")
    return step


def _sources(rare: dict[str, Any], count: int) -> list[Source | None]:
    """Who guessed each drafted token."""
    numbers = rare.get("sources")
    return [None] * count if numbers is None else [SOURCES[_number(number)] for number in numbers[:count]]


def _choice(chance: Any, cost_us: Any, tok_s: Any) -> WidthChoice:
    return WidthChoice(belief(_number(chance)), _number(cost_us) / MICROSECONDS, float(_number(tok_s)))


def _as_drafted(kept: Any, draft: tuple[DraftToken, ...]) -> list[EmittedToken]:
    count, channel = kept if isinstance(kept, list) else (kept, 0)
    emitted = []
    for token in draft[: _number(count)]:
        if token.text is None:
            raise RecordError("an accepted token has no text")
        emitted.append(
            EmittedToken(token.id, token.text, "accepted", CHANNELS[_number(channel)], token.target_probability)
        )
    if len(emitted) != count:
        raise RecordError("a step keeps more tokens than were drafted")
    return emitted


def _own(numbers: list[Any], pieces: Sequence[Piece]) -> list[EmittedToken]:
    emitted = []
    for ref, kind, chance in zip(*[iter(numbers)] * 3, strict=True):
        token, text = _at(pieces, ref)
        if text is None:
            raise RecordError("a token of the answer has no text")
        verdict, channel = divmod(_number(kind), len(CHANNELS))
        emitted.append(EmittedToken(token, text, VERDICTS[verdict], CHANNELS[channel], _chance(chance)))
    return emitted


def _tree(rare: dict[str, Any], num_drafted: int, pieces: Sequence[Piece]) -> tuple[TreeToken, ...]:
    """The tokens of a tree: none deeper than the draft, and none twice in one place."""
    numbers = rare["tree"]
    sources = rare.get("sources", [0] * (num_drafted + len(numbers) // 4))[num_drafted:]
    tree: list[TreeToken] = []
    children: set[tuple[str, int, int]] = set()
    for (parent, choice, ref, chance), source in zip(zip(*[iter(numbers)] * 4, strict=True), sources, strict=True):
        if _number(parent) > len(tree) or _number(choice) >= MAX_LIST:
            raise RecordError("a token of a tree stands behind one that comes later")
        depth = 1 + (tree[parent - 1].depth if parent else 0)
        token, text = _at(pieces, ref)
        if depth > num_drafted or token is None or text is None:
            raise RecordError("a tree is deeper than the draft, or a token of it is not known")
        here = {("choice", parent, choice), ("id", parent, token)}
        if here & children:
            raise RecordError("a tree has the same token twice in one place")
        children |= here
        source_of = SOURCES[_number(source)]
        tree.append(TreeToken(parent, depth, choice, token, text, belief(_number(chance)), source_of))
    return tuple(tree)


def _at(pieces: Sequence[Piece], ref: Any) -> Piece:
    return pieces[_number(ref)]


def _number(value: Any) -> int:
    if type(value) is not int or not 0 <= value <= MAX_NUMBER:
        raise RecordError("a number is none, or out of range")
    return value


def _chance(value: Any) -> float | None:
    return None if value is None else belief(_number(value))


def holds_together(step: Step) -> bool:
    """Whether a step's tree was verified as a whole, and what was accepted is a path in it."""
    try:
        return step.verify_width == len(step.tree) + 1 and len(accepted_in(step)) == step.num_accepted
    except KeyError:
        return False
