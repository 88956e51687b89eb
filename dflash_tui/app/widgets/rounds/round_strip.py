"""The latest round: what was drafted, what was kept, what the target wrote instead; and what colours mean."""

from __future__ import annotations

from rich.cells import cell_len
from textual.content import Content
from textual.widget import Widget

from dflash_tui.core.figures.labels import COLOURS, SERVERS
from dflash_tui.core.rounds.cells import Fate, round_cells, round_summary, show_blanks
from dflash_tui.core.rounds.lenses import LEGENDS, Lens, Shade
from dflash_tui.core.text.counted import ms_text
from dflash_tui.core.text.wrapping import shortened, width_of
from engine.events import Step

STYLES: dict[Fate, str] = {
    "accepted": "$verdict-accepted-mark $verdict-accepted",
    "rejected": "$verdict-rejected-mark $verdict-rejected",
    "discarded": "strike $verdict-rejected",
    "unverified": "italic $verdict-pending",
    "ended": "italic $verdict-pending",
    "corrected": "$verdict-corrected-mark $verdict-corrected",
    "bonus": "$verdict-bonus-mark $verdict-bonus",
    "plain": "$verdict-plain-mark $verdict-plain",
    "unknown": "underline $verdict-pending",
}
"""The style of a token by its fate, in the theme's colours and attributes."""
MARKS: dict[Fate, str] = {"corrected": "⇒", "bonus": "+", "unknown": "?"}
"""A mark in front of the target's own tokens, for readers who see no colours."""
LABELS = COLOURS | SERVERS
LONGEST_CELL = 14


def legend(server: bool = False, narrow: bool = False, room: int | None = None) -> Content:
    """What the colours and attributes of the transcript mean; only a ``server`` leaves something open. Where it is
    ``narrow``, only what the transcript itself holds, in fewer words; in ``room`` cells, as much as they take."""
    fates: tuple[Fate, ...] = ("accepted", "corrected", "bonus", "rejected", "plain")
    fates = (*(fate for fate in fates if fate != "rejected" or not narrow), "unknown") if server else fates
    brief = (server and narrow) or room is not None
    words = [(LABELS[fate].short if brief else LABELS[fate].name, STYLES[fate]) for fate in fates]
    while room is not None and cell_len("  ".join(word for word, _ in words)) > room:
        words.pop()
    return Content("  ").join(Content.styled(word, style) for word, style in words)


class RoundStrip(Widget):
    """A title, the round's tokens, and where there is room, the drafter's probability under each."""

    DEFAULT_CSS = """
    RoundStrip { height: 3; color: $foreground; }
    """

    def __init__(self, *, id: str) -> None:
        super().__init__(id=id)
        self.step: Step | None = None

    def show(self, step: Step | None) -> None:
        self.step = step
        self.refresh()

    def render(self) -> Content:
        if self.step is None:
            return Content.styled("The rounds of an answer show here: guessed, kept, corrected.", "$verdict-pending")
        tokens, probabilities = _cells(self.step, self.size.width)
        lines = [self._title(self.step), tokens, probabilities]
        return Content("\n").join(lines[: max(self.size.height, 1)])

    def _title(self, step: Step) -> Content:
        number = Content.styled(f"round {step.index}", "bold")
        title, brief = (number + f" · {round_summary(step, brief=few)}" for few in (False, True))
        whole = step.total_ms
        spent = f"{ms_text(whole, whole)} ms"
        if step.draft_ms is not None and step.verify_ms:  # none for the prompt's token
            spent = f"guess {ms_text(step.draft_ms, whole)} + check {ms_text(step.verify_ms, whole)} ms"
        times = Content.styled(f" · {spent}", "$verdict-pending")
        titles = (title + times, title, brief)
        fits = (each for each in titles if each.cell_length <= self.size.width)
        return next(fits, None) or brief.truncate(self.size.width, ellipsis=True)


def _cells(step: Step, width: int) -> tuple[Content, Content]:
    """Tokens and, aligned under them, probabilities; what does not fit is counted at the end."""
    cells = round_cells(step)
    tokens: list[tuple[str, str]] = []
    numbers: list[str] = []
    used = 0
    for index, cell in enumerate(cells):
        text = MARKS.get(cell.fate, "") + visible(cell.text)
        number = "" if cell.probability is None else probability(cell.probability)
        size = max(cell_len(text), len(number))
        left = len(cells) - index
        more = f"+{left} more"
        if used + size > width - (len(more) + 1 if left > 1 else 0):
            tokens.append((more, "$verdict-pending"))
            break
        # The gap is outside the struck-through and underlined text.
        tokens += [(text, STYLES[cell.fate]), (" " * (size - cell_len(text) + 1), "")]
        numbers.append(f"{number:<{size + 1}}")
        used += size + 1
    return Content.assemble(*tokens), Content.styled("".join(numbers).rstrip(), "$verdict-pending")


def visible(text: str) -> str:
    """A token with its blanks shown, cut to the length of a cell; a sign in the place of one that takes no room."""
    shown = shortened(show_blanks(text), LONGEST_CELL)
    return shown if width_of(shown) else "\N{REPLACEMENT CHARACTER}"


def probability(value: float) -> str:
    """Two digits: ``.07``, ``.99``; only certainty is ``1``, and what would round to nothing is ``<.01``."""
    if value < 0.005:
        return "<.01"
    hundredths = int(value * 100 + 0.5)  # .015 is .02 for readers, whatever the float below it
    return "1" if hundredths >= 100 else f".{hundredths:02}"


SHADE_STYLES: dict[Shade, str] = {
    "sure-1": "bold underline $ramp-4-text on $ramp-4",
    "sure-2": "italic underline $ramp-3-text on $ramp-3",
    "sure-3": "underline $ramp-2-text on $ramp-2",
    "sure-4": "italic $ramp-1-text on $ramp-1",
    "sure-5": "$foreground",
    "undrafted": "$verdict-pending",
    "even": "$foreground",
}
"""The style of a token by its shade: the stronger, the more to look at; each has attributes beside the colour."""


def lens_legend(lens: Lens, server: bool = False, narrow: bool = False) -> Content:
    """What the colours of the transcript mean through this lens."""
    if lens == "verdict":
        return legend(server, narrow)
    name = Content.styled(f"{lens}  ", "bold $foreground")
    return name + Content("  ").join(
        Content.styled(brief if narrow else words, SHADE_STYLES[shade]) for shade, words, brief in LEGENDS.get(lens, ())
    )
