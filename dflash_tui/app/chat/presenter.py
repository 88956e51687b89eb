"""The presenter's screen: one round over the whole screen, phase by phase, for a hall. It shows where the chat's view
stands, and its keys move that."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from itertools import islice
from textwrap import wrap as wrap_words
from typing import ClassVar

from textual import events
from textual.app import ComposeResult
from textual.binding import Binding, BindingType
from textual.content import Content
from textual.widgets import Static

from dflash_tui.core.conversation.slash import SlashError
from dflash_tui.core.export.spans import token_spans
from dflash_tui.core.figures.labels import PHASE_NAMES, STEPS
from dflash_tui.core.rounds.playback import FULL, PHASES, SLOWEST

from ..glyphs import fitting
from ..screens.keys import KeysScreen
from ..screens.once import LeavesOnce
from ..widgets.rounds.large_round import LargeRound
from ..widgets.rounds.step_table import Scene, explanation, title_line
from ..widgets.token_log import TokenLog
from .step_words import NO_MORE, NO_REJECTION
from .viewer import Viewer

FRAME = 1 / 20
ROUNDS_OF_TEXT = 40
"""How many rounds' tokens are written above the round on show: more than there is room for."""
KEYS = ("[ ] phase", ", . round", "p guess", "− + pace", "{ } rejection", "F1 keys", "Esc back")


class PresenterScreen(LeavesOnce[None]):
    """Shows the round at which a chat in slow motion stands, and steers that chat's viewer."""

    AUTO_FOCUS = ""
    VERTICAL_BREAKPOINTS = [(0, "-flat"), (20, "-short"), (30, "-tall")]
    DEFAULT_CSS = """
    PresenterScreen { layout: vertical; background: $background; overflow: hidden; padding: 0 2; }
    #present-title, #present-tally, #present-phases, #present-keys {
        height: 1; text-wrap: nowrap; text-overflow: ellipsis;
    }
    #present-title { margin: 1 0; }
    #present-text { height: 6; margin: 0 0 1 0; }
    #present-tally { text-style: bold; }
    #present-words { height: 3; color: $foreground; }
    #present-keys { color: $verdict-pending; }
    #present-phases { margin: 0 0 1 0; }
    PresenterScreen.-short #present-title, PresenterScreen.-flat #present-title { margin: 0; }
    PresenterScreen.-short #present-text { height: 3; margin: 0; }
    PresenterScreen.-flat #present-text { height: 2; margin: 0; }
    PresenterScreen.-short #present-phases, PresenterScreen.-flat #present-phases { margin: 0; }
    PresenterScreen.-short #present-words, PresenterScreen.-flat #present-words { height: 2; }
    """
    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("space", "play", "pause, or go on"),
        Binding("right_square_bracket,right,pagedown", "phase(1)", "next phase, and behind the last the next round"),
        Binding("left_square_bracket,left,pageup", "phase(-1)", "phase before"),
        Binding("full_stop,down", "round(1)", "next round"),
        Binding("comma,up", "round(-1)", "round before"),
        Binding("right_curly_bracket", "rejection(1)", "next rejection"),
        Binding("left_curly_bracket", "rejection(-1)", "rejection before"),
        Binding("p", "predict", "guess how many will be kept, or no more"),
        Binding("plus,equals_sign", "pace(2)", "faster"),
        Binding("minus", "pace(0.5)", "slower"),
        Binding("enter", "enter", "the number typed"),
        Binding("backspace", "erase", "take a digit back"),
        Binding("f1", "keys", "these keys"),
        Binding("escape,q,f8", "leave", "back"),
    ]

    def __init__(self, viewer: Viewer) -> None:
        super().__init__()
        self._viewer = viewer
        self._shown: object = None
        self._written: object = None
        self.typed = ""
        """Digits of a guess, or of a round to go to."""
        self._paused = False
        """Whether a key paused the presentation; only a key ends that."""
        recording = viewer.replay.recording
        self._played = recording is not None and recording.playing
        """Whether a recording went on when this screen opened."""

    def compose(self) -> ComposeResult:
        yield Static(id="present-title")
        yield TokenLog(id="present-text", classes="shown")
        yield LargeRound(id="present-round")
        yield Static(id="present-tally")
        yield Static(id="present-phases")
        yield Static(id="present-words")
        yield Static(id="present-keys")

    def on_mount(self) -> None:
        self.query_one(TokenLog).can_focus = False  # the keys are the presenter's
        self.set_interval(FRAME, self._frame)
        self._play_recording(False)
        self._viewer.replay.catch_up()  # what has come by now, which may begin another answer

    def on_unmount(self) -> None:
        self._play_recording(self._played)

    def on_resize(self) -> None:
        self._shown = None
        self.show()

    # A recording waits for this screen: its next answer begins when this one has been seen

    def _frame(self) -> None:
        self._play_recording(not self._paused and self._viewer.motion.at_end)
        self.show()

    def _play_recording(self, playing: bool) -> None:
        recording = self._viewer.replay.recording
        if recording is not None and recording.playing != playing:
            recording.set_playing(playing)

    def _fetch(self) -> bool:
        """Have a recording hand out one more round, and return True; return False where there is none to hand out."""
        recording, motion = self._viewer.replay.recording, self._viewer.motion
        if recording is None or recording.ended:
            return False
        recording.seek(recording.played + 1)
        self._viewer.replay.catch_up()
        motion.playing = False  # the answer may be the next one, which begins to play by itself
        return True

    # Showing

    def show(self) -> None:
        """Draw again if the view stands elsewhere than before. Called with every frame."""
        viewer = self._viewer
        motion, place = viewer.motion, viewer.place
        quiz = None if motion.quiz is None else (motion.quiz.asked, motion.quiz.num_answers)
        state = (place, motion.phase, motion.playing, motion.pace, quiz, self.typed, self.app.theme)
        if state == self._shown:
            return
        self._shown = state
        scene = viewer.scene
        if scene is None:
            return
        width = self.size.width - 4
        self.query_one("#present-title", Static).update(title_line(scene, width))
        self.query_one(LargeRound).show(scene)
        self._write(scene)
        self.query_one("#present-tally", Static).update(self._tally(scene))
        self.query_one("#present-phases", Static).update(_phases(scene))
        words = f"{explanation(scene)} {f'▸ {self.typed}' if self.typed else ''}"
        self.query_one("#present-words", Static).update(Content("\n").join(map(Content, wrap_words(words, width))))
        play = ("Space pause" if motion.playing else "Space play",) if motion.can_play else ()
        self.query_one("#present-keys", Static).update(fitting((*play, *KEYS), width))

    def _write(self, scene: Scene) -> None:
        """Write the answer up to this round above it; the round's own tokens once they have joined the answer."""
        place = self._viewer.place or self._viewer.travel.latest()
        if place is None:
            return
        joined = place.step + scene.reached("emit")
        if (place.turn, joined) == self._written:
            return
        self._written = (place.turn, joined)
        history = self._viewer.travel.history(place.turn)
        log = self.query_one(TokenLog)
        log.clear()
        if history is not None:
            first = max(joined - ROUNDS_OF_TEXT, 0)
            log.append(list(token_spans(islice(history.steps(first), joined - first))))

    def _tally(self, scene: Scene) -> str:
        """A line that says how many tokens have been written by now, and how often the target ran for them."""
        viewer = self._viewer
        place = viewer.place or viewer.travel.latest()
        history = viewer.travel.history(place.turn) if place else None
        if place is None or history is None:
            return ""
        tokens = history.tokens_before(place.step + scene.reached("emit"))
        passes = place.step + scene.reached("verify")
        told = f"{tokens} token{'s' * (tokens != 1)} written · {passes} pass{'es' * (passes != 1)} of the target"
        return f"{told} (alone: {tokens})"

    # Keys

    def _do(self, act: Callable[[], None]) -> None:
        """Call ``act``, which moves the view; show a notice where it can't."""
        self.typed = ""
        try:
            act()
        except (SlashError, ValueError) as error:
            self.notify(str(error), severity="warning", timeout=4, markup=False)
        self.show()

    def action_play(self) -> None:
        """Pause or go on. At the end of an answer, go on with what a recording still has, else from the beginning."""
        motion, recording = self._viewer.motion, self._viewer.replay.recording
        goes_on = motion.at_end and recording is not None and not recording.ended
        self._paused = motion.playing
        if self._paused or not goes_on:
            self._do(self._viewer.play)

    def action_phase(self, direction: int) -> None:
        self._paused = True
        viewer, motion = self._viewer, self._viewer.motion
        turn = viewer.place.turn if viewer.place else None
        fetched = direction > 0 and motion.phase == PHASES[-1] and self._is_newest() and self._fetch()
        if fetched and viewer.place is not None and viewer.place.turn != turn:
            motion.show_from(PHASES[0])
            self.show()
            return
        self._do(lambda: viewer.change_phase(direction))

    def action_round(self, direction: int) -> None:
        self._paused = True
        viewer = self._viewer
        if direction > 0 and self._is_newest():
            self._fetch()
        self._do(lambda: viewer.visit(viewer.travel.next_step(viewer.here(), direction), NO_MORE))

    def _is_newest(self) -> bool:
        """Whether the round on show is the last that there is by now."""
        viewer = self._viewer
        latest = viewer.travel.latest()
        return viewer.place is None or latest is None or replace(viewer.place, token=None) == latest

    def action_rejection(self, direction: int) -> None:
        self._paused = True
        viewer = self._viewer
        self._do(lambda: viewer.visit(viewer.travel.next_rejection(viewer.here(), direction), NO_REJECTION))

    def action_predict(self) -> None:
        viewer = self._viewer
        self._do(lambda: viewer.predict(viewer.motion.quiz is None))

    def action_pace(self, factor: float) -> None:
        viewer = self._viewer
        self._do(lambda: viewer.set_pace(min(max(viewer.motion.pace * factor, SLOWEST), FULL)))

    def action_enter(self) -> None:
        number = self.typed
        if number:
            self._do(lambda: self._viewer.go_to_number(int(number)))

    def action_erase(self) -> None:
        self.typed = self.typed[:-1]
        self.show()

    def on_key(self, event: events.Key) -> None:
        if event.character is not None and event.character in "0123456789":
            event.stop()
            self.typed = (self.typed + event.character)[-4:]
            self.show()

    def action_keys(self) -> None:
        self.app.push_screen(KeysScreen("The presenter", self, STEPS))

    def action_leave(self) -> None:
        self.dismiss()


def _phases(scene: Scene) -> Content:
    """The names of a round's phases in a line, the one on show marked."""
    steps = [
        Content.styled(f" {name} ", "reverse bold" if phase == scene.phase else "")
        for phase, name in PHASE_NAMES.items()
    ]
    return Content.styled(" ▸ ", "$verdict-pending").join(steps)
