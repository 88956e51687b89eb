"""Going through the versions of a conversation at a desk."""

from __future__ import annotations

import pytest

from dflash_tui.core.conversation.slash import SlashError
from dflash_tui.core.sessions.sessions import load_session

from .conftest import Sit


def test_branches_are_named_gone_to_and_listed(sit: Sit) -> None:
    seat = sit()
    assert "no question yet" in seat.type("/tree", "/name side")
    seat.type("one", "two", "/edit 1 uno", "/name side", "/go 1")
    assert ("named", 3) in seat.face.changes and seat.face.changes[-1] == ("path", 0)
    assert [each.question for each in seat.desk.chat.tree.path] == ["one"]
    seat.type("/go si")
    assert seat.desk.chat.tree.here == 3 and "There is no question or branch" in seat.type("/go nowhere")
    seat.type("/go 0", "afresh")
    assert [each.question for each in seat.desk.chat.tree.path] == ["afresh"]
    listed = seat.type("/tree")
    assert "3, the beginning, version 2 of 3 of the question, branch side: uno" in listed
    assert "No question has these words" in seat.type("/tree zebra") and "two" in seat.type("/tree two")
    kept = load_session(seat.queue.log.path).tree
    assert (kept.here, kept[3].name) == (4, "side")


def test_the_versions_keys_turn_over_what_was_turned_last(sit: Sit) -> None:
    seat = sit()
    seat.type("one")
    desk = seat.desk
    with pytest.raises(SlashError, match="Nothing here has versions"):
        desk.turnable()
    seat.type("/retry", "two", "/edit 3 TWO")
    assert desk.turnable(-1) == (4, "question"), "the newest first"
    desk.turn_over(2, "answer", -1)
    assert seat.face.changes[-1] == ("path", 0) and desk.chat.tree.here == 1
    with pytest.raises(SlashError, match="this is version 1"):
        desk.turn_over(1, "answer", -1)
    assert desk.turnable(1) == (1, "answer"), "the other key undoes it"
    desk.turn_over(1, "answer", 1)
    assert desk.turnable(-1) == (2, "answer"), "although another is newer"
    desk.turn_over(4, "question", -1)
    assert seat.face.changes[-1] == ("place", 3)


def test_a_place_that_was_found_is_gone_to_wherever_it_is(sit: Sit) -> None:
    seat = sit()
    seat.type("one", "/edit 1 uno")
    seat.desk.visit(1)
    assert seat.desk.chat.tree.here == 1 and seat.face.changes[-1] == ("place", 1)
