"""Commands that look at figures: statistics, rounds, the race."""

from __future__ import annotations

from ...conversation.slash import Argument, SlashError
from ...race.lanes import kind_of, lanes_against
from ...race.opponent import Opponent
from ...race.race import Race
from ...race.report import host_of
from ..command import Command
from ..desk import Desk
from ..lanes import RACE_RUNS, own_lanes, question_of
from ..views import Figures, RoundView

AGAINST = "against"


def show_statistics(desk: Desk, _: Argument) -> None:
    desk.face.show(Figures(desk.chat))


def show_round(desk: Desk, argument: Argument) -> None:
    number = argument.integer() if argument.text else None
    desk.face.show(RoundView(desk.chat, number, desk.source.capabilities.local))


def race(desk: Desk, argument: Argument) -> None:
    """Race the target alone against its drafter, or what answers here against a server."""
    desk.require_idle()
    if argument.text.split(" ", 1)[0] == AGAINST:
        _race_against(desk, argument.text.removeprefix(AGAINST).strip())
        return
    desk.require("speculation")
    lanes = own_lanes(desk.chat.settings, desk.ready, desk.source.capabilities.can("draft_by"))
    messages = question_of(desk.chat, argument.text)

    def create() -> Race:
        return Race(messages, lanes, RACE_RUNS, [desk.source.send])

    desk.face.race(create, None)


def _race_against(desk: Desk, argument: str) -> None:
    """Race what answers here against the server whose URL or name begins ``argument``; a question may follow it."""
    ready, (against, _, question) = desk.ready, argument.partition(" ")
    if ready is None:
        raise SlashError("The race can begin when this chat is ready to answer.")
    if not against or desk.begin.others is None:
        raise SlashError("Say against which server: /race against http://host:8000, or a name of [servers].")
    opponent = Opponent(desk.begin.others(against))
    messages, settings = question_of(desk.chat, question.strip()), desk.chat.settings
    own = [host_of(ready.server)] if ready.server else []
    lanes = lanes_against(
        settings, [] if own else [settings.block_size], [*own, host_of(against)], ready.method or kind_of(ready.drafter)
    )

    def create() -> Race:
        made = Race(messages, lanes, RACE_RUNS, [desk.source.send, opponent.send])
        made.sides = (ready,)
        return made

    desk.face.race(create, opponent)


COMMANDS = (
    Command("statistics", "All figures", "the figures of an answer, as tables", show_statistics, slash="stats"),
    Command(
        "steps", "Look inside", "look at the rounds one by one", show_round, "f3,alt+s", "steps", "[n]", priority=True
    ),
    Command(
        "race",
        "Race",
        "with and without guesses, or against a server",
        race,
        "f6,alt+r",
        "race",
        "[against URL] [question]",
        priority=True,
    ),
)
