"""The chat: transcript, prompt, gauges and sliders."""

from __future__ import annotations

import gc
from collections.abc import Sequence
from pathlib import Path
from typing import ClassVar

from textual import events, on
from textual.app import ComposeResult
from textual.binding import Binding, BindingType
from textual.containers import Container, Horizontal
from textual.widget import Widget
from textual.widgets import Static

from dflash_tui.core.chat import Chat
from dflash_tui.core.gpu import GpuMonitor
from dflash_tui.core.reducer import Span
from dflash_tui.core.sessions import SessionLog
from dflash_tui.core.slash import SlashError, parse_slash
from dflash_tui.core.start import Start
from dflash_tui.core.starters import STARTERS
from dflash_tui.core.statistics import TurnSnapshot
from dflash_tui.core.stretch import Happening, Rewind
from dflash_tui.core.tables import GaugeFacts, tables
from dflash_tui.core.traces.replaying import ReplaySource
from engine.commands import MIN_BLOCK_SIZE, Close, GenerationSettings, Stop
from engine.events import EngineReady, TurnFinished

from ..actions import ACTIONS, SLASH
from ..completion import Candidate, complete
from ..pump import FramePump
from ..source import EventQueue, SourceFactory, replay_source
from ..talk import Talk
from ..viewer import Viewer
from ..widgets.completion_menu import CompletionMenu
from ..widgets.gauge_panel import GaugePanel
from ..widgets.gauges import Gauge
from ..widgets.loading import LoadPanel
from ..widgets.panel import Panel
from ..widgets.prompt import MAX_CHARACTERS, Prompt
from ..widgets.queued import QueuedQuestions
from ..widgets.rendered import RenderedView
from ..widgets.replay_bar import PLACEHOLDER, ReplayBar
from ..widgets.round_strip import RoundStrip
from ..widgets.slider import BlockSlider, Slider, TemperatureSlider
from ..widgets.starters import Starter, Starters
from ..widgets.status import Header, StatusFacts, StatusLine
from ..widgets.step_view import StepView
from ..widgets.token_log import TokenLog
from .help import HelpScreen
from .jump import JumpScreen
from .looking import Looking
from .statistics import StatisticsScreen


def _tab_place(widget: Widget) -> int:
    """Prompt, sliders, everything else in its order on the screen, the transcript last."""
    places = ((Prompt, 0), (Slider, 1), (TokenLog, 3))
    return next((place for kind, place in places if isinstance(widget, kind)), 2)


class ChatScreen(Looking):
    """The home screen. What the user does becomes a call of :class:`Chat`; what the engine says is drawn by frames."""

    CSS_PATH = "chat.tcss"
    AUTO_FOCUS = "#prompt"
    HORIZONTAL_BREAKPOINTS = [(0, "-tiny"), (60, "-slim"), (80, "-narrow"), (100, "-wide"), (150, "-vast")]
    VERTICAL_BREAKPOINTS = [(0, "-flat"), (18, "-low"), (20, "-short"), (32, "-tall")]
    BINDINGS: ClassVar[list[BindingType]] = [
        Binding(action.keys, f"act('{action.id}')", action.title, action.listed, priority=action.priority, id=action.id)
        for action in ACTIONS.values()
        if action.keys
    ]

    def __init__(
        self,
        settings: GenerationSettings,
        out_dir: Path,
        queue: EventQueue,
        source: SourceFactory,
        begin: Start | None = None,
    ) -> None:
        super().__init__()
        self.begin = begin or Start()
        self.out_dir = out_dir
        self.queue = queue
        self.source = source(queue.put)
        self.replay = self.source if isinstance(self.source, ReplaySource) else None
        """The trace that is played in the engine's place, if one is."""
        self.chat = Chat(settings, self.source.send)
        self.pump = FramePump(self.chat, queue, self.draw)
        self.quit_until = 0.0
        """Until when a second Ctrl+C leaves."""
        self.talk = Talk(self)
        self.viewer = Viewer(self)
        self.gpu = GpuMonitor()
        self._gpu_shown = self.gpu.latest
        self._log_failure_told = False
        self._started = False

    def compose(self) -> ComposeResult:
        yield Header(id="header")
        with Container(id="body"):
            with Container(id="conversation"):
                yield LoadPanel(id="load")
                yield TokenLog(id="transcript")
                yield RenderedView(id="rendered")
                yield Starters(STARTERS, id="starters")
            yield Panel(self.chat.settings, id="panel")
        yield RoundStrip(id="round")
        yield StepView(id="steps")
        yield QueuedQuestions(id="queue")
        yield ReplayBar(self.replay, id="replay")
        yield CompletionMenu(id="completion")
        with Horizontal(id="ask"):
            yield Static("❯", id="mark")
            yield Prompt(id="prompt", questions=self.begin.questions)
        yield StatusLine(id="status")

    def on_mount(self) -> None:
        self.query_one(LoadPanel).show_progress([])
        self.show_legend()
        prompt = self.query_one(Prompt)
        prompt.completer, prompt.queued = self._complete, self.talk.take_queued
        prompt.offer = self._offer
        if self.replay is not None:
            prompt.placeholder = PLACEHOLDER
        if self.begin.conversation is not None:
            self.talk.show_resumed(self.begin.conversation)
        elif self.begin.choose:
            self.action_act("sessions")

    def start(self) -> None:
        """Start the engine and the frames; called once, when the screen has been seen."""
        self.source.start()
        self._started = True
        self.run_worker(self.pump.run(), name="frames")

    def on_unmount(self) -> None:
        self.gpu.stop()
        self.source.send(Stop())
        self.source.send(Close())

    def join_engine(self, seconds: float) -> None:
        """Wait at most ``seconds`` for the engine's round in flight."""
        if self._started:
            self.source.join(seconds)

    # Frames

    def draw(self, events: Sequence[Happening], gauges: bool) -> None:
        """Show what changed. Called by the pump after the events were applied."""
        if not self.app.is_running:
            return  # leaving: the widgets go before the pump does
        if any(isinstance(event, Rewind) for event in events):
            self.query_one(TokenLog).clear()
        self.query_one(TokenLog).append(self.chat.reducer.take_spans())
        self.viewer.frame()
        self.query_one(ReplayBar).show(events)
        if not self.chat.reducer.busy and events:
            self._draw_loading(events)
        if gauges:
            if events or self.gpu.latest is not self._gpu_shown:
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
        elif reducer.ready is None:
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
        if not gc.get_freeze_count():
            # Loading left some hundred thousand objects that never go away; a full collection would stall a frame.
            gc.collect()
            gc.freeze()

    def _limit_block(self, most: int) -> None:
        slider = self.query_one(BlockSlider)
        if most < MIN_BLOCK_SIZE:
            slider.disabled = True
            return
        slider.high = most
        if self.chat.settings.block_size > most:
            self.set_block(most)
        slider.refresh()

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
            speculation=turn.speculation if turn else True,
            gpu=self.gpu.latest,
            num_prompt_tokens=turn.num_prompt_tokens if turn else 0,
            num_reused_tokens=turn.num_reused_tokens if turn else 0,
            screen_load=self.pump.governor.load if self.chat.busy else None,
        )

    def show_statistics(self, section: str = "") -> None:
        """The tables behind the gauges, from one of them on. Raises ``SlashError`` when there is nothing to show."""
        facts = self._gauge_facts()
        if facts.turn.step is None:
            raise SlashError("There are no numbers before the first answer.")
        where = f"at round {facts.turn.step}" if self.viewer.place else "newest answer"
        self.app.push_screen(StatisticsScreen(where, tables(facts), section))

    @on(Gauge.Opened)
    def open_table(self, message: Gauge.Opened) -> None:
        self._look(lambda: self.show_statistics(message.section))

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

    # Focus

    @property
    def focus_chain(self) -> list[Widget]:
        """Tab goes from the prompt to what steers, then to what shows."""
        return sorted(super().focus_chain, key=_tab_place)

    def jump(self) -> None:
        """Let the user choose by a letter what gets the focus."""
        self.app.push_screen(JumpScreen(self.focus_chain), lambda part: part.focus() if part else None)

    def on_key(self, event: events.Key) -> None:
        """Text typed where nothing takes it was meant for the prompt."""
        if event.is_printable and event.character and event.key not in self.active_bindings:
            event.stop()
            prompt = self.query_one(Prompt)
            prompt.focus()
            prompt.insert(event.character)

    def open_replay(self, path: Path | None) -> None:
        """Show a recorded run above this screen, which waits."""
        if path is not None:
            queue = EventQueue(SessionLog.nowhere())
            screen = ChatScreen(self.chat.settings, self.out_dir, queue, replay_source(path, 1.0))
            self.app.push_screen(screen)
            screen.call_after_refresh(screen.start)

    # Asking and stopping

    @on(Prompt.Submitted)
    def submit(self, message: Prompt.Submitted) -> None:
        """Send a question or run a slash command. What can't be taken goes back into the prompt."""
        text = message.text.strip("\n")
        if not text.strip():
            self.notify("Type a question first; Enter sends it.", timeout=3)
            return
        try:
            parsed = parse_slash(text, SLASH)
            if isinstance(parsed, str):
                self.ask(parsed)
            else:
                action = SLASH[parsed.name]
                action.run(self, action.argument(parsed.argument))
        except (SlashError, ValueError) as error:
            self.query_one(Prompt).give_back(text)
            self.notify(str(error), severity="error", timeout=6)

    def ask(self, text: str) -> None:
        """See :meth:`Talk.ask`."""
        self.talk.ask(text)

    # Completion

    def _complete(self, text: str) -> list[Candidate]:
        return complete(text, ACTIONS.values(), self)

    def _offer(self, text: str) -> str | None:
        starters = self.query_one(Starters)
        return starters.following(text) if starters.display else None

    @on(Prompt.Completing)
    def show_completions(self, message: Prompt.Completing) -> None:
        self.query_one(CompletionMenu).show(message.candidates, message.chosen)

    @on(Starter.Chosen)
    def take_starter(self, message: Starter.Chosen) -> None:
        self.query_one(Prompt).fill(message.question)

    def show_help(self) -> None:
        self.app.push_screen(HelpScreen(self.active_bindings, ACTIONS.values()))

    def action_act(self, name: str) -> None:
        """Do an action that was asked for by a key or from the palette. One that needs an argument asks for it."""
        action = ACTIONS[name]
        if action.needs_argument:
            self.query_one(Prompt).start_command(f"/{action.slash} ")
            return
        try:
            action.run(self, action.argument())
        except (SlashError, ValueError) as error:
            self.notify(str(error), severity="warning", timeout=4)

    @on(Prompt.EndOfInput)
    def leave(self) -> None:
        self.app.exit()

    @on(Prompt.PasteRefused)
    def refuse_paste(self, message: Prompt.PasteRefused) -> None:
        self.notify(
            f"That paste has {message.characters:,} characters; a prompt takes {MAX_CHARACTERS:,}. "
            "Nothing was pasted, and what you had typed is still there.",
            title="Paste too large",
            severity="error",
            timeout=8,
        )

    # Settings

    @on(Slider.Changed, "#block")
    def block_moved(self, message: Slider.Changed) -> None:
        self.set_block(int(message.value))

    @on(Slider.Changed, "#temperature")
    def temperature_moved(self, message: Slider.Changed) -> None:
        self.set_temperature(message.value)

    @on(Slider.Changed, "#pace")
    def pace_moved(self, message: Slider.Changed) -> None:
        self.viewer.set_pace(message.value)

    def set_block(self, size: int) -> None:
        """From the next round on. Raises ``ValueError`` when out of range."""
        self.chat.adjust(block_size=size)
        self.query_one(BlockSlider).value = size

    def set_temperature(self, temperature: float) -> None:
        """From the next round on. Raises ``ValueError`` when out of range."""
        self.chat.adjust(temperature=temperature)
        self.query_one(TemperatureSlider).value = temperature

    def answers(self) -> list[str]:
        """Newest first, the running one included."""
        turn = self.chat.reducer.turn
        running = [turn.text] if turn is not None and turn.reason is None else []
        return [*running, *reversed(self.chat.answers)]
