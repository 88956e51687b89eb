"""A step as a row, a list of values that JSON can hold, and back. FORMAT.md of ``dflash_tui/core/sessions`` has the
table of their positions.

Tokens are numbers of a table of (id, text) that the rows of a block share. Probabilities are thousandths and times
microseconds, which is what the engine hands out: events come back equal. What a source doesn't know is None."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import chain
from math import isfinite
from typing import Any, NamedTuple, get_args

from ..commands import MAX_TEMPERATURE
from .numbers import MAX_NUMBER, SECOND, RecordError, from_thousandths, to_thousandths, whole
from .step import (
    MICROSECONDS,
    Channel,
    DraftColumns,
    DraftSource,
    EmittedColumns,
    Match,
    Step,
    TreeColumns,
    Verdict,
    WidthChoice,
    accepted_in,
    in_columns,
)

VERDICTS: tuple[Verdict, ...] = get_args(Verdict)
CHANNELS: tuple[Channel, ...] = get_args(Channel)
SOURCES: tuple[DraftSource | None, ...] = (None, *get_args(DraftSource))
MAX_LIST = 256
"""Tokens of a draft or a tree in a trace, and choices of a position: no honest round has so many."""

TokenPiece = tuple[int | None, str | None]
"""A token's id and its text here, or None. Half-finished characters give one id several texts."""
COLUMNS = 17
INDEX, TIME, DRAFT, VERIFY, TOTAL, CONTEXT, ACCEPTED, DRAFTED, KEPT, OWN, RARE = 0, 1, 2, 3, 4, 5, 9, 10, 13, 14, 16
"""Positions of a row's values."""


class Row(NamedTuple):
    """One round, as the store and files have it."""

    turn: int
    pieces: Sequence[TokenPiece]
    """The table of its tokens; the rows of a block share one."""
    values: Sequence[Any]
    """``COLUMNS`` of them, whose tokens are numbers of the table."""

    def renumbered(self, table: dict[TokenPiece, int]) -> Sequence[Any]:
        """The values by another table, which grows by the row's new tokens."""
        numbers = [table.setdefault(piece, len(table)) for piece in self.pieces]
        number, values = numbers.__getitem__, list(self.values)
        values[DRAFTED] = list(map(number, values[DRAFTED]))
        if values[OWN]:
            values[OWN] = own = list(values[OWN])
            own[::3] = map(number, own[::3])
        if values[RARE] is not None and "tree" in values[RARE]:
            tree = list(values[RARE]["tree"])
            tree[2::4] = map(number, tree[2::4])
            values[RARE] = {**values[RARE], "tree": tree}
        return values


class _Doubts(dict[float | None, int | None]):
    """:func:`doubt` by probability, kept: a step has dozens, and there are only a thousand."""

    def __missing__(self, probability: float | None) -> int | None:
        thousandths = None if probability is None else to_thousandths(probability)
        if len(self) < 4096:
            self[probability] = thousandths
        return thousandths


_DOUBTS = _Doubts()


def row_of(step: Step) -> Row:
    """The row of a step, with a table of its own."""
    pieces: dict[TokenPiece, int] = {}
    put, doubts, draft, emitted = pieces.setdefault, _DOUBTS.__getitem__, step.draft_columns, step.emitted_columns
    refs = [put(piece, len(pieces)) for piece in zip(draft.ids, draft.texts, strict=True)]
    agreed = _emitted_as_drafted(draft, emitted)
    given = list(map(doubts, draft.target_probabilities))
    while given and given[-1] is None:
        given.pop()
    own: list[int | None] = []
    for index in range(agreed, len(emitted.ids)):
        kind = VERDICTS.index(emitted.verdicts[index]) * len(CHANNELS) + CHANNELS.index(emitted.channels[index])
        own += (
            put((emitted.ids[index], emitted.texts[index]), len(pieces)), kind, doubts(emitted.probabilities[index])
        )  # fmt: skip
    choice, draft_ms, verify_ms = step.choice, step.draft_ms, step.verify_ms
    values = (
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
        refs,
        list(map(doubts, draft.probabilities)),
        given,
        [agreed, CHANNELS.index(emitted.channels[0])] if agreed and emitted.channels[0] != "answer" else agreed,
        own,
        None
        if choice is None
        else [doubts(choice.chance), whole(choice.cost_ms, MICROSECONDS), whole(choice.tok_s, 1)],
        _rare(step, pieces),
    )
    return Row(step.turn, tuple(pieces), values)


def _rare(step: Step, pieces: dict[TokenPiece, int]) -> dict[str, Any] | None:
    """What few steps have, by name; None where there is nothing."""
    rare: dict[str, Any] = {}
    tree = step.tree_columns
    if step.alone_ms is not None:
        rare["alone"] = whole(step.alone_ms, MICROSECONDS)
    if step.match is not None:
        rare["match"] = [step.match.length, step.match.distance]
    sources = (*step.draft_columns.sources, *tree.sources)
    if any(sources):
        rare["sources"] = list(map(SOURCES.index, sources))
    if tree.ids:
        refs = [pieces.setdefault(piece, len(pieces)) for piece in zip(tree.ids, tree.texts, strict=True)]
        rows = zip(tree.parents, tree.choices, refs, map(to_thousandths, tree.probabilities), strict=True)
        rare["tree"] = list(chain.from_iterable(rows))
    return rare or None


def _emitted_as_drafted(draft: DraftColumns, emitted: EmittedColumns) -> int:
    """How many emitted tokens, from the first on, are exactly what their draft says: accepted, in one channel."""
    count, first = 0, emitted.channels[:1]
    for token, text, verdict, channel, given, drafted, guess, judged in zip(
        *emitted, draft.ids, draft.texts, draft.target_probabilities, strict=False
    ):
        if verdict != "accepted" or token != drafted or text != guess or given != judged or (channel,) != first:
            break
        count += 1
    return count


def step_of(row: Row) -> Step:
    """The inverse of :func:`row_of`. Raises :class:`RecordError` for what no program writes."""
    try:
        return _step(*row)
    except (TypeError, ValueError, IndexError, KeyError, AttributeError, OverflowError) as error:
        raise RecordError("a row is not a step") from error


def _step(turn: int, pieces: Sequence[TokenPiece], values: Sequence[Any]) -> Step:
    (index, time, draft_us, verify_us, total, context, block, temperature, width, accepted,
     refs, chances, given, emitted, own, choice, rare) = values  # fmt: skip
    rare = rare or {}
    if not 0 <= float(temperature) <= MAX_TEMPERATURE:
        raise RecordError("a temperature is out of range")
    sources = _sources(rare, len(refs))
    ids, texts = _pieces(refs, pieces)
    judged = (*map(_chance, given), *[None] * (len(refs) - len(given)))
    draft = DraftColumns(ids, texts, tuple(map(_chance, chances)), judged, sources)
    if len({len(column) for column in draft}) > 1:
        raise RecordError("a draft's columns are not equally long")
    tree = _tree(rare, len(refs), pieces) if "tree" in rare else TreeColumns()
    step = Step(
        turn=turn,
        index=_number(index),
        time=_number(time) / SECOND,
        draft=in_columns(draft),
        num_accepted=_number(accepted),
        emitted=in_columns(_emitted(emitted, own, draft, pieces)),
        verify_width=_number(width),
        draft_ms=None if draft_us is None else _number(draft_us) / MICROSECONDS,
        verify_ms=None if verify_us is None else _number(verify_us) / MICROSECONDS,
        total_ms=_number(total) / MICROSECONDS,
        context_length=_number(context),
        block_size=_number(block),
        temperature=float(temperature),
        choice=None if choice is None else _choice(*choice),
        tree=in_columns(tree),
        match=Match(*map(_number, rare["match"])) if "match" in rare else None,
        alone_ms=_number(rare["alone"]) / MICROSECONDS if "alone" in rare else None,
    )
    if tree.ids and not holds_together(step):
        raise RecordError("a step's tree is not what was accepted of it")
    return step


def _sources(rare: dict[str, Any], count: int) -> tuple[DraftSource | None, ...]:
    """Who guessed each drafted token."""
    numbers = rare.get("sources")
    return (None,) * count if numbers is None else tuple(SOURCES[_number(number)] for number in numbers[:count])


def _choice(chance: Any, cost_us: Any, tok_s: Any) -> WidthChoice:
    return WidthChoice(from_thousandths(_number(chance)), _number(cost_us) / MICROSECONDS, float(_number(tok_s)))


def _pieces(refs: Sequence[Any], pieces: Sequence[TokenPiece]) -> tuple[tuple[int | None, ...], tuple[str | None, ...]]:
    """Ids and texts of some tokens."""
    texts = [pieces[_number(ref)] for ref in refs]
    return tuple(token for token, _ in texts), tuple(text for _, text in texts)


def _emitted(agreed: Any, own: list[Any], draft: DraftColumns, pieces: Sequence[TokenPiece]) -> EmittedColumns:
    """What a round emitted: the first drafts as they stand in ``draft``, then tokens of its own."""
    count, channel = map(_number, agreed if isinstance(agreed, list) else (agreed, 0))
    if count > len(draft.ids):
        raise RecordError("a step keeps more tokens than were drafted")
    own_ids, own_texts = _pieces(own[::3], pieces)
    kinds = [divmod(_number(kind), len(CHANNELS)) for kind in own[1::3]]
    texts = []
    for text in (*draft.texts[:count], *own_texts):
        if text is None:
            raise RecordError("a token of the answer has no text")
        texts.append(text)
    emitted = EmittedColumns(
        (*draft.ids[:count], *own_ids),
        tuple(texts),
        (*["accepted"] * count, *(VERDICTS[verdict] for verdict, _ in kinds)),  # type: ignore[arg-type]
        (*[CHANNELS[channel]] * count, *(CHANNELS[channel_index] for _, channel_index in kinds)),
        (*draft.target_probabilities[:count], *map(_chance, own[2::3])),
    )
    if len({len(column) for column in emitted}) > 1:
        raise RecordError("a token of the answer is cut off")
    return emitted


def _tree(rare: dict[str, Any], num_drafted: int, pieces: Sequence[TokenPiece]) -> TreeColumns:
    """The tokens of a tree: none deeper than the draft, and none twice in one place."""
    numbers = rare["tree"]
    sources = rare.get("sources", [0] * (num_drafted + len(numbers) // 4))[num_drafted:]
    depths = [0]
    rows = []
    children: set[tuple[str, int, int]] = set()
    for (parent, choice, ref, chance), source in zip(zip(*[iter(numbers)] * 4, strict=True), sources, strict=True):
        if _number(parent) >= len(depths) or _number(choice) >= MAX_LIST:
            raise RecordError("a token of a tree stands behind one that comes later")
        depth = 1 + depths[parent]
        depths.append(depth)
        token, text = pieces[_number(ref)]
        if depth > num_drafted or token is None or text is None:
            raise RecordError("a tree is deeper than the draft, or a token of it is not known")
        here = {("choice", parent, choice), ("id", parent, token)}
        if here & children:
            raise RecordError("a tree has the same token twice in one place")
        children |= here
        rows.append((parent, depth, choice, token, text, from_thousandths(_number(chance)), SOURCES[_number(source)]))
    return TreeColumns(*zip(*rows, strict=True))


def _number(value: Any) -> int:
    if type(value) is not int or not 0 <= value <= MAX_NUMBER:
        raise RecordError("a number is none, or out of range")
    return value


def _chance(value: Any) -> float | None:
    return None if value is None else from_thousandths(_number(value))


def holds_together(step: Step) -> bool:
    """Whether a step's tree was verified as a whole, and what was accepted is a path in it."""
    try:
        return step.verify_width == len(step.tree_columns.ids) + 1 and len(accepted_in(step)) == step.num_accepted
    except KeyError:
        return False
