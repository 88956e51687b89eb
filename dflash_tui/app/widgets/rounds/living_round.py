"""A round of a recorded answer that goes round and round: what this program is about, before anything is asked."""

from __future__ import annotations

import asyncio
from functools import cache

from textual.content import Content
from textual.timer import Timer
from textual.widget import Widget

from dflash_tui.core.figures import labels
from dflash_tui.core.rounds.cells import show_blanks
from dflash_tui.core.rounds.inspection import Inspection, inspect_step
from dflash_tui.core.rounds.playback import PHASES, Phase
from engine.events import Step

from ...options import options_of
from .large_round import GROUNDS, OWN_GROUNDS, QUIET, round_lines
from .step_table import Scene

SECONDS: dict[Phase, float] = {"block": 1.0, "draft": 2.0, "verify": 2.0, "judge": 2.0, "emit": 3.5}
"""How long each phase stands."""
TRACE, LEAST_KEPT, MOST_KEPT = "code", 8, 12
"""Whose round it is, and how many guesses it kept: many, with a correction behind them."""
LARGE = 6
"""Rows from which on the round stands in large cells; below it is one line."""


@cache
def recorded_round() -> Inspection:
    """The first such round of the recording."""
    # Imported here: the first frame doesn't wait for who reads recordings.
    from dflash_tui.core.traces.bundled import find_trace
    from dflash_tui.core.traces.reader import read_trace

    steps = (event for event in read_trace(find_trace(TRACE)).events() if isinstance(event, Step))
    step = next(
        step
        for step in steps
        if LEAST_KEPT <= step.num_accepted <= MOST_KEPT and step.emitted[-1].verdict == "corrected"
    )
    return inspect_step(step, 0, 0, None)


class LivingRound(Widget):
    """Moves until :meth:`rest`, or a first key; for those who asked for less motion it stands at its end."""

    DEFAULT_CSS = """
    LivingRound { height: 2; text-wrap: nowrap; text-overflow: clip; }
    """

    def __init__(self) -> None:
        super().__init__()
        self.phase: Phase = PHASES[0]
        self.inspection: Inspection | None = None
        """None until the recording has been read."""
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
        """Beside the screen, which would stand still meanwhile."""
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
        return Content("\n").join([*drawn, *[Content()] * (height - len(drawn)), caption(scene)])


def caption(scene: Scene) -> Content:
    """What happens in this phase."""
    return Content.styled(labels.caption(scene.phase, scene.inspection.step), "bold")


def _one_line(scene: Scene, width: int) -> Content:
    """What was guessed, on grounds once it is judged, and the correction."""
    pieces: list[tuple[str, str]] = []
    for column in scene.inspection.columns:
        if column.draft is None:
            continue
        if not scene.reached("draft"):
            pieces += [(" ░░ ", QUIET), (" ", "")]
            continue
        ground = GROUNDS[column.outcome] if scene.reached("judge") else QUIET
        pieces += [(f" {show_blanks(column.draft.text or '')} ", ground), (" ", "")]
        if column.choice is not None and column.choice.verdict == "corrected" and scene.reached("emit"):
            pieces += [(f" {show_blanks(column.choice.text)} ", OWN_GROUNDS["corrected"]), (" ", "")]
    return Content.assemble(*pieces).truncate(width)
