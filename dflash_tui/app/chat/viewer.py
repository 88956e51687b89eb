"""Where the user looks: live, a past round, or slow motion; every widget shows it, and the engine runs on."""

from __future__ import annotations

import time
from collections.abc import Callable
from math import inf

from dflash_tui.core.conversation.reducer import TurnState
from dflash_tui.core.conversation.slash import SlashError
from dflash_tui.core.desk.desk import Desk
from dflash_tui.core.figures.statistics import TurnSnapshot
from dflash_tui.core.rounds.inspection import Inspection, inspect
from dflash_tui.core.rounds.playback import FULL, Quiz
from dflash_tui.core.rounds.slow_motion import SlowMotion
from dflash_tui.core.rounds.travel import Place, Traveller
from engine.events import Clock, Step

from ..widgets.rounds.spotlight import Spotlight
from ..widgets.rounds.step_table import Scene
from ..widgets.rounds.step_view import Move
from .lens_view import LensView
from .replay import Replay
from .step_words import NO_ANSWER, NOT_KEPT, NOTHING, looking_back, scene_of


class Viewer:
    """Keeps the place, the lens and slow motion. Knows no widget: it says when there is something else to show."""

    def __init__(
        self, desk: Desk, replay: Replay, changed: Callable[[bool], None], painted: Callable[[], None]
    ) -> None:
        """``changed`` is called when another place is on show, with True to give the step view the keyboard;
        ``painted`` when another lens is."""
        self._desk, self.replay, self._changed = desk, replay, changed
        self.travel = Traveller(lambda: desk.chat.turns)
        self.place: Place | None = None
        """The round on show; None at the live end."""
        self.open = False
        """Whether the step view is on the screen."""
        self.lenses = LensView(desk, self.travel, painted)
        self.motion = SlowMotion()
        self._seen: TurnState | None = None
        """The newest turn that there was when it was last looked at."""
        """How many turns the chat had at the last look, and the last one's number: shows whether they changed."""
        self._shown_token = 0
        """The place in its answer of the first token of the round on show."""

    # What is on show

    @property
    def turn(self) -> TurnState | None:
        """The turn on show; live, and behind a question that was refused, the newest one that has an answer."""
        if self.place is not None:
            return self._turn(self.place.turn)
        newest = self._desk.chat.reducer.turn
        if newest is None or newest.error is None or len(newest.history):
            return newest
        answered = self.travel.latest()
        return self._turn(answered.turn) if answered else newest

    @property
    def happens_now(self) -> bool:
        """Whether the newest round is the latest there is; in a recording more may be still to come."""
        return self.replay.recording is None

    @property
    def times(self) -> Clock:
        """Whose clock took the times of the turn's rounds."""
        ready = self._desk.ready
        return ready.times if ready else "engine"

    def _turn(self, number: int) -> TurnState | None:
        return self._desk.chat.reducer.turn_of(number)

    @property
    def snapshot(self) -> TurnSnapshot | None:
        """The figures of the turn up to the round on show; None before there are any."""
        turn = self.turn
        if turn is None or self.place is None:
            return turn.snapshot if turn else None
        # What the figures made of a round would give away what is being guessed.
        return turn.snapshot_at(max(self.place.step - self.motion.waiting, 0))

    @property
    def step(self) -> Step | None:
        """The round on show; live, the latest that had a draft."""
        turn = self.turn
        if turn is None or self.place is None:
            return (turn.latest_drafted or turn.latest) if turn else None
        return turn.history[self.place.step]

    @property
    def inspection(self) -> Inspection | None:
        """The round on show taken apart."""
        place = self.place or self.travel.latest()
        turn = self._turn(place.turn) if place else None
        if place is None or turn is None:
            return None
        plain_ms, ready = self._desk.chat.reducer.plain_ms_of(turn), self._desk.ready
        recurs = ready is not None and ready.recurs
        return inspect(turn.history, place.step, turn.num_prompt_tokens, turn.seed, plain_ms, self.times, recurs)

    # Going somewhere

    def here(self) -> Place:
        """The place on show, the newest round when live. Raises ``SlashError`` when there is none."""
        place = self.place or self.travel.latest()
        if place is None:
            raise SlashError(NOTHING)
        return place

    def toggle(self) -> None:
        """Open the step view, or close it and go back to the live end."""
        if not self.open and self.happens_now and not self._desk.chat.busy:
            self.here()  # says what to do first
        self.close() if self.open else self._open()

    def _open(self) -> None:
        self.open = True
        self._changed(True)

    def close(self) -> None:
        """Back to the live end, without the step view."""
        self.motion.teaching, self.motion.quiz = False, None
        self.open = False
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
        self.place = None
        self.motion.end()
        self.show()

    def visit(self, place: Place | None, otherwise: str = NOTHING) -> None:
        """Stand at a place, with the step view. Raises ``SlashError`` with ``otherwise`` when there is none."""
        if place is None:
            raise SlashError(otherwise)
        self.place = place
        history = self.travel.history(place.turn)
        self.motion.playing = False
        if history is not None and self.motion.active:
            self.motion.stand(history, place.step)
        if self.open:
            self.show()
        else:
            self._open()

    def visit_kept(self, accepted: int) -> None:
        """Go to the next round of the answer on show that kept ``accepted`` drafts, in a circle."""
        self.visit(self.travel.next_with(self.here(), accepted), f"No round of this answer kept {accepted}.")

    def visit_found(self) -> None:
        """Go to where the tokens stood that the round on show looked up, if that was in an answer."""
        shown, turn = self.inspection, self.turn
        if shown is None or turn is None or shown.step.match is None:
            raise SlashError("This round looked nothing up.")
        place = turn.num_prompt_tokens + shown.first_token - 1 - shown.step.match.distance
        self.visit(self.travel.of_position(turn.number, place), NO_ANSWER)

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
            case "token-back" | "token-forward":
                place = self.travel.next_token(here, -1 if move == "token-back" else 1)
                self.visit(place, "There is no further token that way.")

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
        # An answer that has ended is shown from its first draft on; one that runs, from now on.
        from_start = self.place is None and self._ended
        self.motion.teach()
        self._play_from(self.travel.beginning(here.turn) if from_start else self.travel.at(here.turn, here.step))
        self._open()

    def _play_from(self, place: Place | None) -> None:
        history = self.travel.history(place.turn) if place else None
        if place is not None and history is not None:
            self.place = place
            self.motion.begin(history, place.step, time.monotonic())

    def set_pace(self, pace: float) -> None:
        """How fast rounds are shown, as a share of the engine's own speed. Raises ``ValueError`` out of range."""
        self.motion.set_pace(pace)
        if self.motion.active and not self.motion.wanted:
            self._leave()
        else:
            self.show()

    def play(self) -> None:
        """Pause or go on: slow motion, or without it the live view, which stands while the engine goes on."""
        if self.motion.active and self.motion.at_end and self._ended:
            self._play_again()
        elif self.motion.active:
            self.motion.toggle(time.monotonic())
            self.show()
        elif not self.happens_now:
            self.play_recording()
        elif self.place is None:
            self.visit(self.here())
        else:
            self.go_live()

    @property
    def _ended(self) -> bool:
        """Whether nothing will be added to the answer on show."""
        turn = self.turn
        return turn is not None and turn.reason is not None

    def _play_again(self) -> None:
        self._play_from(self.travel.beginning(self.here().turn))
        self.show()

    def change_phase(self, direction: int) -> None:
        """Go one phase of the round on (1), or back (-1)."""
        if not self.motion.teaching:
            self.teach()
            self.motion.playing = False
        elif not self.motion.active:
            self._play_from(self.here())
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
        place = self.place
        if place is None:
            self.replay.toggle()
        else:
            self.go_live()
            self.replay.play_from(place)

    def step_recording(self, direction: int) -> None:
        """Pause the replay and go one round back (-1) among those that were played, or one on (1)."""
        self.replay.pause()
        place = self.travel.next_step(self.here(), direction)
        if direction > 0 and (self.place is None or place is None):
            self.go_live()
            self.replay.advance()
        else:
            self.visit(place, "This is the first round.")

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
            if self.place is not None and (self.motion.playing or not self.motion.active):
                self._leave()  # a question was asked, or a new chat begun; slow motion that was paused stays
        if self.place is not None and not self._still_there(self.place):
            self._leave()
        if self.place is None and self.motion.wanted and self._desk.chat.busy:
            self._fall_behind()
        if self.motion.playing:
            self._tick()

    def _still_there(self, place: Place) -> bool:
        """Whether the round at ``place`` still exists: a recording that goes back takes rounds away."""
        history = self.travel.history(place.turn)
        return history is not None and place.step < len(history) and self.motion.plays(history)

    def _fall_behind(self) -> None:
        """Begin to play a running answer in slow motion."""
        turn, place = self._desk.chat.reducer.turn, self.travel.latest()
        if turn is not None and place is not None and place.turn == turn.number:
            self._play_from(place)
            self.show()

    def _tick(self) -> None:
        motion = self.motion
        before = (motion.step, motion.phase, motion.waiting)
        motion.tick(time.monotonic())
        if motion.at_end and self._ended:
            motion.playing = False
            if not motion.teaching:
                self._leave()
                return
        if (motion.step, motion.phase, motion.waiting) != before or not motion.playing:
            self._follow_motion()

    def _follow_motion(self) -> None:
        if self.place is not None and self.motion.active:
            if self.motion.step != self.place.step:
                self.place = Place(self.place.turn, self.motion.step)
            self.show()

    # Showing

    def show(self) -> None:
        """Have everything on the screen brought to the place."""
        self._changed(False)

    @property
    def round_place(self) -> Place | None:
        """The place of the round on show; None before there is one."""
        return self.place or self.travel.latest()

    @property
    def num_rounds(self) -> int:
        """How many rounds of the answer on show are known."""
        place = self.round_place
        if place is None:
            return 0
        return max(len(self.travel.history(place.turn) or ()), self.replay.num_rounds(place.turn))

    @property
    def scene(self) -> Scene | None:
        """What the step view draws: the round on show, and what is said about it."""
        inspection, place = self.inspection, self.round_place
        if inspection is None or place is None:
            return None
        running = self._desk.chat.busy and self.happens_now
        notes = () if self.place is None else looking_back(running, self._way_back)
        return scene_of(inspection, place, self.motion, len(self.travel.turns), notes)

    @property
    def _way_back(self) -> str:
        return "End: live" if self.happens_now else "End: to the end"

    def spotlight(self) -> Spotlight | None:
        """What the transcript points at."""
        place = self.place
        history = self.travel.history(place.turn) if place else None
        if place is None or history is None:
            return None
        first, behind = history.tokens_before(place.step), history.emitted_sum[place.step]
        self._shown_token = first
        return Spotlight(
            place.turn,
            first,
            behind if self.motion.phase == "emit" else first,
            place.token,
            hide=self.motion.active,
            label=f" round {place.step} · {self._way_back} ",
        )
