"""The keys of the table."""

from __future__ import annotations

from collections import Counter

from dflash_tui.app.actions import ACTIONS

FIXED = {"enter", "ctrl+q", "ctrl+z"}
"""Sending, quitting, suspending: without them there is no way on, or out."""


def test_the_keys_of_the_table_do_not_clash() -> None:
    keys = Counter(key for action in ACTIONS.values() for key in action.keys.split(",") if key)
    assert keys and set(keys.values()) == {1} and not FIXED & keys.keys()


def test_what_acts_wherever_one_is_takes_no_key_that_types() -> None:
    taken = [key for action in ACTIONS.values() if action.priority for key in action.keys.split(",")]
    assert taken and all("+" in key or key == "escape" or (key[0] == "f" and key[1:].isdigit()) for key in taken)
