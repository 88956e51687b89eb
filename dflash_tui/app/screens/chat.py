"""The chat: transcript, prompt, gauges and sliders."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from pathlib import Path
from typing import ClassVar

from textual import events, on
from textual.app import ComposeResult
from textual.binding import Binding, BindingType
from textual.containers import Container, Horizontal
from textual.screen import Screen
from textual.widget import Widget
from textual.widgets import Static

from dflash_tui.core.conversation.chat import Chat
from dflash_tui.core.conversation.slash import SlashError, WaysOut, parse_slash
from dflash_tui.core.conversation.start import Start
from dflash_tui.core.figures.gpu import GpuMonitor
from dflash_tui.core.figures.tables import tables
from dflash_tui.core.sessions.sessions import SessionLog
from dflash_tui.core.source import Source, SourceFactory
from dflash_tui.sources import replay_source
from engine.commands import BlockSize, Close, GenerationSettings, Stop
from engine.events import Clock

from ..actions import ACTIONS, SLASH
from ..attaching import Attaching
from ..completion import Candidate, complete
from ..drawing import Drawing
from ..event_queue import EventQueue
from ..keymap import Said
from ..notices import clear_notices, stand_above
from ..presets import Presets
from ..pump import FramePump
from ..room import Room
from ..runs import Runs
from ..switching import Switching
from ..talk import Talk
from ..viewer import Viewer
from ..widgets.attached import Attached
from ..widgets.completion_menu import CompletionMenu
from ..widgets.gauge_panel import Panel
from ..widgets.gauges import Gauge, HistogramGauge
from ..widgets.loading import LoadPanel
from ..widgets.prompt import MAX_CHARACTERS, Prompt
from ..widgets.queued import QueuedQuestions
from ..widgets.rendered import RenderedView
from ..widgets.replay_bar import ReplayBar
from ..widgets.round_strip import RoundStrip, lens_legend
from ..widgets.scrubber import Scrubber
from ..widgets.slider import BlockSlider, PaceSlider, Slider, TemperatureSlider
from ..widgets.starters import Starter, Starters
from ..widgets.status import Header, StatusLine
from ..widgets.step_view import StepView
from ..widgets.token_log import TokenLog
from .help import HelpScreen
from .jump import JumpScreen
from .statistics import StatisticsScreen

WAYS_OUT = WaysOut("Ctrl+Q leaves; so does /quit.", "/ lists them all, as does F1.")
FULL_LEGEND = 80
"""Cells that the longest legends need."""


def _tab_place(widget: Widget) -> int:
    """Prompt, sliders, everything else in its order on the screen, the transcript last."""
    places = ((Prompt, 0), (Slider, 1), (TokenLog, 3))
    return next((place for kind, place in places if isinstance(widget, kind)), 2)


class ChatScreen(Screen[None]):
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
        self.begin: Start = begin or Start()
        self.out_dir = out_dir
        self.queue = queue
        self.switching = Switching(self, source)
        self.chat = Chat(settings, lambda command: self.source.send(command), lambda: self.queue.log)
        self.drawing = Drawing(self)
        self.pump = FramePump(
            self.chat, queue, self.drawing.draw, lambda: getattr(self.app._driver, "backed_up", False)
        )
        self.quit_until = 0.0
        """Until when a second Ctrl+C leaves."""
        self.talk = Talk(self)
        self.room, self.attaching, self.runs, self.presets = Room(self), Attaching(self), Runs(self), Presets(self)
        self.viewer = Viewer(self)
        self.gpu = GpuMonitor()
        self._started = False
        self.said: Said = str
        """Sentences with the keys that the user has."""

    def compose(self) -> ComposeResult:
        yield Header(id="header")
        with Container(id="body"):
            with Container(id="conversation"):
                yield LoadPanel(id="load")
                yield TokenLog(id="transcript")
                yield RenderedView(id="rendered")
                yield Starters(id="starters")
            yield Panel(self.chat.settings, id="panel")
        yield RoundStrip(id="round")
        yield StepView(id="steps")
        yield QueuedQuestions(id="queue")
        yield Attached(id="attached")
        yield ReplayBar(self.source.recording, id="replay")
        yield CompletionMenu(id="completion")
        with Horizontal(id="ask"):
            yield Static("❯", id="mark")
            yield Prompt(id="prompt", questions=self.begin.questions)
        yield StatusLine(id="status")

    def on_mount(self) -> None:
        stand_above(self, "#ask")
        self.query_one(LoadPanel).show_progress([], self.beginning)
        self.show_legend()
        prompt = self.query_one(Prompt)
        prompt.completer, prompt.queued = self._complete, self.talk.take_queued
        prompt.offer = self._offer
        prompt.placeholder = self.said(self.source.capabilities.placeholder or str(prompt.placeholder))
        status = self.query_one(StatusLine)
        status.keys = tuple(map(self.said, status.keys))
        self.drawing.offer_settings()
        if self.begin.conversation is not None:
            self.talk.show_resumed(self.begin.conversation)
        elif self.begin.choose:
            self.action_act("sessions")
        self.presets.begin()
        self.attaching.begin(self.begin.files)

    @property
    def source(self) -> Source:
        """Where the events come from now."""
        return self.switching.source

    @property
    def beginning(self) -> str:
        """What happens before the source has said anything."""
        elsewhere = self.source.recording is None and not self.source.capabilities.local
        return "asking the server" if elsewhere else "starting the engine"

    @property
    def served(self) -> bool:
        """A server answers."""
        ready = self.chat.reducer.ready
        return ready is not None and bool(ready.server)

    @property
    def times(self) -> Clock:
        """Who takes the times of the rounds."""
        ready = self.chat.reducer.ready
        return ready.times if ready else "engine"

    def _backed_up(self) -> bool:
        """The terminal has not taken yet what was written to it."""
        return getattr(self.app._driver, "backed_up", False)

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

    async def _on_resize(self, event: events.Resize) -> None:
        """In Textual's place, which draws three times: keys that wait are heard between the parts."""
        event.prevent_default()
        event.stop()
        width, height = event.size
        now = self._get_breakpoint_classes(width, self.HORIZONTAL_BREAKPOINTS or [])
        now |= self._get_breakpoint_classes(height, self.VERTICAL_BREAKPOINTS or [])
        every = (name for _, name in (self.HORIZONTAL_BREAKPOINTS or []) + (self.VERTICAL_BREAKPOINTS or []))
        self.update_classes({name: name in now for name in every}, animate=False)
        self.show_legend()
        await asyncio.sleep(0)
        with self.app.batch_update():  # lays out now, draws later
            for screen in (self, *self.app._background_screens):
                screen._screen_resized(event.size)
        await asyncio.sleep(0)  # the parts hear of their sizes

    def on_screen_suspend(self) -> None:
        """A notice goes on in front, on the screen that covers this one; here it would stand beside itself."""
        self.query("ToastHolder").remove()

    def show_statistics(self, section: str = "") -> None:
        """The tables behind the gauges, from one of them on. Raises ``SlashError`` when there is nothing to show."""
        facts = self.drawing.gauge_facts()
        if facts.turn.step is None:
            raise SlashError("There are no numbers before the first answer.")
        where = f"at round {facts.turn.step}" if self.viewer.place else "newest answer"
        self.app.clear_notifications()  # they would lie over the figures
        self.app.push_screen(StatisticsScreen(where, tables(facts), section))

    @on(Gauge.Opened)
    def open_table(self, message: Gauge.Opened) -> None:
        self.go_to(lambda: self.show_statistics(message.section))

    def show_help(self) -> None:
        self.app.clear_notifications()  # they would lie over the text
        self.app.push_screen(HelpScreen(self.active_bindings, ACTIONS.values(), self.said))

    def open_replay(self, path: Path | None) -> None:
        """Show a recorded run above this screen, which waits."""
        if path is not None:
            queue = EventQueue(SessionLog.nowhere())
            screen = ChatScreen(self.chat.settings, self.out_dir, queue, replay_source(path))
            self.app.push_screen(screen)
            screen.call_after_refresh(screen.start)

    # Focus

    @property
    def focus_chain(self) -> list[Widget]:
        """Tab goes from the prompt to what steers, then to what shows."""
        return sorted(super().focus_chain, key=_tab_place)

    def jump(self) -> None:
        """Let the user choose by a letter what gets the focus."""
        self.app.push_screen(JumpScreen(self.focus_chain), lambda part: part.focus() if part else None)

    def catch_text(self, event: events.Key) -> None:
        """Text typed where nothing takes it was meant for the prompt, which gets this key and those behind it."""
        taken = isinstance(self.focused, Prompt) or event.key in self.active_bindings
        numbered = isinstance(self.focused, Slider | StepView) and self.focused.types(event.character)
        if event.is_printable and not taken and not numbered:
            self.set_focus(self.query_one(Prompt))

    # Asking and stopping

    @on(Prompt.Submitted)
    def submit(self, message: Prompt.Submitted) -> None:
        """Send a question or run a slash command. What can't be taken goes back into the prompt."""
        text = message.text.strip("\n")
        if not text.strip():
            self.notify("Type a question first; Enter sends it.", timeout=3)
            return
        clear_notices(self)  # they have been read
        parsed = None
        try:
            parsed = parse_slash(text, SLASH, WAYS_OUT)
            if isinstance(parsed, str):
                self.talk.ask(*self.attaching.take(message.typed, parsed))
            else:
                action = SLASH[parsed.name]
                action.run(self, action.argument(parsed.argument))
        except (SlashError, ValueError) as error:
            self.query_one(Prompt).give_back(text, is_command=not isinstance(parsed, str))
            self.notify(str(error), severity="error", timeout=6, markup=False)

    # Looking at rounds

    @on(HistogramGauge.Picked)
    def visit_like(self, message: HistogramGauge.Picked) -> None:
        """A round that kept as many guesses as the bar that was clicked; again, and the next such."""
        self.go_to(lambda: self.viewer.visit_kept(message.accepted))

    @on(TokenLog.Picked)
    def pick_token(self, message: TokenLog.Picked) -> None:
        self.go_to(lambda: self.viewer.pick(message.turn, message.token))

    @on(TokenLog.Unfolded)
    def unfold(self, message: TokenLog.Unfolded) -> None:
        self.go_to(lambda: self.talk.unfold(message.place))

    @on(TokenLog.Turned)
    def turn_version(self, message: TokenLog.Turned) -> None:
        """The ends of a version mark turn it over, the number between them opens the tree."""
        marked = self.talk.marked(message.place)
        if marked is not None:
            self.go_to(lambda: self.talk.turn_over(*marked, message.by) if message.by else self.action_act("tree"))

    @on(TokenLog.Released)
    def follow_again(self) -> None:
        self.viewer.go_live()

    @on(Scrubber.Moved)
    def scrub(self, message: Scrubber.Moved) -> None:
        self.go_to(lambda: self.viewer.visit_round(message.step))

    @on(StepView.Moved)
    def move_in_steps(self, message: StepView.Moved) -> None:
        self.go_to(lambda: self.viewer.move(message.move))

    @on(StepView.Numbered)
    def go_to_number(self, message: StepView.Numbered) -> None:
        self.go_to(lambda: self.viewer.go_to_number(message.number))

    @on(StepView.Closed)
    def close_steps(self) -> None:
        self.viewer.close()

    @on(events.DescendantFocus)
    @on(events.DescendantBlur)
    def keys_go_elsewhere(self) -> None:
        """The step view says which keys it takes."""
        self.viewer.show_steps()

    def go_to(self, go: Callable[[], None]) -> None:
        """Go somewhere, or say why not."""
        try:
            go()
        except SlashError as error:
            self.notify(str(error), severity="warning", timeout=4, markup=False)

    def show_pace(self, pace: float) -> None:
        """The pace was changed by something else than its slider."""
        self.query_one(PaceSlider).value = pace

    def show_legend(self) -> None:
        """What the colours of the transcript mean."""
        lenses, narrow = self.viewer.lenses, self.size.width < FULL_LEGEND
        guessers = lenses.guessers if lenses.lens == "source" else None
        self.query_one("#ask").border_title = lens_legend(lenses.lens, self.served, narrow, guessers)

    # Completion

    def _complete(self, text: str) -> list[Candidate]:
        return complete(text, ACTIONS.values(), self)

    def _offer(self, text: str) -> str | None:
        starters = self.query_one(Starters)
        return starters.following(text) if starters.display else None

    @on(Prompt.Changed)
    def look_at_files(self) -> None:
        self.attaching.look(self.query_one(Prompt).text)

    @on(Prompt.Completing)
    def show_completions(self, message: Prompt.Completing) -> None:
        self.query_one(CompletionMenu).show(message.candidates, message.chosen)

    @on(Starter.Chosen)
    def take_starter(self, message: Starter.Chosen) -> None:
        self.query_one(Prompt).fill(message.question)

    def action_act(self, name: str) -> None:
        """Do an action that was asked for by a key or from the palette. One that needs an argument asks for it."""
        action = ACTIONS[name]
        if action.needs_argument:
            self.query_one(Prompt).start_command(f"/{action.slash} ")
            return
        try:
            action.run(self, action.argument())
        except (SlashError, ValueError) as error:
            self.notify(str(error), severity="warning", timeout=4, markup=False)

    @on(Prompt.EndOfInput)
    def leave(self) -> None:
        self.action_act("quit")

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
    def block_moved(self) -> None:
        self.set_block(self.query_one(BlockSlider).size_chosen)

    @on(Slider.Changed, "#temperature")
    def temperature_moved(self, message: Slider.Changed) -> None:
        self.set_temperature(message.value)

    @on(Slider.Changed, "#pace")
    def pace_moved(self, message: Slider.Changed) -> None:
        self.viewer.set_pace(message.value)

    def set_block(self, size: BlockSize) -> None:
        """From the next round on. Raises ``ValueError`` when out of range."""
        self.chat.adjust(block_size=size)
        self.query_one(BlockSlider).show(size)

    def set_temperature(self, temperature: float) -> None:
        """From the next round on. Raises ``ValueError`` when out of range."""
        self.chat.adjust(temperature=temperature)
        self.query_one(TemperatureSlider).value = temperature

    def answers(self) -> list[str]:
        """Newest first, the running one included."""
        turn = self.chat.reducer.turn
        running = [turn.text] if turn is not None and turn.reason is None else []
        return [*running, *reversed(self.chat.answers)]
