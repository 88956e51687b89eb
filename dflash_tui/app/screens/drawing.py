"""The part of the chat screen that draws: what the engine said becomes transcript, gauges and the status line."""

from __future__ import annotations

import gc
from collections.abc import Sequence

from textual.screen import Screen

from dflash_tui.core.conversation.chat import Chat
from dflash_tui.core.conversation.spans import Span
from dflash_tui.core.conversation.start import Start
from dflash_tui.core.figures.gpu import GpuMonitor, GpuReading
from dflash_tui.core.figures.statistics import TurnSnapshot
from dflash_tui.core.figures.tables import GaugeFacts
from dflash_tui.core.rounds.stretch import Happening, Rewind
from dflash_tui.core.traces.replaying import ReplaySource
from engine.commands import MIN_BLOCK_SIZE
from engine.events import EngineReady, LoadProgress, TurnFinished

from ..pump import FramePump
from ..source import EventQueue
from ..talk import Talk
from ..viewer import Viewer
from ..widgets.gauge_panel import GaugePanel
from ..widgets.loading import LoadPanel
from ..widgets.prompt import Prompt
from ..widgets.replay_bar import ReplayBar
from ..widgets.round_strip import RoundStrip
from ..widgets.slider import BlockSlider, Slider
from ..widgets.starters import Starters
from ..widgets.status import Header, StatusFacts, StatusLine
from ..widgets.token_log import TokenLog


class Drawing(Screen[None]):
    """Shows what changed since the frame before. The parts it shows belong to the screen that this is a part of."""

    begin: Start
    chat: Chat
    gpu: GpuMonitor
    pump: FramePump
    queue: EventQueue
    replay: ReplaySource | None
    talk: Talk
    viewer: Viewer

    _gpu_shown: GpuReading | None = None
    _log_failure_told = False
    _settled = False
    """What loading left has been put aside."""

    def draw(self, events: Sequence[Happening], gauges: bool) -> None:
        """Show what changed. Called by the pump after the events were applied."""
        if not self.app.is_running or not self.query(TokenLog):
            return  # leaving: the widgets go before the pump does, and before the app says that it is over
        if any(isinstance(event, Rewind) for event in events):
            self.query_one(TokenLog).clear()
        self.query_one(TokenLog).append(self.chat.reducer.take_spans())
        self.viewer.frame()
        self.query_one(ReplayBar).show(events)
        if not self.chat.reducer.busy and events:
            self._draw_loading(events)
        if gauges:
            if self.gpu.latest is not self._gpu_shown or any(not isinstance(event, LoadProgress) for event in events):
                self._gpu_shown = self.gpu.latest
                self.draw_gauges()
            self.draw_status()
        if any(isinstance(event, TurnFinished) for event in events):
            self.talk.after_turn()
        self._tell_log_failure()

    def _draw_loading(self, events: Sequence[Happening]) -> None:
        panel, reducer = self.query_one(LoadPanel), self.chat.reducer
        if reducer.failure is not None:
            panel.show_error(reducer.failure)
            panel.display = True
        elif reducer.ready is None and panel.display:
            panel.show_progress(reducer.loading)
        for event in events:
            if isinstance(event, EngineReady):
                self._become_ready(event)

    def _become_ready(self, ready: EngineReady) -> None:
        self.query_one(LoadPanel).display = False
        self.query_one(Header).show(ready)
        if ready.device != "cpu" and self.replay is None:
            self.pump.on_gpu(True)
            self.gpu.start()
        self._limit_block(ready.max_block_size)
        if ready.banner and self.begin.conversation is None:
            self.query_one(TokenLog).append([Span(f"{ready.banner}\n\n", "note")])
            self.query_one(Starters).display = not self.chat.exchanges and self.replay is None
        self.talk.tell_other_model()
        if not self._settled:
            self._settled = True
            # Loading left some hundred thousand objects that never go away; a full collection would stall a frame.
            gc.collect()
            gc.freeze()

    def _limit_block(self, most: int) -> None:
        slider = self.query_one(BlockSlider)
        if most < MIN_BLOCK_SIZE:
            slider.disabled = True
            return
        slider.limit(most)
        if slider.size_chosen != self.chat.settings.block_size:
            self.chat.adjust(block_size=slider.size_chosen)

    def draw_gauges(self) -> None:
        self.query_one(GaugePanel).show(self._gauge_facts())
        self.query_one(RoundStrip).show(self.viewer.step)
        self.viewer.show_steps()

    def _gauge_facts(self) -> GaugeFacts:
        """Where the user looks."""
        turn, ready = self.viewer.turn, self.chat.reducer.ready
        return GaugeFacts(
            self.viewer.snapshot or TurnSnapshot(),
            max_context=ready.max_context if ready else 0,
            plain_ms=self.chat.reducer.plain_ms,
            before_race=turn.before_race if turn else False,
            speculation=turn.speculation if turn else True,
            gpu=self.gpu.latest,
            num_prompt_tokens=turn.num_prompt_tokens if turn else 0,
            num_reused_tokens=turn.num_reused_tokens if turn else 0,
            screen_load=self.pump.governor.load if self.chat.busy else None,
        )

    def draw_status(self) -> None:
        self.query_one(Prompt).cursor_blink = not self.chat.busy and self.viewer.motion.moves
        self.query_one(StatusLine).show(self._facts())
        self.query_one(Header).tell_system(self.chat.system)

    def _facts(self) -> StatusFacts:
        reducer = self.chat.reducer
        turn = reducer.turn
        if turn is None or reducer.ready is None:
            return StatusFacts(self._state(), self.chat.busy, hint=self._hint)
        shown = self.viewer.snapshot or TurnSnapshot()
        return StatusFacts(
            state=self._state(),
            active=self.chat.busy,
            hint=self._hint,
            tok_s=round(shown.rate.mean),
            acceptance_length=shown.acceptance.mean_acceptance_length,
            context_length=shown.context_length,
            max_context=reducer.ready.max_context,
            reused=turn.num_reused_tokens,
            screen_load=round(self.pump.governor.load, 2) if self.chat.busy else None,
        )

    @property
    def _hint(self) -> str:
        return self.focused.hint if isinstance(self.focused, Slider) else ""

    def _state(self) -> str:
        if self.chat.reducer.phase == "failed":
            return "the engine has ended"
        if self.chat.waiting:
            return "waiting for the models"
        if self.chat.stopping:
            return "stopping"
        if self.chat.busy:
            return "streaming" if self.chat.reducer.phase == "streaming" else "reading the prompt"
        return self.chat.reducer.phase

    def _tell_log_failure(self) -> None:
        trace = self.queue.trace
        failure = self.queue.log.failure or (trace.failure if trace else None)
        if failure and not self._log_failure_told:
            self._log_failure_told = True
            self.notify(
                failure, title="The conversation is not being recorded", severity="error", timeout=12, markup=False
            )
