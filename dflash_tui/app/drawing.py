"""What the source said becomes transcript, gauges and the status line."""

from __future__ import annotations

import gc
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from dflash_tui.core.figures.gpu import GpuReading
from dflash_tui.core.figures.statistics import TurnSnapshot
from dflash_tui.core.figures.tables import GaugeFacts
from dflash_tui.core.source import Happening, Rewind
from dflash_tui.core.text.spans import Spans
from engine.commands import MIN_BLOCK_SIZE
from engine.events import EngineReady, LoadProgress, Source, TurnFinished, TurnStarted

from .widgets.gauge_panel import GaugePanel
from .widgets.loading import LoadPanel
from .widgets.prompt import Prompt
from .widgets.replay_bar import ReplayBar
from .widgets.round_strip import RoundStrip
from .widgets.slider import BlockSlider, Slider, TemperatureSlider
from .widgets.starters import Starters
from .widgets.status import Header, StatusFacts, StatusLine
from .widgets.token_log import TokenLog

if TYPE_CHECKING:
    from .screens.chat import ChatScreen

SETTLE_SECONDS = 0.3
"""After ready, before objects are set aside: it takes a quarter of a second, in which nothing could be drawn."""
NO_DRAFTER = "No drafter is loaded: there is no block to size."


class Drawing:
    """Shows what changed since the frame before."""

    def __init__(self, screen: ChatScreen) -> None:
        self._screen = screen
        self._gpu_shown: GpuReading | None = None
        self._guessers: set[Source] | None = None
        """Whom the source lens's legend named when they last changed."""
        self._log_failure_told = False
        self.settled = False
        """What loading left has been put aside."""

    def draw(self, events: Sequence[Happening], gauges: bool) -> None:
        """Show what changed. Called by the pump after the events were applied."""
        screen = self._screen
        if not screen.app.is_running or not screen.display:
            return  # leaving: the widgets go one by one, before the pump does and before the app says that it is over
        if any(isinstance(event, Rewind) for event in events):
            screen.query_one(TokenLog).clear()
        for event in events:
            if isinstance(event, EngineReady):
                self._become_ready(event)
        screen.query_one(TokenLog).append(self._said(screen.chat.reducer.take_spans()))
        for turn, spans in screen.chat.reducer.take_settled().items():
            screen.query_one(TokenLog).relabel(turn, spans)
            screen.viewer.settle(turn)
        screen.viewer.frame()
        screen.query_one(ReplayBar).show()
        for event in events:
            if isinstance(event, TurnStarted):
                self._show_settings(event.settings)
        if not screen.chat.reducer.busy and events:
            self._draw_loading()
        if gauges:
            if screen.gpu.latest is not self._gpu_shown or any(not isinstance(each, LoadProgress) for each in events):
                self._gpu_shown = screen.gpu.latest
                self.draw_gauges()
            self.draw_status()
        if any(isinstance(event, TurnFinished) for event in events):
            screen.talk.after_turn()
        self._tell_log_failure()

    def _draw_loading(self) -> None:
        panel, reducer = self._screen.query_one(LoadPanel), self._screen.chat.reducer
        if reducer.failure is not None and not self._screen.switching.fail(reducer.failure):
            panel.show_error(reducer.failure, self._screen.said)
            panel.display = True
        elif reducer.ready is None and panel.display:
            panel.show_progress(reducer.loading, self._screen.beginning)

    def _said(self, spans: Spans) -> Spans:
        """With the keys that the user has, where the program itself speaks."""
        if self._screen.said is str:
            return spans
        return Spans.of(
            span._replace(text=self._screen.said(span.text)) if span.style == "note" else span for span in spans
        )

    def _become_ready(self, ready: EngineReady) -> None:
        screen = self._screen
        screen.query_one(LoadPanel).display = False
        screen.query_one(Header).show(ready)
        can = screen.source.capabilities
        screen.pump.on_gpu(bool(ready.server) or (ready.device != "cpu" and can.local))
        if ready.device != "cpu" and can.local:
            screen.gpu.start()
        self.offer_settings()
        if can.can("block_size") or screen.source.recording is not None:
            self._limit_block(ready.max_block_size)
        self._tell_lacking()
        if can.can("verdicts"):
            screen.show_legend()
        else:
            screen.viewer.lenses.choose("plain")
        if screen.begin.conversation is None:
            alone = not screen.query_one(TokenLog).length
            screen.talk.introduce(ready.banner)
            if alone:
                screen.call_after_refresh(self._show_beginning)  # the questions to begin with have their rows then
        screen.talk.tell_other_model()
        screen.attaching.look(screen.query_one(Prompt).text)  # tokens can be counted now
        screen.switching.become_ready(ready)
        if not self.settled:
            self.settled = True
            screen.set_timer(SETTLE_SECONDS, _set_objects_aside)

    def _show_beginning(self) -> None:
        """An introduction that has no room is read from its first line, until something is asked."""
        if self._screen.query_one(Starters).display:
            self._screen.query_one(TokenLog).scroll_home(animate=False, immediate=True)

    def _limit_block(self, most: int) -> None:
        screen = self._screen
        slider = screen.query_one(BlockSlider)
        if most < MIN_BLOCK_SIZE:
            slider.offer(NO_DRAFTER)
            return
        slider.limit(most)
        if screen.source.capabilities.can("block_size") and slider.size_chosen != screen.chat.settings.block_size:
            screen.chat.adjust(block_size=slider.size_chosen)

    def offer_settings(self) -> None:
        """A slider of what the source can't change is grey, and says why. What it was, only a recording knows."""
        screen = self._screen
        refused = screen.source.capabilities.refused
        for slider, reason in (
            (screen.query_one(BlockSlider), refused.get("block_size")),
            (screen.query_one(TemperatureSlider), refused.get("temperature")),
        ):
            slider.offer(reason)
            slider.known = reason is None or screen.source.recording is not None

    def _show_settings(self, settings: Mapping[str, Any]) -> None:
        """A slider of what was decided elsewhere says what the turn is decoded with."""
        refused = self._screen.source.capabilities.refused
        block, temperature = self._screen.query_one(BlockSlider), self._screen.query_one(TemperatureSlider)
        if "block_size" in refused:
            block.known = "block_size" in settings
            block.show(settings.get("block_size", block.size_chosen))
        if "temperature" in refused:
            temperature.known = "temperature" in settings
            temperature.value = settings.get("temperature", temperature.value)

    def _tell_lacking(self) -> None:
        """Flags that were typed and that the source can't follow."""
        screen = self._screen
        if lacking := screen.source.capabilities.lacks(screen.begin.wanted):
            words = "\n".join(f"{flag}: {reason}" for flag, reason in lacking.items())
            screen.notify(words, title="Not set", severity="warning", timeout=10, markup=False)

    def draw_gauges(self) -> None:
        screen = self._screen
        screen.query_one(GaugePanel).show(self.gauge_facts())
        screen.query_one(RoundStrip).show(screen.viewer.step)
        lenses = screen.viewer.lenses
        if lenses.lens == "source" and (guessers := lenses.guessers) != self._guessers:
            self._guessers = guessers
            screen.show_legend()
        screen.viewer.show_steps()

    def gauge_facts(self) -> GaugeFacts:
        """Where the user looks."""
        screen = self._screen
        turn, ready = screen.viewer.turn, screen.chat.reducer.ready
        return GaugeFacts(
            self._shown,
            max_context=ready.max_context if ready else 0,
            plain_ms=screen.chat.reducer.plain_ms,
            before_race=turn.before_race if turn else False,
            speculation=turn.speculation if turn else True,
            gpu=screen.gpu.latest,
            times=screen.times,
            num_prompt_tokens=turn.num_prompt_tokens if turn else 0,
            num_reused_tokens=turn.num_reused_tokens if turn else 0,
            screen_load=screen.pump.governor.load if screen.chat.busy else None,
        )

    @property
    def _shown(self) -> TurnSnapshot:
        """Of where the user looks. A question that was refused has left the context as it was."""
        shown = self._screen.viewer.snapshot or TurnSnapshot()
        if shown.context_length or self._screen.chat.busy:
            return shown
        before = (turn.snapshot.context_length for turn in reversed(self._screen.chat.turns))
        return replace(shown, context_length=next((length for length in before if length), 0))

    def draw_status(self) -> None:
        screen = self._screen
        screen.query_one(Prompt).cursor_blink = not screen.chat.busy and screen.viewer.motion.moves
        screen.query_one(StatusLine).show(self._facts())
        screen.query_one(Header).tell_system(screen.chat.system, screen.presets.name)

    def _facts(self) -> StatusFacts:
        screen = self._screen
        reducer = screen.chat.reducer
        turn = reducer.turn
        if turn is None or reducer.ready is None:
            return StatusFacts(self._state(), screen.chat.busy, hint=self._hint)
        shown = self._shown
        return StatusFacts(
            state=self._state(),
            active=screen.chat.busy,
            hint=self._hint,
            tok_s=round(shown.rate.mean),
            acceptance_length=shown.acceptance.mean_acceptance_length,
            context_length=shown.context_length,
            max_context=reducer.ready.max_context,
            reused=turn.num_reused_tokens,
            screen_load=round(screen.pump.governor.load, 2) if screen.chat.busy else None,
        )

    @property
    def _hint(self) -> str:
        return self._screen.focused.hint if isinstance(self._screen.focused, Slider) else ""

    def _state(self) -> str:
        screen = self._screen
        if screen.chat.reducer.phase == "failed":
            failure = screen.chat.reducer.failure
            return "no server" if failure and failure.kind == "server" else "the engine has ended"
        if screen.chat.waiting:
            return "waiting for the models" if screen.source.capabilities.local else "waiting for the server"
        if screen.chat.stopping:
            return "stopping"
        if screen.chat.busy:
            return "streaming" if screen.chat.reducer.phase == "streaming" else "reading the prompt"
        if screen.runs.words:
            return screen.runs.words
        return screen.chat.reducer.phase

    def _tell_log_failure(self) -> None:
        screen = self._screen
        trace = screen.queue.trace
        failure = screen.queue.log.failure or (trace.failure if trace else None)
        if failure and not self._log_failure_told:
            self._log_failure_told = True
            screen.notify(
                failure, title="The conversation is not being recorded", severity="error", timeout=12, markup=False
            )


def _set_objects_aside() -> None:
    """Loading left some hundred thousand objects that never go away: each full collection would stall a frame."""
    gc.collect()
    gc.freeze()
