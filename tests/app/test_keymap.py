"""The user's own keys: which are taken, who loses one, and what sentences then name."""

from __future__ import annotations

from pathlib import Path

import pytest

from dflash_tui.app.actions import ACTIONS
from dflash_tui.app.keymap import AcceptedKeys, accepted_keys, said_with
from dflash_tui.core.settings.config import Entry

PLACE = Path("config.toml")


def keys(**wanted: str) -> dict[str, Entry]:
    return {id.replace("_", "-"): Entry(value, PLACE, line) for line, (id, value) in enumerate(wanted.items(), 1)}


@pytest.mark.parametrize(
    ("wanted", "message"),
    [
        (keys(sav="f9"), "config.toml, line 1: there is no action sav"),
        (keys(block_up="x"), "x alone would be missing when you type"),
        (keys(save="ctrl+q"), "ctrl+q is kept for quitting"),
        (keys(save="Strg S"), "strg s is no key"),
        (keys(save=" , "), "save has no key left"),
        (keys(retry="f9"), "takes no key"),
    ],
)
def test_keys_that_can_not_be_taken(wanted: dict[str, Entry], message: str) -> None:
    accepted = accepted_keys(wanted, ACTIONS)
    assert accepted.keymap == {} and len(accepted.mistakes) == 1 and message in accepted.mistakes[0]


def test_who_loses_a_key_is_told() -> None:
    losses = ["ctrl+n is now save and no longer new"]
    assert accepted_keys(keys(save="ctrl+n"), ACTIONS) == AcceptedKeys({"save": "ctrl+n"}, [], losses)
    assert accepted_keys(keys(save="f12"), ACTIONS) == AcceptedKeys({"save": "f12"}, [], [])


@pytest.mark.parametrize(
    ("wanted", "keymap", "winner", "loser"),
    [
        (keys(save="f1", help="f1"), {"help": "f1"}, "help", "save"),
        (keys(help="f1", save="f1"), {"save": "f1"}, "save", "help"),
        (keys(save="f1,f12", help="f1"), {"save": "f12", "help": "f1"}, "help", "save"),
    ],
)
def test_of_two_lines_the_later_gets_the_key(
    wanted: dict[str, Entry], keymap: dict[str, str], winner: str, loser: str
) -> None:
    told = f"config.toml, line 1: f1 goes to {winner}, whose line comes later, and not to {loser}"
    assert accepted_keys(wanted, ACTIONS) == AcceptedKeys(keymap, [told], [])


@pytest.mark.parametrize(
    ("keymap", "hints"),
    [
        ({"save": "escape"}, "F1 help · Ctrl+C stop · Esc save"),
        ({"save": "escape", "new": "ctrl+c"}, "F1 help · Ctrl+P stop · Esc save"),
        ({"save": "escape,f1", "interrupt": "f9"}, "/help · F9 stop · Esc save"),
    ],
)
def test_hints_name_a_way_that_is_left(keymap: dict[str, str], hints: str) -> None:
    assert said_with(keymap, ACTIONS)("F1 help · Esc stop · ^S save") == hints


def test_the_keys_of_the_table_do_not_clash() -> None:
    assert (
        accepted_keys(
            {id: Entry(action.keys, PLACE) for id, action in ACTIONS.items() if action.keys}, ACTIONS
        ).mistakes
        == []
    )
