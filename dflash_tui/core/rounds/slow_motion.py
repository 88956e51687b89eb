"""Slow motion as the user steers it: its pace, phase by phase, and the game of guessing how many will be kept."""

from __future__ import annotations

from engine.rounds.store import RoundStore

from .playback import FULL, LEAST_PHASE, SLOWEST, Phase, Player, Quiz

TEACHING_PACE = 0.05
"""The pace at which slow motion with phases begins when the pace was full."""


class SlowMotion:
    """Plays the rounds of one answer at a time."""

    def __init__(self) -> None:
        self.pace = FULL
        """What a viewer sees of the engine's speed, from ``SLOWEST`` to ``FULL``."""
        self.teaching = False
        """Whether rounds show phase by phase, not whole."""
        self.moves = True
        """False for those who asked for less motion: phases change by keys only, rounds still follow each other."""
        self.playing = False
        self.quiz: Quiz | None = None
        """The guessing game; None while it is off."""
        self._player: Player | None = None
        self._clock = 0.0

    @property
    def active(self) -> bool:
        """Whether an answer is being played, or held at a phase."""
        return self._player is not None

    def plays(self, rounds: RoundStore) -> bool:
        """Whether the view may follow this answer: it is played back, or nothing is."""
        return self._player is None or self._player.rounds is rounds

    @property
    def wanted(self) -> bool:
        """The user asked for slow motion, whether or not there is an answer to play."""
        return self.teaching or self.pace < FULL

    @property
    def can_play(self) -> bool:
        """Whether rounds go on by themselves when they are asked to."""
        return self.moves or not self.teaching

    @property
    def step(self) -> int:
        """The round on show; meaningless unless ``active``."""
        return self._player.step if self._player else 0

    @property
    def phase(self) -> Phase:
        return self._player.phase if self._player and self.teaching else "emit"

    @property
    def at_end(self) -> bool:
        return self._player is None or self._player.at_end

    def set_pace(self, pace: float) -> None:
        """Set the pace, as a share of the engine's. Raises ``ValueError``, in words for people, when it is out of
        range."""
        if not SLOWEST <= pace <= FULL:
            raise ValueError(f"The pace must be between {SLOWEST} and {FULL:g}, not {pace:g}")
        self.pace = pace

    def teach(self) -> None:
        """Show phases from now on, slowly."""
        self.teaching = True
        self.pace = TEACHING_PACE if self.pace >= FULL else self.pace

    def begin(self, rounds: RoundStore, step: int, now: float) -> None:
        """Play from round ``step`` on. ``now`` is the viewer's clock in seconds, here and below."""
        self.stand(rounds, step)
        self.resume(now)

    def stand(self, rounds: RoundStore, step: int) -> None:
        """Go to a round: to its beginning where phases show, else to its end."""
        self._player = Player(rounds, step, 0.0 if self.teaching else 1.0)
        self._clear_question()

    def end(self) -> None:
        """Play nothing any more."""
        self._player, self.playing = None, False
        self._clear_question()

    def resume(self, now: float) -> None:
        self.playing, self._clock = self.can_play, now

    def toggle(self, now: float) -> None:
        """Pause, or go on."""
        if self.playing:
            self.playing = False
        else:
            self.resume(now)

    def show_from(self, phase: Phase) -> None:
        """Go to where a phase of the round on show begins, and stay there."""
        self.playing = False
        if self._player is not None:
            self._player.show_from(phase)

    def change_phase(self, direction: int) -> None:
        """Go to the next phase (1) or back to the one before (-1), and stay there."""
        if self._player is None:
            return
        self.playing, before = False, self._player.step
        if direction > 0:
            self._player.next_phase()
        else:
            self._player.previous_phase()
        if self._player.step != before:
            self._clear_question()
        if self._before_the_verdict:
            self._ask()

    def tick(self, now: float) -> None:
        """Let the time pass that went by since the last call."""
        passed, self._clock = now - self._clock, now
        player = self._player
        if player is None or not self.playing or self.waiting:
            return
        before = player.step
        player.advance(passed, self.pace, LEAST_PHASE if self.teaching else 0.0)
        if player.step != before:
            self._clear_question()
        if self._before_the_verdict:
            self._ask()

    # The game

    @property
    def waiting(self) -> bool:
        """Whether the game waits for a guess."""
        return self.quiz is not None and self.quiz.asked

    @property
    def num_guesses(self) -> int:
        """Drafts of the round on show that are checked: of the others none can be kept."""
        if self._player is None:
            return 0
        rounds, step = self._player.rounds, self._player.step
        return min(len(rounds[step].draft), rounds.verified[step])

    def answer(self, guess: int) -> None:
        """Say how many will be kept. The round shows its verdict, and stands until the user goes on."""
        player, quiz = self._player, self.quiz
        if player is None or quiz is None or not self.waiting:
            return
        quiz.answer(guess, player.rounds.accepted[player.step])
        player.show_from("emit")
        self.playing = False

    @property
    def _before_the_verdict(self) -> bool:
        quiz, player = self.quiz, self._player
        if quiz is None or player is None or not self.teaching:
            return False
        return player.phase in ("draft", "verify") and quiz.guess is None and player.rounds.verified[player.step] > 0

    def _ask(self) -> None:
        """Ask how many will be kept, with the round at its drafts: the target's choices would give the answer away."""
        if self._player is not None and self.quiz is not None:
            self._player.show_from("draft")
            self.quiz.ask()

    def _clear_question(self) -> None:
        if self.quiz is not None:
            self.quiz.forget()
