"""The words around the step view: which keys do what, how the view differs from the live one, and the guessing game."""

from __future__ import annotations

from collections.abc import Mapping

from textual.binding import ActiveBinding

from dflash_tui.core.rounds.inspection import Inspection
from dflash_tui.core.rounds.slow_motion import SlowMotion

from .keymap import keys_in_force

STEPPING_KEYS = (
    ("step-back", "step-forward", "round"),
    ("rejection-back", "rejection-forward", "rejection"),
    ("kept", "", "kept as many"),
    ("teach", "", "slow motion"),
)
TEACHING_KEYS = (
    ("play", "", "play"),
    ("phase-back", "phase-forward", "phase"),
    ("step-back", "step-forward", "round"),
    ("predict", "", "guess"),
)
"""Pairs of actions and what their keys do, for the line under the step view."""

ELSEWHERE = ("Tab, or a click, brings the keys here",)
"""Stands there while the keys go to another part of the screen."""


def keys_line(bindings: Mapping[str, ActiveBinding], teaching: bool) -> tuple[str, ...]:
    """The keys of the step view, as they are bound now."""
    keys = keys_in_force(bindings)
    rows = TEACHING_KEYS if teaching else STEPPING_KEYS
    hints = [f"{keys.get(first, '')} {keys.get(last, '')}".strip() + f" {does}" for first, last, does in rows]
    return ("← → token", *hints, "0-9 Enter go to", "Esc close")


def looking_back(running: bool, way_back: str) -> tuple[str, ...]:
    """That a round of the past is on show, in more words and in fewer; ``way_back`` names the key to the newest."""
    stands = "the view stands, the engine goes on" if running else "a look back"
    return f"{stands} · {way_back}", way_back


def slowed(motion: SlowMotion) -> tuple[str, ...]:
    """That rounds are shown in slow motion, in more words and in fewer."""
    words = f"slowed for viewing {motion.pace:.2g}×"
    if motion.playing or motion.waiting:
        return words, f"slowed {motion.pace:.2g}×"
    return f"{words} · paused", words, "slowed, paused"


def remark(motion: SlowMotion, inspection: Inspection) -> str:
    """What the game says."""
    quiz = motion.quiz
    if quiz is None:
        return ""
    score = f" {quiz.score}." if quiz.score else ""
    if quiz.asked:
        guesses = "positions" if inspection.step.tree else "guesses"
        return f"How many of the {motion.num_guesses} {guesses} will be kept? Type a number.{score}"
    if quiz.guess is None:
        return ""
    kept = inspection.step.num_accepted
    return f"You said {quiz.guess}: {'right' if quiz.guess == kept else f'it was {kept}'}.{score}"
