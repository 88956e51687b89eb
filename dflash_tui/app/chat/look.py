"""What is on show where the user looks: the turn, its figures, and the round taken apart."""

from __future__ import annotations

from dataclasses import replace

from dflash_tui.core.conversation.turn import Turn
from dflash_tui.core.desk.desk import Desk
from dflash_tui.core.desk.views import gauge_facts
from dflash_tui.core.figures.statistics import TurnSnapshot
from dflash_tui.core.figures.tables import against_memory
from dflash_tui.core.rounds.inspection import Inspection, inspect
from dflash_tui.core.rounds.slow_motion import SlowMotion
from dflash_tui.core.rounds.travel import Position, Traveller
from engine.events import Clock, Step

from ..widgets.rounds.spotlight import Spotlight
from ..widgets.rounds.step_table import Scene
from .replay import Replay
from .step_words import looking_back, scene_of, tally


class Look:
    """The place that is looked at, live or back, and all that is known of it."""

    def __init__(self, desk: Desk, replay: Replay) -> None:
        self._desk, self.replay = desk, replay
        self.travel = Traveller(lambda: desk.chat.turns)
        self.position: Position | None = None
        """The round on show; None at the live end."""
        self.open = False
        """Whether the step view is on the screen."""
        self.hall = False
        """Whether the step view takes the screen, in large cells."""
        self.motion = SlowMotion()

    @property
    def turn(self) -> Turn | None:
        """The turn on show; live, and behind a question that was refused, the newest one that has an answer."""
        if self.position is not None:
            return self._turn(self.position.turn)
        newest = self._desk.chat.reducer.turn
        if newest is None or newest.failure is None or len(newest.rounds):
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

    def _turn(self, number: int) -> Turn | None:
        return self._desk.chat.reducer.turn_of(number)

    @property
    def snapshot(self) -> TurnSnapshot | None:
        """The figures of the turn up to the round on show; None before there are any."""
        turn = self.turn
        if turn is None or self.position is None:
            return turn.snapshot if turn else None
        # What the figures made of a round would give away what is being guessed.
        return turn.snapshot_at(max(self.position.step - self.motion.waiting, 0))

    @property
    def step(self) -> Step | None:
        """The round on show; live, the latest that had a draft."""
        turn = self.turn
        if turn is None or self.position is None:
            return (turn.latest_drafted or turn.latest) if turn else None
        return turn.rounds[self.position.step]

    @property
    def inspection(self) -> Inspection | None:
        """The round on show taken apart."""
        position = self.position or self.travel.latest()
        turn = self._turn(position.turn) if position else None
        if position is None or turn is None:
            return None
        plain_ms, ready = turn.snapshot.alone_ms, self._desk.ready
        recurs, method = (False, None) if ready is None else (ready.recurs, ready.method)
        where = turn.rounds, position.step, turn.num_prompt_tokens, turn.seed
        return inspect(*where, plain_ms, self.times, recurs, method)

    @property
    def round_place(self) -> Position | None:
        """The place of the round on show; None before there is one."""
        return self.position or self.travel.latest()

    @property
    def num_rounds(self) -> int:
        """How many rounds of the answer on show are known."""
        number = self.round_place
        if number is None:
            return 0
        return max(len(self.travel.rounds(number.turn) or ()), self.replay.num_rounds(number.turn))

    @property
    def scene(self) -> Scene | None:
        """What the step view draws: the round on show, and what is said about it."""
        inspection, number = self.inspection, self.round_place
        if inspection is None or number is None:
            return None
        running = self._desk.chat.busy and self.happens_now
        notes = () if self.position is None else looking_back(running, self._way_back)
        turn = self._turn(number.turn)
        facts = gauge_facts(self._desk.chat, turn, turn.snapshot if turn else TurnSnapshot())
        asides = against_memory(facts)
        notes = (*(f"{aside} · {note}" for aside in asides for note in notes), *notes)
        scene = scene_of(inspection, number, self.motion, len(self.travel.turns), notes)
        scene = replace(scene, aside=() if scene.notes else asides)
        rounds = self.travel.rounds(number.turn)
        if not self.hall or rounds is None:
            return scene
        ended = number.step + scene.reached("emit")
        return replace(scene, tally=tally(rounds.tokens_before(ended), max(ended - 1, 0)))  # round 0 is the prompt's

    @property
    def _way_back(self) -> str:
        return "End: live" if self.happens_now else "End: to the end"

    def spotlight(self) -> Spotlight | None:
        """What the transcript points at."""
        position = self.position
        rounds = self.travel.rounds(position.turn) if position else None
        if position is None or rounds is None:
            return None
        first, behind = rounds.tokens_before(position.step), rounds.emitted_sum[position.step]
        return Spotlight(
            position.turn,
            first,
            behind if self.motion.phase == "emit" else first,
            position.token,
            hide=self.motion.active,
            label=f" round {position.step} · {self._way_back} ",
        )
