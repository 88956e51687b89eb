"""Actions on where the user looks: the step view, going through the rounds, slow motion, lenses."""

from __future__ import annotations

from dflash_tui.core.conversation.slash import Argument, SlashError
from dflash_tui.core.desk.command import Command
from dflash_tui.core.rounds.lenses import LENSES
from dflash_tui.core.rounds.playback import FULL

from ..chat.screen import ChatScreen
from ..chat.step_words import NO_REJECTION

ROUNDS, REJECTIONS, PHASES = "one round back or on", "back or on to a rejection", "one phase of a round back or on"


def back(screen: ChatScreen, _: Argument) -> None:
    screen.viewer.next_round(-1)


def forward(screen: ChatScreen, _: Argument) -> None:
    screen.viewer.next_round(1)


def rejection_back(screen: ChatScreen, _: Argument) -> None:
    screen.viewer.visit(screen.viewer.travel.next_rejection(screen.viewer.here(), -1), NO_REJECTION)


def rejection_forward(screen: ChatScreen, _: Argument) -> None:
    screen.viewer.visit(screen.viewer.travel.next_rejection(screen.viewer.here(), 1), NO_REJECTION)


def phase_back(screen: ChatScreen, _: Argument) -> None:
    screen.viewer.change_phase(-1)


def phase_forward(screen: ChatScreen, _: Argument) -> None:
    screen.viewer.change_phase(1)


def teach(screen: ChatScreen, _: Argument) -> None:
    screen.viewer.teach()


def present(screen: ChatScreen, _: Argument) -> None:
    screen.viewer.present()


def play(screen: ChatScreen, _: Argument) -> None:
    screen.viewer.play()


def predict(screen: ChatScreen, argument: Argument) -> None:
    screen.viewer.predict(argument.switch() if argument.text else screen.viewer.motion.quiz is None)


def set_pace(screen: ChatScreen, argument: Argument) -> None:
    screen.viewer.set_pace(argument.number(full=FULL))


def lens_names(_: ChatScreen) -> list[str]:
    return list(LENSES)


def lens(screen: ChatScreen, argument: Argument) -> None:
    """Colour the transcript through the lens that was named, or else through the next one."""
    if not argument.text:
        screen.viewer.lenses.choose(screen.viewer.lenses.next())
        return
    chosen = next((name for name in LENSES if name == argument.text), None)
    if chosen is None:
        raise SlashError(f"Lenses: {', '.join(LENSES)}")
    screen.viewer.lenses.choose(chosen)


COMMANDS = {
    "race": (
        Command("step-back", "Round before", ROUNDS, back, "comma"),
        Command("step-forward", "Next round", ROUNDS, forward, "full_stop"),
        Command("rejection-back", "Wrong guess before", REJECTIONS, rejection_back, "left_curly_bracket"),
        Command("rejection-forward", "Next wrong guess", REJECTIONS, rejection_forward, "right_curly_bracket"),
        Command(
            "lens",
            "Colour by confidence",
            "colour the text by how sure the drafter was",
            lens,
            "f4,alt+l",
            "lens",
            "[name]",
            choices=lens_names,
            priority=True,
        ),
        Command("teach", "Slow motion", "slow motion, phase by phase", teach, "f5,alt+t", "teach", priority=True),
        Command(
            "present",
            "Project on a wall",
            "the step view in large cells, for a projector",
            present,
            "f8,alt+b",
            "present",
            priority=True,
        ),
        Command("phase-back", "Phase before", PHASES, phase_back, "left_square_bracket"),
        Command("phase-forward", "Next phase", PHASES, phase_forward, "right_square_bracket"),
        Command("play", "Pause, or go on", "pause the view, or go on; the engine never waits", play, "space"),
        Command("predict", "Guess along", "guess how many will be kept", predict, "p", "predict", "[on|off]"),
        Command(
            "pace",
            "Pace of slow motion",
            "how fast rounds are shown; 1 is the engine's pace",
            set_pace,
            slash="pace",
            takes="0.01–1",
        ),
    ),
}
