"""The chat: transcript, prompt, gauges and sliders."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from pathlib import Path
from typing import Any, ClassVar

from textual import events, on
from textual.app import ComposeResult
from textual.geometry import Size
from textual.widget import Widget

from dflash_tui.core.attachments.mentions import mention_of
from dflash_tui.core.conversation.slash import SlashError, WaysOut, parse_slash
from dflash_tui.core.desk.command import Command
from dflash_tui.core.desk.desk import REFUSALS, refusal
from dflash_tui.core.desk.event_queue import EventQueue
from dflash_tui.core.desk.face import View
from dflash_tui.core.desk.views import Figures, FilesView, RoundView
from dflash_tui.core.sessions.sessions import SessionLog
from dflash_tui.core.text.counted import counted
from dflash_tui.sources import replay_source

from ..completion import complete
from ..keymap import keys_in_force
from ..notices import clear_notices, stand_above
from ..options import options_of, overtaken
from ..screens.help import HelpScreen
from ..widgets.attached import Attached
from ..widgets.completion_menu import CompletionMenu
from ..widgets.gauge_panel import Panel
from ..widgets.gauges import Gauge, HistogramGauge
from ..widgets.prompt import MAX_CHARACTERS, Prompt
from ..widgets.rounds.replay_bar import ReplayBar
from ..widgets.rounds.scrubber import Scrubber
from ..widgets.rounds.step_view import StepView
from ..widgets.slider import Slider
from ..widgets.starters import Starter
from ..widgets.token_log import TokenLog
from .display import ChatDisplay
from .facts import beginning
from .fitting import by_fitness

WAYS_OUT = WaysOut("Ctrl+Q leaves; so does /quit.", "/ lists them all, as does F1.")
MAX_UNFOLDED = 32 * 1024
"""Characters of a prompt whose pastes are shown. Each key in a longer one would take a noticeable while."""


def _tab_place(widget: Widget) -> int:
    """Sorts widgets for Tab: the prompt, sliders, everything else in its order on the screen, the transcript last."""
    places = ((Prompt, 0), (Slider, 1), (TokenLog, 3))
    return next((rank for kind, rank in places if isinstance(widget, kind)), 2)


class ChatScreen(ChatDisplay):
    """The home screen: what its parts are asked for they post as messages, and it does that at the desk or moves the
    view. The commands it has are given by whoever knows them, in a subclass."""

    ACTIONS: ClassVar[Mapping[str, Command[Any]]] = {}
    """The commands of this screen by their ids, in the order of the help screen."""
    CSS_PATH = Path(__file__).with_name("screen.tcss")
    AUTO_FOCUS = "#prompt"
    HORIZONTAL_BREAKPOINTS = WIDTHS = [(0, "-tiny"), (60, "-slim"), (80, "-narrow"), (100, "-wide"), (150, "-vast")]
    VERTICAL_BREAKPOINTS = HEIGHTS = [(0, "-flat"), (18, "-low"), (20, "-short"), (32, "-tall")]

    def compose(self) -> ComposeResult:
        """Make the parts, once the width of the gauges and the classes of the size are set: so they take their styles
        once."""
        self.gauges = options_of(self).gauges
        self.show_gauges(update=False)
        self._fit(self.app.size, update=False)
        yield from super().compose()

    def on_mount(self) -> None:
        stand_above(self, "#ask")
        self.conversation.show_loading([], beginning(self.desk))
        self.show_legend()
        self.conversation.transcript.set_class(self.replay.recording is not None, "shown")
        self.query_one(StepView).display = False
        prompt = self.prompt
        prompt.completer = lambda text: complete(
            text,
            by_fitness(self.ACTIONS.values(), self.desk),
            self,
            keys_in_force(self.active_bindings),
        )
        prompt.queued, prompt.offer = self.desk.take_queued, self.conversation.following_starter
        self._show_placeholder()
        self._offer_settings()
        self.desk.begin_chat()
        if self.desk.begin.conversation is None and self.desk.begin.choose:
            self.action_act("sessions")
        if self.desk.begin.files:
            prompt.fill("".join(f"{mention_of(path)} " for path in self.desk.begin.files))

    def start(self) -> None:
        """Start the engine and the frames; called once, when the screen has been seen."""
        self.desk.source.start()
        self._started = True
        self.run_worker(self.pump.run(), name="frames")

    def on_unmount(self) -> None:
        self.desk.leave()

    def join_engine(self, seconds: float) -> None:
        """Wait at most ``seconds`` for the engine's round in flight."""
        if self._started:
            self.desk.source.join(seconds)

    async def _on_resize(self, event: events.Resize) -> None:
        """Override Textual's, which draws three times: lay out for the new size, hearing keys that wait in between."""
        event.prevent_default()
        event.stop()
        if overtaken(self, event.size):
            return
        self._fit(event.size)
        self.show_legend()
        await asyncio.sleep(0)
        with self.app.batch_update():  # lays out now, draws later
            for screen in (self, *self.app._background_screens):
                screen._screen_resized(event.size)
        await asyncio.sleep(0)  # the parts hear of their sizes

    def _fit(self, size: Size, *, update: bool = True) -> None:
        """Take the classes of this size; ``update``: bring the styles of all parts up to date."""
        now = self._get_breakpoint_classes(size.width, self.WIDTHS)
        now |= self._get_breakpoint_classes(size.height, self.HEIGHTS)
        every = (name for _, name in self.WIDTHS + self.HEIGHTS)
        self.update_classes({name: name in now for name in every}, update=update, animate=False)

    def on_screen_resume(self, event: events.ScreenResume) -> None:
        """Parts that have just come have their styles; Textual, which hears of this next, would work them out again."""
        event.refresh_styles &= self._started

    def on_screen_suspend(self) -> None:
        """A notice goes on in front, on the screen that covers this one; here it would stand beside itself."""
        self.query("ToastHolder").remove()

    # Focus

    @property
    def focus_chain(self) -> list[Widget]:
        """Tab goes from the prompt to what steers, then to what shows."""
        return sorted(super().focus_chain, key=_tab_place)

    def catch_text(self, event: events.Key) -> None:
        """Text typed where nothing takes it was meant for the prompt, which gets this key and those behind it."""
        taken = isinstance(self.focused, Prompt) or event.key in self.active_bindings
        numbered = isinstance(self.focused, Slider | StepView) and self.focused.types(event.character)
        if event.is_printable and not taken and not numbered and not self.viewer.hall:
            self.set_focus(self.prompt)

    # Commands

    @on(Prompt.Submitted)
    def submit(self, message: Prompt.Submitted) -> None:
        """Send a question or run a slash command. What can't be taken goes back into the prompt."""
        text = message.text.strip("\n")
        if not message.text and (starter := self.conversation.following_starter("")) is not None:
            text = starter
        if not text.strip():
            loading = self.chat.reducer.ready is None
            later = "it is answered once the model is there." if loading else "Enter sends it."
            self.notify(f"Type a question first; {later}", timeout=3)
            return
        clear_notices(self)  # they have been read
        parsed, commands = None, {command.slash: command for command in self.ACTIONS.values() if command.slash}
        try:
            parsed = parse_slash(text, commands, WAYS_OUT)
            if isinstance(parsed, str):
                self.desk.ask(*self.desk.files.take(message.typed, parsed), message.pasted)
            else:
                command = commands[parsed.name]
                command.run(self, command.argument(parsed.argument))
        except REFUSALS as error:
            self.query_one(Attached).refuse(message.typed)
            self.prompt.give_back(text, message.pasted, is_command=not isinstance(parsed, str))
            self.notify(refusal(error), severity="error", timeout=6, markup=False)

    def action_act(self, name: str) -> None:
        """Do a command that was asked for by a key or from the palette. One that needs an argument asks for it."""
        command = self.ACTIONS[name]
        if command.needs_argument:
            self.prompt.start_command(f"/{command.slash} ")
        else:
            self.attempt(lambda: command.run(self, command.argument()))

    @on(Prompt.EndOfInput)
    def leave(self) -> None:
        self.action_act("quit")

    @on(Prompt.PasteRefused)
    def refuse_paste(self, message: Prompt.PasteRefused) -> None:
        self.notify(
            f"That paste has {counted(message.characters, 'character')}; a prompt takes {MAX_CHARACTERS:,}. "
            "Nothing was pasted, and what you had typed is still there.",
            title="Paste too large",
            severity="error",
            timeout=8,
        )

    @on(Prompt.Changed)
    def look_at_files(self) -> None:
        self.query_one(Attached).look(self.prompt.text)

    @on(Prompt.Completing)
    def show_completions(self, message: Prompt.Completing) -> None:
        self.query_one(CompletionMenu).show(message.candidates, message.chosen)

    @on(Starter.Chosen)
    def take_starter(self, message: Starter.Chosen) -> None:
        self.prompt.fill(message.question)

    @on(Slider.Changed)
    def slider_moved(self, message: Slider.Changed) -> None:
        match message.control.id:
            case "block":
                self.desk.adjust(block_size=self.query_one(Panel).size_chosen)
            case "temperature":
                self.desk.adjust(temperature=message.value)
            case "pace":
                self.viewer.set_pace(message.value)

    # Looking at rounds

    @on(HistogramGauge.Picked)
    def visit_like(self, message: HistogramGauge.Picked) -> None:
        """Show a round that kept as many guesses as the bar that was clicked; another click shows the next such."""
        self.attempt(lambda: self.viewer.visit_kept(message.accepted))

    @on(TokenLog.Picked)
    def pick_token(self, message: TokenLog.Picked) -> None:
        self.attempt(lambda: self.viewer.pick(message.turn, message.token))

    @on(TokenLog.Unfolded)
    def unfold(self, message: TokenLog.Unfolded) -> None:
        self.attempt(lambda: super(ChatScreen, self).show(FilesView(self.chat, message.index)))

    @on(TokenLog.Turned)
    def turn_version(self, message: TokenLog.Turned) -> None:
        """Show another version when an end of a version mark was clicked; open the tree when the number in it was."""
        marked = self.conversation.marked(message.index)
        if marked is not None:
            self.attempt(lambda: self.desk.turn_over(*marked, message.by) if message.by else self.action_act("tree"))

    @on(TokenLog.Released)
    def follow_again(self) -> None:
        self.viewer.go_live()

    @on(Scrubber.Moved)
    def scrub(self, message: Scrubber.Moved) -> None:
        self.attempt(lambda: self.viewer.visit_round(message.step))

    @on(StepView.Moved)
    def move_in_steps(self, message: StepView.Moved) -> None:
        self.attempt(lambda: self.viewer.move(message.move))

    @on(StepView.Numbered)
    def go_to_number(self, message: StepView.Numbered) -> None:
        self.attempt(lambda: self.viewer.go_to_number(message.number))

    @on(StepView.Closed)
    def close_steps(self) -> None:
        self.viewer.close()

    @on(ReplayBar.Moved)
    def move_replay(self, message: ReplayBar.Moved) -> None:
        match message.what:
            case "play":
                self.viewer.play_recording()
            case "step":
                self.attempt(lambda: self.viewer.step_recording(int(message.by)))
                self.query_one(ReplayBar).focus()
            case "leap":
                self.viewer.leap_recording(message.by)
            case "pace":
                self.replay.change_pace(message.by)

    @on(ReplayBar.Left)
    def leave_replay(self) -> None:
        """Leave a replay that was opened above a chat, which is on show again; does nothing where there is no chat."""
        if self.query_one(ReplayBar).above:
            self.app.pop_screen()

    @on(Gauge.Opened)
    def open_table(self, message: Gauge.Opened) -> None:
        self.attempt(lambda: self.show_statistics(message.section))

    @on(events.DescendantFocus)
    @on(events.DescendantBlur)
    def keys_go_elsewhere(self) -> None:
        """Another widget has the focus: draws the step view anew, since it says which keys it takes now."""
        self.show_steps()

    # What the desk has to show

    def show(self, view: View) -> None:
        match view:
            case RoundView(number=None):
                self.viewer.toggle()
            case RoundView(number=int(number)):
                self.viewer.visit_round(number)
            case Figures():
                self.show_statistics()
            case FilesView() if self.prompt.folds:
                self._unfold_prompt()
            case _:
                super().show(view)

    def _unfold_prompt(self) -> None:
        if len(self.prompt.unfolded) > MAX_UNFOLDED:
            raise SlashError(f"That has over {MAX_UNFOLDED:,} characters. /editor opens it in $EDITOR.")
        self.prompt.unfold()

    def show_help(self) -> None:
        self.app.clear_notifications()  # they would lie over the text
        self.app.push_screen(HelpScreen(self.active_bindings, self.ACTIONS.values()))

    def open_replay(self, path: Path | None) -> None:
        if self.chat.busy and self.replay.recording is None:
            raise SlashError("An answer is on its way. Esc stops it first.")
        if path is not None:
            self.replay.pause()
            queue = EventQueue(SessionLog.nowhere())
            screen = type(self)(self.chat.settings, self.desk.out_dir, queue, replay_source(path))
            self.app.push_screen(screen)
            screen.call_after_refresh(screen.start)
