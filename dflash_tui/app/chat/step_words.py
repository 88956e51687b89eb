"""The words around the step view: which keys do what, how the view differs from the live one, and the guessing game."""

from __future__ import annotations

from collections.abc import Mapping

from textual.binding import ActiveBinding

from dflash_tui.core.rounds.inspection import Inspection
from dflash_tui.core.rounds.playback import FULL
from dflash_tui.core.rounds.slow_motion import SlowMotion
from dflash_tui.core.rounds.travel import Position
from dflash_tui.core.text.counted import counted

from ..keymap import keys_in_force
from ..widgets.rounds.step_table import Scene

NOTHING = "There is no round to look at yet: ask something first."
NOT_KEPT = "The rounds of this answer were not kept."
NO_MORE = "There is no further round that way."
NO_REJECTION = "There is no further rejection that way."

STEPPING_KEYS = (
    ("step-back", "step-forward", "round"),
    ("rejection-back", "rejection-forward", "rejection"),
    ("teach", "", "slow motion"),
)
TEACHING_KEYS = (
    ("phase-back", "phase-forward", "phase"),
    ("step-back", "step-forward", "round"),
    ("predict", "", "guess, or no more"),
    ("rejection-back", "rejection-forward", "rejection"),
)
"""Pairs of actions and what their keys do, for the line under the step view."""

ELSEWHERE = ("Tab, or a click, brings the keys here",)
"""What that line says while the keys go to another part of the screen."""


def keys_line(bindings: Mapping[str, ActiveBinding], motion: SlowMotion) -> tuple[str, ...]:
    """The keys of the step view, as they are bound now."""
    keys = keys_in_force(bindings)
    rows: tuple[tuple[str, str, str], ...] = TEACHING_KEYS if motion.teaching else STEPPING_KEYS
    if motion.teaching and motion.can_play:
        rows = (("play", "", "pause" if motion.playing else "play"), *rows)
    hints = [f"{keys.get(first, '')} {keys.get(last, '')}".strip() + f" {does}" for first, last, does in rows]
    pace = ("− + pace",) if motion.teaching and motion.can_play else ()
    number = "0-9 Enter guess" if motion.waiting else "0-9 Enter go to"
    return ("← → token", *hints, *pace, number, "Esc close")


def looking_back(running: bool, way_back: str) -> tuple[str, ...]:
    """Notes that say that a past round is on show, the longest first; ``way_back`` names the key to the newest."""
    stands = "the view stands, the engine goes on" if running else "a look back"
    return f"{stands} · {way_back}", way_back


def slowed(motion: SlowMotion) -> tuple[str, ...]:
    """Notes that say that rounds are shown in slow motion, stand, or are guessed at, the longest first."""
    pace = f"slowed {motion.pace:.2g}×" if motion.pace < FULL else ""
    stands = "" if motion.playing or motion.waiting else "paused"
    quiz = motion.quiz
    game = "" if quiz is None else f"guessing: {quiz.score}" if quiz.score else "guessing is on"
    brief = "" if quiz is None else f"guessing {quiz.num_right}/{quiz.num_answers}"
    whole = pace.replace("slowed", "slowed for viewing")
    last = stands or brief or pace
    lines = ((game, whole, stands), (game, pace, stands), (brief, pace, stands), (brief, stands), (last,))
    return tuple(" · ".join(filter(None, line)) for line in lines)


def remark(motion: SlowMotion, inspection: Inspection) -> str:
    """What the guessing game says about the round: a question to guess, or what came of the guess."""
    quiz = motion.quiz
    if quiz is None:
        return ""
    if quiz.asked:
        most = motion.num_guesses
        if most == 1:
            return "One guess is checked. Will it be kept? Type 1 for yes or 0 for no."
        return (
            f"How many of the {most} guesses that are checked will be kept? Type a number from 0 to {most}, and Enter."
        )
    if quiz.guess is None:
        return ""
    accepted = inspection.step.num_accepted
    text = f"You said {quiz.guess}: {'right' if quiz.guess == accepted else f'it was {accepted}'}."
    return f"{text} {inspection.why(max(len(inspection.step.emitted) - 1, 0))}"


def tally(tokens: int, passes: int) -> str:
    """How many tokens have been written by now, and how often the target ran for those behind the prompt's."""
    written = f"{counted(tokens, 'token')} written"
    if not passes:
        return f"{written}{' · the prompt gave it' * tokens}"
    return f"{written} · {counted(passes, 'pass')} of the target (alone: {tokens - 1:,})"


def scene_of(
    inspection: Inspection, number: Position, motion: SlowMotion, answers: int, notes: tuple[str, ...]
) -> Scene:
    """A round as the step view shows it. ``answers``: how many there are; ``notes``: how the view differs from the live
    one, where it is not in slow motion."""
    return Scene(
        inspection,
        phase=motion.phase,
        cursor=None if number.token is None else inspection.column_of(number.token),
        title=f"round {number.step}{f' of answer {number.turn}' if answers > 1 else ''}",
        notes=slowed(motion) if motion.active else notes,
        remark=remark(motion, inspection),
        phases=motion.teaching and motion.active,
    )
