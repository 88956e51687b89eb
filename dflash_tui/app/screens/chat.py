"""The chat: transcript, prompt, gauges and sliders."""

from __future__ import annotations

import gc
from pathlib import Path
from typing import ClassVar

from textual import on
from textual.app import ComposeResult
from textual.binding import Binding, BindingType
from textual.containers import Container, Horizontal
from textual.screen import Screen
from textual.widgets import Static

from dflash_tui.core.chat import Chat
from dflash_tui.core.reducer import Span
from dflash_tui.core.slash import SlashError, parse_slash
from dflash_tui.core.start import Start
from dflash_tui.core.starters import STARTERS
from engine.commands import MAX_BLOCK_SIZE, MAX_TEMPERATURE, MIN_BLOCK_SIZE, Close, GenerationSettings, Stop
from engine.events import EngineReady, Event, TurnFinished

from ..actions import ACTIONS, SLASH
from ..completion import Candidate, complete
from ..pump import FramePump
from ..source import EventQueue, SourceFactory
from ..talk import Talk
from ..widgets.completion_menu import CompletionMenu
from ..widgets.gauges import Gauge, HistogramGauge, PositionGauge, RateGauge
from ..widgets.loading import LoadPanel
from ..widgets.prompt import MAX_CHARACTERS, Prompt
from ..widgets.queued import QueuedQuestions
from ..widgets.rendered import RenderedView
from ..widgets.round_strip import RoundStrip, legend
from ..widgets.slider import BlockSlider, Slider, TemperatureSlider
from ..widgets.starters import Starter, Starters
from ..widgets.status import Header, StatusFacts, StatusLine
from ..widgets.token_log import TokenLog
from .help import HelpScreen

TEMPERATURE_STEP = 0.05


class ChatScreen(Screen[None]):
    """The home screen. What the user does becomes a call of :class:`Chat`; what the engine says is drawn by frames."""

    CSS_PATH = "chat.tcss"
    AUTO_FOCUS = "#prompt"
    HORIZONTAL_BREAKPOINTS = [(0, "-tiny"), (80, "-narrow"), (100, "-wide")]
    VERTICAL_BREAKPOINTS = [(0, "-flat"), (20, "-short"), (32, "-tall")]
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
        self.chat = Chat(settings, self.source.send)
        self.pump = FramePump(self.chat, queue, self.draw)
        self.quit_until = 0.0
        """Until when a second Ctrl+C leaves."""
        self.talk = Talk(self)
        self._log_failure_told = False
        self._started = False

    def compose(self) -> ComposeResult:
        settings = self.chat.settings
        yield Header(id="header")
        with Container(id="body"):
            with Container(id="conversation"):
                yield LoadPanel(id="load")
                yield TokenLog(id="transcript")
                yield RenderedView(id="rendered")
                yield Starters(STARTERS, id="starters")
            with Container(id="panel"):
                with Container(id="gauges"):
                    yield RateGauge(id="rate")
                    yield HistogramGauge(id="histogram")
                    yield PositionGauge(id="positions")
                with Container(id="sliders"):
                    yield BlockSlider("block", MIN_BLOCK_SIZE, MAX_BLOCK_SIZE, 1, settings.block_size, id="block")
                    yield TemperatureSlider(
                        "temp", 0, MAX_TEMPERATURE, TEMPERATURE_STEP, settings.temperature, id="temperature"
                    )
        yield RoundStrip(id="round")
        yield QueuedQuestions(id="queue")
        yield CompletionMenu(id="completion")
        with Horizontal(id="ask"):
            yield Static("❯", id="mark")
            yield Prompt(id="prompt", questions=self.begin.questions)
        yield StatusLine(id="status")

    def on_mount(self) -> None:
        self.query_one(LoadPanel).show_progress([])
        self.query_one("#ask").border_title = legend()
        prompt = self.query_one(Prompt)
        prompt.completer, prompt.queued = self._complete, self.talk.take_queued
        prompt.offer = self._offer
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
        self.source.send(Stop())
        self.source.send(Close())

    def join_engine(self, seconds: float) -> None:
        """Wait at most ``seconds`` for the engine's round in flight."""
        if self._started:
            self.source.join(seconds)

    # Frames

    def draw(self, events: list[Event], gauges: bool) -> None:
        """Show what changed. Called by the pump after the events were applied."""
        if not self.app.is_running:
            return  # leaving: the widgets go before the pump does
        self.query_one(TokenLog).append(self.chat.reducer.take_spans())
        if not self.chat.reducer.busy and events:
            self._draw_loading(events)
        if gauges:
            if events:
                self.draw_gauges()
            self.draw_status()
        if any(isinstance(event, TurnFinished) for event in events):
            self.talk.after_turn()
        self._tell_log_failure()

    def _draw_loading(self, events: list[Event]) -> None:
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
        self.pump.on_gpu(ready.device.startswith("cuda"))
        self._limit_block(ready.max_block_size)
        if ready.banner:
            self.query_one(TokenLog).append([Span(f"{ready.banner}\n\n", "note")])
            self.query_one(Starters).display = not self.chat.exchanges
        self.talk.tell_other_model()
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
        turn = self.chat.reducer.turn
        for gauge in self.query(Gauge):
            gauge.show(turn)
        self.query_one(RoundStrip).show(turn.latest_drafted or turn.latest if turn else None)

    def draw_status(self) -> None:
        self.query_one(Prompt).cursor_blink = not self.chat.busy
        self.query_one(StatusLine).show(self._facts())

    def _facts(self) -> StatusFacts:
        reducer = self.chat.reducer
        turn = reducer.turn
        if turn is None or reducer.ready is None:
            return StatusFacts(self._state(), self.chat.busy)
        return StatusFacts(
            state=self._state(),
            active=self.chat.busy,
            tok_s=round(turn.rate.mean),
            acceptance_length=turn.acceptance.mean_acceptance_length,
            context_length=turn.latest.context_length if turn.latest else turn.num_prompt_tokens,
            max_context=reducer.ready.max_context,
            reused=turn.num_reused_tokens,
            screen_load=round(self.pump.governor.load, 2) if self.chat.busy else None,
        )

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
        failure = self.queue.log.failure
        if failure and not self._log_failure_told:
            self._log_failure_told = True
            self.notify(failure, title="The conversation is not being recorded", severity="error", timeout=12)

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
