"""Where the user looks: live, a past round, or slow motion; every widget shows it, and the engine runs on."""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import replace
from math import inf

from dflash_tui.core.conversation.slash import SlashError
from dflash_tui.core.conversation.turn import Turn
from dflash_tui.core.desk.desk import Desk
from dflash_tui.core.rounds.playback import FULL, PHASES, SLOWEST, Quiz
from dflash_tui.core.rounds.travel import Position

from ..widgets.rounds.step_view import Move
from .lens_view import LensView
from .look import Look
from .replay import Replay
from .step_words import NO_MORE, NOT_KEPT, NOTHING


class Viewer(Look):
    """Keeps the place, the lens and slow motion. Knows no widget: it says when there is something else to show."""

    def __init__(
        self, desk: Desk, replay: Replay, changed: Callable[[bool], None], painted: Callable[[], None]
    ) -> None:
        """``changed`` is called when another place is on show, with True to give the step view the keyboard;
        ``painted`` when another lens is."""
        super().__init__(desk, replay)
        self._changed = changed
        self._before_hall = self._played = False
        """Whether the step view was open before that; whether a recording went on when slow motion began."""
        self.lenses = LensView(desk, self.travel, painted)
        self._seen: Turn | None = None
        """The newest turn that there was when it was last looked at."""

    # Going somewhere

    def here(self) -> Position:
        """The place on show, the newest round when live. Raises ``SlashError`` when there is none."""
        position = self.position or self.travel.latest()
        if position is None:
            raise SlashError(NOTHING)
        return position

    def toggle(self) -> None:
        """Open the step view, or close it and go back to the live end."""
        if not self.open and self.happens_now and not self._desk.chat.busy:
            self.here()  # says what to do first
        self.close() if self.open else self._open()

    def _open(self) -> None:
        self.open = True
        self._changed(True)

    def present(self) -> None:
        """Give the step view the screen, in slow motion, or take it back."""
        if self.hall:
            self.close()
            return
        self._before_hall = self.open
        if not self.motion.teaching:
            self.teach()
        self.hall = True
        self._open()

    def close(self) -> None:
        """Back to the live end, without the step view; from a hall, to the step view as it was before."""
        if self.hall and self._before_hall:
            self.hall = False
            self._open()
            return
        if self.motion.teaching and self.replay.recording is not None:
            self.replay.recording.set_playing(self._played)
        self.motion.teaching, self.motion.quiz = False, None
        self.open = self.hall = False
        self.go_live()

    def go_live(self) -> None:
        """Back to the newest round and to the engine's own pace."""
        self.motion.set_pace(FULL)
        self._leave()

    def skip(self) -> bool:
        """Show the rest of a slowed answer at once, unless it is looked at step by step; says whether there was any."""
        behind = self.motion.active and not self.motion.at_end and not self.open
        if behind:
            self._leave()
        return behind

    def _leave(self) -> None:
        self.position = None
        self.motion.end()
        self.show()

    def visit(self, position: Position | None, otherwise: str = NOTHING) -> None:
        """Stand at a place, with the step view. Raises ``SlashError`` with ``otherwise`` when there is none."""
        if position is None:
            raise SlashError(otherwise)
        self.position = position
        rounds = self.travel.rounds(position.turn)
        self.motion.playing = False
        if rounds is not None and self.motion.active:
            self.motion.stand(rounds, position.step)
        if self.open:
            self.show()
        else:
            self._open()

    def visit_kept(self, accepted: int) -> None:
        """Go to the next round of the answer on show that kept ``accepted`` drafts, in a circle."""
        self.visit(self.travel.next_with(self.here(), accepted), f"No round of this answer kept {accepted}.")

    def go_to_number(self, number: int) -> None:
        """Go to round ``number`` of the turn on show; or take it as a guess where one was asked for."""
        if self.motion.waiting:
            if number > self.motion.num_guesses:
                raise SlashError(f"Type a number from 0 to {self.motion.num_guesses}.")
            self.motion.answer(number)
            self._follow_motion()
        else:
            self.visit_round(number)

    def visit_round(self, number: int) -> None:
        """Go to a round of the turn on show, or the nearest that it has; in a recording also to one that is to come."""
        turn = self.here().turn
        self.replay.reach(turn, number)
        self.visit(self.travel.at(turn, number))

    def move(self, move: Move) -> None:
        """Move the place by one of the step view's own keys."""
        here = self.here()
        match move:
            case "first":
                self.visit(self.travel.at(here.turn, 0))
            case "live":
                self.go_live()
            case "phase-back" | "phase-forward":
                self.change_phase(-1 if move == "phase-back" else 1)
            case "slower" | "faster":
                pace = self.motion.pace * (0.5 if move == "slower" else 2)
                self.set_pace(min(max(pace, SLOWEST), FULL))
            case "token-back" | "token-forward":
                position = self.travel.next_token(here, -1 if move == "token-back" else 1)
                self.visit(position, "There is no further token that way.")

    def pick(self, turn: int, token: int) -> None:
        """Put the cursor on a token of the transcript."""
        self.visit(self.travel.of_token(turn, token), NOT_KEPT)

    # Slow motion

    def teach(self) -> None:
        """Begin slow motion with the phases of every round, or end it."""
        if self.motion.teaching:
            self.close()
            return
        here = self.here()
        self._played = self.replay.recording is not None and self.replay.recording.playing
        # An answer that has ended is shown from its first draft on; one that runs, from now on.
        from_start = self.position is None and self._ended
        self.motion.teach()
        self._play_from(self.travel.beginning(here.turn) if from_start else self.travel.at(here.turn, here.step))
        self._open()

    def _play_from(self, position: Position | None) -> None:
        rounds = self.travel.rounds(position.turn) if position else None
        if position is not None and rounds is not None:
            self.position = position
            self.motion.begin(rounds, position.step, time.monotonic())

    def set_pace(self, pace: float) -> None:
        """How fast rounds are shown, as a share of the engine's own speed. Raises ``ValueError`` out of range."""
        self.motion.set_pace(pace)
        if self.motion.active and not self.motion.wanted:
            self._leave()
        else:
            self.show()

    def play(self) -> None:
        """Pause or go on: slow motion, or without it the live view, which stands while the engine goes on."""
        if self.motion.active and self.motion.at_end and self._ended and not self._more_to_come:
            self._play_again()
        elif self.motion.active:
            self.motion.toggle(time.monotonic())
            self.show()
        elif not self.happens_now:
            self.play_recording()
        elif self.position is None:
            self.visit(self.here())
        else:
            self.go_live()

    @property
    def _ended(self) -> bool:
        """Whether nothing will be added to the answer on show."""
        turn = self.turn
        return turn is not None and not turn.running

    @property
    def _more_to_come(self) -> bool:
        """Whether slow motion goes on with what a recording has behind the answer on show."""
        recording = self.replay.recording
        return self.motion.teaching and recording is not None and not recording.ended

    def _hold_recording(self) -> None:
        """Have a recording wait for slow motion: its next round comes when those that are there have been seen."""
        recording, motion = self.replay.recording, self.motion
        wanted = motion.playing and motion.at_end
        if recording is not None and motion.teaching and motion.active and recording.playing != wanted:
            recording.set_playing(wanted)

    def _fetch(self) -> None:
        """Where slow motion stands at the newest round of a recording, have that hand out one more."""
        position, latest = self.position, self.travel.latest()
        if not self._more_to_come or position is None or latest is None or replace(position, token=None) != latest:
            return
        self.replay.advance()
        self.motion.playing = False  # the answer may be the next one, which begins to play by itself

    def next_round(self, direction: int) -> None:
        """Stand at the round before (-1) or behind (1). Raises ``SlashError`` when there is none."""
        if direction > 0:
            self._fetch()
        self.visit(self.travel.next_step(self.here(), direction), NO_MORE)

    def _play_again(self) -> None:
        self._play_from(self.travel.beginning(self.here().turn))
        self.show()

    def change_phase(self, direction: int) -> None:
        """Go one phase of the round on (1), behind the last to the next round, or back (-1)."""
        if not self.motion.teaching:
            self.teach()
            self.motion.playing = False
        elif not self.motion.active:
            self._play_from(self.here())
        if direction > 0 and self.motion.phase == PHASES[-1]:
            self._fetch()
            following = self.travel.next_step(self.here(), 1)
            if following is not None and following.turn != self.here().turn:
                self.visit(following)
                return
        self.motion.change_phase(direction)
        self._follow_motion()

    def predict(self, on: bool) -> None:
        """Play the game of guessing how many will be kept, or end it."""
        if on:
            self._desk.require("drafts")
        self.motion.quiz = Quiz() if on else None
        if on and not self.motion.teaching:
            self.teach()
        elif on and self.motion.at_end and self._ended:
            self._play_again()
        self.show()

    # A recording

    def play_recording(self) -> None:
        """Pause or go on: from where the user looks, and from the start again when all is told."""
        position = self.position
        if position is None:
            self.replay.toggle()
        else:
            self.go_live()
            self.replay.play_from(position)

    def step_recording(self, direction: int) -> None:
        """Pause the replay and go one round back (-1) among those that were played, or one on (1)."""
        self.replay.pause()
        position = self.travel.next_step(self.here(), direction)
        if direction > 0 and (self.position is None or position is None):
            self.go_live()
            self.replay.advance()
        else:
            self.visit(position, "This is the first round.")

    def leap_recording(self, tenths: float) -> None:
        """Leaps so many tenths of a recording on, or back, and plays on from there; at its beginning it pauses."""
        if self.replay.can_leap:
            if tenths == -inf:
                self.replay.pause()
            self.go_live()
            self.replay.leap(tenths)

    # Frames

    def frame(self) -> None:
        """Called with every frame, after the events were applied."""
        newest = next(reversed(self._desk.chat.turns), None)
        if newest is not self._seen:
            self._seen = newest
            self.lenses.forget()
            if self.position is not None and (self.motion.playing or not self.motion.active):
                self._leave()  # a question was asked, or a new chat begun; slow motion that was paused stays
        if self.position is not None and not self._still_there(self.position):
            self._leave()
        if self.position is None and self.motion.wanted and self._desk.chat.busy:
            self._fall_behind()
        if self.motion.playing:
            self._tick()
        self._hold_recording()

    def _still_there(self, position: Position) -> bool:
        """Whether the round at ``position`` still exists: a recording that goes back takes rounds away."""
        rounds = self.travel.rounds(position.turn)
        return rounds is not None and position.step < len(rounds) and self.motion.plays(rounds)

    def _fall_behind(self) -> None:
        """Begin to play a running answer in slow motion."""
        turn, position = self._desk.chat.reducer.turn, self.travel.latest()
        if turn is not None and position is not None and position.turn == turn.number:
            self._play_from(position)
            self.show()

    def _tick(self) -> None:
        motion = self.motion
        before = (motion.step, motion.phase, motion.waiting)
        motion.tick(time.monotonic())
        if motion.at_end and self._ended and not self._more_to_come:
            motion.playing = False
            if not motion.teaching:
                self._leave()
                return
        if (motion.step, motion.phase, motion.waiting) != before or not motion.playing:
            self._follow_motion()

    def _follow_motion(self) -> None:
        if self.position is not None and self.motion.active:
            if self.motion.step != self.position.step:
                self.position = Position(self.position.turn, self.motion.step)
            self.show()

    # Showing

    def show(self) -> None:
        """Have everything on the screen brought to the place."""
        self._changed(False)
