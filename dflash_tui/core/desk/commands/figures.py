"""Commands that look at figures: statistics, rounds, the race."""

from __future__ import annotations

import re

from ...conversation.slash import Argument, SlashError
from ...race.race import Race
from ..command import Command
from ..desk import Desk
from ..lanes import RACE_RUNS, own_lanes, question_of
from ..views import Figures, RoundView

_AGAINST = re.compile(r"(?:-*against\s+(?=\w+://|\S+$)|(?=\w+://\S+$))(\S+)")
"""A server to race against, which the chat doesn't do, in the place of a question."""


def show_statistics(desk: Desk, _: Argument) -> None:
    desk.face.show(Figures(desk.chat))


def show_round(desk: Desk, argument: Argument) -> None:
    number = argument.integer() if argument.text else None
    desk.face.show(RoundView(desk.chat, number, desk.source.capabilities.local))


def race(desk: Desk, argument: Argument) -> None:
    """Race the target alone against its drafter."""
    desk.require_idle()
    if server := _AGAINST.match(argument.text):
        raise SlashError(f"A race in the chat is of its own lanes. In a shell: dflash-chat race --against {server[1]}")
    desk.require("speculation")
    lanes = own_lanes(desk.chat.settings, desk.ready, desk.source.capabilities.can("draft_by"))
    messages = question_of(desk.chat, argument.text)

    def create() -> Race:
        return Race(messages, lanes, RACE_RUNS, [desk.source.send])

    desk.face.race(create)


COMMANDS = (
    Command("statistics", "All figures", "the figures of an answer, as tables", show_statistics, slash="stats"),
    Command(
        "steps", "Look inside", "look at the rounds one by one", show_round, "f3,alt+s", "steps", "[n]", priority=True
    ),
    Command(
        "race",
        "Race",
        "with and without guesses",
        race,
        "f6,alt+r",
        "race",
        "[question]",
        priority=True,
    ),
)
