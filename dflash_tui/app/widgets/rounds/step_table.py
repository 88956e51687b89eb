"""One round as a table: a column per position of the block, and under it why the round went as it did."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from textwrap import wrap as wrap_words

from rich.cells import cell_len, set_cell_size
from textual.content import Content
from textual.widget import Widget

from dflash_tui.core.figures.labels import (
    DRAFTER_SURE,
    FOUND_SURE,
    FURTHER,
    GUESS,
    OUTCOME,
    RANDOM,
    SURE_OF_OWN,
    TARGET_SURE,
    TARGET_WRITES,
    Label,
)
from dflash_tui.core.figures.statistics import NOT_KNOWN
from dflash_tui.core.rounds.cells import END_MARK, draft_text
from dflash_tui.core.rounds.inspection import Column, Inspection, Outcome
from dflash_tui.core.rounds.playback import PHASES, Phase
from dflash_tui.core.rounds.trees import ChoiceFate, Further
from dflash_tui.core.text.counted import counted
from dflash_tui.core.text.wrapping import shortened
from engine.events import DraftToken, EmittedToken
from engine.rounds.statistics import MAX_DRAFT

from ...glyphs import bars, fitting
from .round_strip import LONGEST_CELL, MARKS, STYLES, probability, visible

LABEL_WIDTH, WIDE_LABEL, ROOMY = 10, 17, 100
"""Cells of the rows' names, and where there is so much room, of their longer ones."""
SHORTEST_CELL = 4
"""Cells of a column at least: a random number needs as many."""
PENDING, NUMBERS = "italic $verdict-pending", "$verdict-pending"
CURSOR = "reverse"
MASK = "░░░"
GAP = 2
"""Cells by which the rejected part moves away from what was kept."""
LEAST_ROUNDS = 8
"""Cells needed to draw how much the last rounds verified, a cell a round: fewer rounds say nothing."""
LEAST_TABLE, ROWS_WITH_KEYS = 4, 7
"""Rows of title, drafts, target and verdicts at least; and of a view that keeps its last one for the keys."""

DRAFT_STYLES: dict[Outcome, str] = {
    "accepted": STYLES["accepted"],
    "rejected": STYLES["rejected"],
    "discarded": STYLES["discarded"],
    "unverified": STYLES["unverified"],
    "ended": STYLES["ended"],
    "bonus": PENDING,
    "plain": PENDING,
    "unknown": PENDING,
}
CHOICE_STYLES: dict[Outcome, str] = {
    "rejected": STYLES["corrected"], "bonus": STYLES["bonus"], "unknown": STYLES["unknown"],
}  # fmt: skip
FURTHER_STYLES: dict[ChoiceFate, str] = {
    "accepted": STYLES["accepted"],
    "rejected": "$verdict-pending",
    "discarded": "$verdict-pending",
}
VERDICTS: dict[Outcome, str] = {
    "accepted": "✓", "rejected": "✗", "discarded": "✂", "unverified": "…", "ended": "·", "bonus": "+", "plain": "○",
    "unknown": "?",
}  # fmt: skip
PHASE_WORDS: dict[Phase, str] = {
    "block": "The drafter fills the whole block in one pass: {places}, all at once.",
    "draft": "{guesses} there together, each with the drafter's own probability.",
    "verify": "One pass of the target says what it would have written at each place, up to where it first differs.",
    "judge": "Guesses are kept up to the first that is not the target's own choice.",
    "emit": "The target's own token joins what was kept: {tokens} in one round.",
}
LOOKUP_WORDS: dict[Phase, str] = PHASE_WORDS | {
    "block": "The newest tokens are looked for in all of the text before them: no drafter, no weights.",
    "draft": "What came next where they stood before is the draft: {drafts}.",
}
"""What happens in each phase of a round whose guesses were looked up in the text itself."""
TREE_WORDS: dict[Phase, str] = PHASE_WORDS | {
    "draft": "{guesses} there together, and likely further choices beside them: a tree of {verified}.",
    "judge": "From place to place a guess is kept, as long as one of them is the target's own choice.",
}
"""What happens in each phase of a round that verified a tree of further choices."""
UNTOLD_WORDS: dict[Phase, str] = PHASE_WORDS | {
    "draft": "{guesses} there together; those that will be refused are never told.",
    "verify": "One pass of the target says what it would have written; only what it wrote is told.",
}
"""What happens in each phase of a round of which a server told what was kept, and how many guesses fell."""


@dataclass(frozen=True, slots=True)
class Scene:
    """A round and how to show it: up to which phase, with which cursor and words."""

    inspection: Inspection
    phase: Phase = "emit"
    cursor: int | None = None
    """The column under the cursor."""
    title: str = ""
    notes: tuple[str, ...] = ()
    """Forms of a note at the right end of the title, the longest first; the first that has room is shown."""
    aside: tuple[str, ...] = ()
    """Forms of what is said there of the whole answer, where the outcome of the round doesn't give way to it."""
    remark: str = ""
    """Words in the place of the explanation, such as a question to the viewer."""
    phases: bool = False
    """Whether to explain the phase instead of the column."""
    tally: str = ""
    """What has been written by now, and in how many passes."""
    keys: tuple[str, ...] = ()
    """What can be pressed, for where there is room to spare: the last first, then the others in their order."""

    def reached(self, phase: Phase) -> bool:
        return PHASES.index(self.phase) >= PHASES.index(phase)


class SceneWidget(Widget):
    """Draws a scene, again whenever it is shown another one. Subclasses say how."""

    def __init__(self, *, id: str | None = None) -> None:
        super().__init__(id=id)
        self.scene: Scene | None = None

    def show(self, scene: Scene | None) -> None:
        if scene != self.scene:
            self.scene = scene
            self.refresh()


class StepTable(SceneWidget):
    """Draws a scene in as many rows as it gets; the explanation gives way before the table does."""

    DEFAULT_CSS = """
    StepTable { height: 12; color: $foreground; text-wrap: nowrap; text-overflow: clip; }
    """

    def render(self) -> Content:
        if self.scene is None:
            return Content.styled("The rounds of an answer show here: ask something.", "$verdict-pending")
        return Content("\n").join(scene_lines(self.scene, self.size.width, self.size.height))


def scene_lines(scene: Scene, width: int, height: int) -> list[Content]:
    inspection = scene.inspection
    below = bool(scene.keys) and height >= ROWS_WITH_KEYS
    words = [Content(line) for line in _cut(explanation(scene), width, height - LEAST_TABLE - below)]
    told_found = inspection.match_words  # cut within a word: code looked up may be one word without a blank
    lookup_lines = [Content.styled(shortened(told_found, width), NUMBERS)] if told_found else []
    if scene.reached("judge") and inspection.memory and height > ROWS_WITH_KEYS:
        lookup_lines.append(Content.styled(shortened(inspection.memory, width), NUMBERS))
    # Before the verdict the cost would give away how many were kept.
    cost_lines = inspection.cost if scene.reached("judge") else ()
    room = height - 1 - len(words) - below - len(lookup_lines) - bool(inspection.width)
    if cost_lines and room >= LEAST_TABLE and not any(column.further for column in inspection.columns):
        room -= 1  # odds leave the table for the cost; a tree's choices don't
    table = _table(scene, width, room)
    chosen = [_width(inspection, width)] if scene.reached("verify") and inspection.width else []
    lines = [title_line(scene, width), *table, *words, *lookup_lines, *chosen][: max(height - below, 1)]
    lines += [Content.styled(line, NUMBERS) for line in _fitted(cost_lines, width, height - below - len(lines))]
    if below:
        keys = fitting(scene.keys, width)
        lines += [Content()] * (height - 1 - len(lines)) + [Content.styled(keys, NUMBERS)]
    return lines


def _wrapped(text: str, width: int) -> list[str]:
    return wrap_words(text, max(width, 20))


def _cut(text: str, width: int, most: int) -> list[str]:
    """``text`` wrapped to ``width`` cells, in at most ``most`` lines; an ellipsis shows that some is missing."""
    lines = _wrapped(text, width)
    if len(lines) <= most or most < 1:
        return lines[: max(most, 0)]
    *lines_above, last = lines[:most]
    return [*lines_above, f"{last[: max(width - 2, 1)].rstrip()} …"]


def _fitted(forms: Sequence[str], width: int, most: int) -> list[str]:
    """The first of these forms of a text that has room in so many lines, else the last one, cut."""
    fit = next((form for form in forms if len(_wrapped(form, width)) <= most), "".join(forms[-1:]))
    return _cut(fit, width, most)


def _width(inspection: Inspection, width: int) -> Content:
    """Why so much was verified, and how much it was in the rounds up to this one, as many as have room."""
    text = "".join(_fitted(inspection.width, width, 1))
    head = f"{text}  last rounds "
    room = width - cell_len(head)
    if room < LEAST_ROUNDS:
        return Content.styled(text, NUMBERS)
    return Content.assemble(
        (head, NUMBERS), (bars([n / MAX_DRAFT for n in inspection.widths[-room:]], 1)[0], "$primary")
    )


def title_line(scene: Scene, width: int) -> Content:
    """The title, the round in a line, and a note: what has no room is left out, the note last."""
    title = Content.styled(scene.title, "bold")
    summaries = (scene.inspection.summary, scene.inspection.brief) if scene.reached("judge") else ()
    forms = [*(title + f" · {words}" for words in summaries), title]
    for left in forms:
        for note in (*scene.notes, *(scene.aside if left is not title or not summaries else ())):
            gap = width - left.cell_length - cell_len(note)
            if gap > 1:
                return left + Content.styled(" " * gap + note, "$primary")
    *longer, last = forms[:-1] or forms
    return next((each for each in longer if each.cell_length <= width), last).truncate(width, ellipsis=True)


def explanation(scene: Scene) -> str:
    inspection = scene.inspection
    if scene.remark:
        return scene.remark
    if scene.phases and inspection.step.draft:
        tokens = counted(len(inspection.step.emitted), "token")
        verdicts = {token.verdict for token in inspection.step.emitted}
        if scene.phase == "emit" and verdicts == {"accepted"}:
            return f"The answer ends with what was kept: {tokens} in one round."
        step = inspection.step
        words = TREE_WORDS if step.tree else PHASE_WORDS if step.match is None else LOOKUP_WORDS
        words = UNTOLD_WORDS if any(token.text is None for token in step.draft) else words
        drafts, places = (counted(len(step.draft), noun) for noun in ("guess", "place"))
        guesses = "The one guess is" if len(step.draft) == 1 else f"All {drafts} are"
        counts = {"drafts": drafts, "places": places, "guesses": guesses, "verified": step.num_verified}
        return words[scene.phase].format(**counts, tokens=tokens)
    return inspection.why(_explained(scene))


def _explained(scene: Scene) -> int:
    """The column that is explained: the cursor's, or else the one that ended the round."""
    if scene.cursor is not None:
        return scene.cursor
    if not scene.reached("judge"):
        return 0  # to look at the end would give it away
    return max(len(scene.inspection.step.emitted) - 1, 0)


Cell = tuple[str, str]
"""The text of a cell and its style."""


FURTHER_ROWS = {name: Label(name, "") for name in FURTHER}
"""The rows of further choices, by name: only rounds with a tree have them."""
LABELS = {"draft": GUESS, **FURTHER_ROWS, "drafter": DRAFTER_SURE, "target": TARGET_SURE, "choice": TARGET_WRITES,
          "own": SURE_OF_OWN, "random": RANDOM, "outcome": OUTCOME}  # fmt: skip
ROWS = tuple(LABELS)
DISPENSABLE = ("own", "drafter", "random", *reversed(FURTHER_ROWS), "target")
"""Rows that may be left out, in the order in which they go where there is no room."""


def _table(scene: Scene, width: int, height: int) -> list[Content]:
    """The rows: what was drafted and what else of a tree, the drafter's and the target's odds for the first, the
    target's choice and its odds, the random number, the verdict."""
    columns = scene.inspection.columns
    absent = set(FURTHER_ROWS) - {_row_of(each) for column in columns for each in column.further}
    if all(column.noise is None for column in columns):
        absent.add("random")
    rows = [row for row in ROWS if row not in absent]
    dropped = [row for row in DISPENSABLE if row in rows][: max(len(rows) - height, 0)]
    rows = [row for row in rows if row not in dropped]
    cells = [dict(zip(ROWS, _cells(scene, index), strict=True)) for index in range(len(columns))]
    label_width = WIDE_LABEL if width >= ROOMY else LABEL_WIDTH
    first, widths = _fit([[column[row][0] for row in rows] for column in cells], width - label_width, scene)
    more = "›" if first + len(widths) < len(cells) else ""
    shown = list(enumerate(widths, start=first))
    unknown = _unknown_rows(columns)
    labels = LABELS | ({"drafter": FOUND_SURE} if _looked_up(columns) else {})
    names = {row: label.name if width >= ROOMY else label.short for row, label in labels.items()}
    return [
        Content.assemble((f"{names.get(row, row):<{label_width}}", NUMBERS), (NOT_KNOWN, PENDING))
        if row in unknown
        else Content.assemble(
            (f"{names.get(row, row):<{label_width - 1}}{'‹' if first else ' '}", NUMBERS),
            *(cell for index, size in shown for cell in _padded(cells[index][row], size, index == _split(scene))),
            (more, NUMBERS),
        )
        for row in rows
    ]


def _looked_up(columns: tuple[Column, ...]) -> bool:
    """Whether the guesses were looked up in the text, so that the odds are those of a match."""
    sources = {column.draft.source for column in columns if column.draft}
    return sources == {"lookup"}


def _unknown_rows(columns: tuple[Column, ...]) -> set[str]:
    """Rows of odds that the source of the round knows nothing of."""
    drafts = [column.draft.probability for column in columns if column.draft]
    choices = [column.choice.probability for column in columns if column.choice]
    unknown = {"drafter"} if drafts and set(drafts) == {None} else set()
    return unknown | ({"target", "own"} if choices and set(choices) == {None} else set())


def _padded(cell: Cell, size: int, parted: bool) -> Iterator[Cell]:
    """A cell cut or filled to its column. The gap is outside the struck-through and underlined text."""
    text, style = cell
    shown = text if cell_len(text) <= size else set_cell_size(text, size - 1) + "…"
    rest = " " * (size - cell_len(shown))
    yield " " * GAP * parted, ""
    yield from ((shown + rest, style),) if style.endswith(CURSOR) else ((shown, style), (rest, ""))
    yield " ", ""


def _split(scene: Scene) -> int | None:
    """The column before which a gap parts the kept guesses from the rejected; None for no gap."""
    step = scene.inspection.step
    return step.num_accepted if scene.reached("judge") and 0 < step.num_accepted < len(step.draft) else None


def _fit(texts: list[list[str]], room: int, scene: Scene) -> tuple[int, list[int]]:
    """The first column to show, and the widths: all if narrow enough, else those around the cursor. No end mark is
    cut."""
    wanted = [max(map(cell_len, column)) for column in texts]
    least = [max([SHORTEST_CELL, *(cell_len(text) for text in column if END_MARK in text)]) for column in texts]
    room -= GAP
    for longest in range(LONGEST_CELL, SHORTEST_CELL - 1, -1):
        widths = [min(size, max(longest, fewest)) for size, fewest in zip(wanted, least, strict=True)]
        if sum(widths) + len(widths) <= room:
            return 0, widths
    per_view = max((room - 1) // (max(least, default=SHORTEST_CELL) + 1), 1)
    first = min(max(_explained(scene) - per_view // 2, 0), max(len(texts) - per_view, 0))
    return first, [min(size, fewest) for size, fewest in zip(wanted, least, strict=True)][first : first + per_view]


def _cells(scene: Scene, index: int) -> list[Cell]:
    """The cells of column ``index``, from top to bottom."""
    column = scene.inspection.columns[index]
    drafted, *odds = _draft_cells(scene, column)
    cells = [
        drafted,
        *(_further_cell(scene, column.further, row) for row in FURTHER_ROWS),
        *odds,
        *_choice_cells(scene, column),
        ("" if column.noise is None or not scene.reached("verify") else f"{column.noise:.3f}"[1:], NUMBERS),
        (f"{VERDICTS[column.outcome]}{column.number}" if scene.reached("judge") else f" {column.number}", NUMBERS),
    ]
    if index == scene.cursor:
        return [(text, f"{style} {CURSOR}".strip()) for text, style in cells]
    return cells


def _draft_cells(scene: Scene, column: Column) -> list[Cell]:
    draft: DraftToken | None = column.draft
    if draft is None:
        return [("", "")] * 3
    if not scene.reached("draft"):
        return [(MASK, PENDING), ("", ""), ("", "")]
    outcome: Outcome = "rejected" if column.kept_further else column.outcome
    style = DRAFT_STYLES[outcome] if scene.reached("judge") else "$foreground"
    given = draft.target_probability if scene.reached("verify") else None
    return [
        (visible(draft_text(draft)), style),
        (_odds(draft.probability), NUMBERS),
        (_odds(given), NUMBERS),
    ]


def _row_of(further: Further) -> str:
    *choices, looked_up_row = FURTHER_ROWS
    return looked_up_row if further.token.source == "lookup" else choices[min(further.token.choice, len(choices)) - 1]


def _further_cell(scene: Scene, further: tuple[Further, ...], row: str) -> Cell:
    """One of the choices behind the first; the accepted one has its mark, for whoever sees no colours."""
    here = next((each for each in further if _row_of(each) == row), None)
    if here is None or not scene.reached("draft"):
        return "", NUMBERS
    text = visible(here.token.text)
    if not scene.reached("judge"):
        return text, "$foreground"
    return VERDICTS["accepted"] * (here.fate == "accepted") + text, FURTHER_STYLES[here.fate]


def _choice_cells(scene: Scene, column: Column) -> list[Cell]:
    choice: EmittedToken | None = column.choice
    if choice is None or not scene.reached("verify"):
        return [("", "")] * 2
    joined = scene.reached("emit")
    style = CHOICE_STYLES.get(column.outcome, "$foreground") if joined else "$foreground"
    mark = MARKS.get(choice.verdict, "") if joined else ""
    name = END_MARK if choice.channel == "control" else visible(choice.text)
    return [(mark + name, style), (_odds(choice.probability), NUMBERS)]


def _odds(value: float | None) -> str:
    return "" if value is None else probability(value)
