"""A round of a recorded answer that goes round and round: what this program is about, before anything is asked."""

from __future__ import annotations

import asyncio
from functools import cache

from rich.cells import cell_len
from textual.content import Content
from textual.timer import Timer
from textual.widget import Widget

from dflash_tui.core.figures import labels
from dflash_tui.core.rounds.cells import show_blanks
from dflash_tui.core.rounds.inspection import Inspection, inspect_step, telling
from dflash_tui.core.rounds.playback import PHASES, Phase
from engine.events import Step

from ...options import options_of
from .large_round import GROUNDS, OWN_GROUNDS, QUIET, round_lines
from .step_table import Scene

SECONDS: dict[Phase, float] = {"block": 1.0, "draft": 2.0, "verify": 2.0, "judge": 2.0, "emit": 3.5}
"""Seconds that each phase stands."""
TRACE = "code"
"""The bundled recording to take a round from."""
LARGE = 6
"""Rows from which on the round stands in large cells; below it is one line."""


@cache
def recorded_round() -> Inspection:
    """The first telling round of the bundled recording."""
    # Imported here: the first frame doesn't wait for who reads recordings.
    from dflash_tui.core.replay.bundled import find_recording
    from dflash_tui.core.replay.recording import read_recording

    steps = (event for event in read_recording(find_recording(TRACE)).events() if isinstance(event, Step))
    return inspect_step(telling(steps), 0, 0, None)


class LivingRound(Widget):
    """A round that plays again and again until :meth:`rest`; for users who want less motion it stands at its end."""

    DEFAULT_CSS = """
    LivingRound { height: 2; text-wrap: nowrap; text-overflow: clip; }
    """

    def __init__(self) -> None:
        super().__init__()
        self.phase: Phase = PHASES[0]
        self.inspection: Inspection | None = None
        """The round that plays; None until the recording has been read."""
        self._timer: Timer | None = None

    def on_mount(self) -> None:
        self.run_worker(self._read(), name="round")
        if options_of(self).reduced_motion:
            self.phase = PHASES[-1]
            return
        self._wait()
        focused = self.screen.focused
        if focused is not None and hasattr(focused, "selection"):  # every key that writes moves the caret
            self.watch(focused, "selection", self.rest, init=False)
        self.watch(self.screen, "focused", self.rest, init=False)

    async def _read(self) -> None:
        """Read the recording on a thread of its own: the screen would stand still meanwhile."""
        self.inspection = await asyncio.to_thread(recorded_round)
        self.refresh()

    def _wait(self) -> None:
        self._timer = self.set_timer(SECONDS[self.phase], self._go_on)

    def _go_on(self) -> None:
        if self.screen.is_current:  # below another screen nobody sees it
            self.phase = PHASES[(PHASES.index(self.phase) + 1) % len(PHASES)]
            self.refresh()
        self._wait()

    def rest(self) -> None:
        """Stand still from now on, with the whole round to be seen."""
        if self._timer is not None:
            self._timer.stop()
            self._timer = None
            self.phase = PHASES[-1]
            self.refresh()

    @property
    def moves(self) -> bool:
        return self._timer is not None

    def render(self) -> Content:
        if self.inspection is None:
            return Content()
        scene = Scene(self.inspection, phase=self.phase)
        height = self.size.height - 1
        drawn = round_lines(scene, self.size.width, height) if height >= LARGE else [_one_line(scene, self.size.width)]
        return Content("\n").join([caption(scene), *drawn, *[Content()] * (height - len(drawn))])


def caption(scene: Scene) -> Content:
    """A sentence that says what happens in the scene's phase."""
    return Content.styled(labels.caption(scene.phase, scene.inspection.step), "bold")


def _one_line(scene: Scene, width: int) -> Content:
    """What was guessed, underlined while it is checked, on grounds once it is judged, and the correction; at the end
    how many have no room."""
    cells: list[tuple[str, str]] = []
    waiting = f"underline {QUIET}" if scene.phase == "verify" else QUIET
    for column in scene.inspection.columns:
        if column.draft is None:
            continue
        text = show_blanks(column.draft.text or "") if scene.reached("draft") else "░░"
        cells.append((text, GROUNDS[column.outcome] if scene.reached("judge") else waiting))
        if column.choice is not None and column.choice.verdict == "corrected" and scene.reached("emit"):
            cells.append((show_blanks(column.choice.text), OWN_GROUNDS["corrected"]))
    pieces: list[tuple[str, str]] = []
    for index, (text, style) in enumerate(cells):
        left, used = len(cells) - index, sum(cell_len(piece) for piece, _ in pieces)
        if used + cell_len(text) > width - 4 * (left > 1):
            pieces.append((f"+{left}", "$verdict-pending"))
            break
        pieces += [(text, style), (" ", "")]
    return Content.assemble(*pieces)
