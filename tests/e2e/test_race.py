"""The race on the bundled pair: the same text, and the same speed-up on the screen as without one."""

from __future__ import annotations

import json
import re
import subprocess
from typing import Any

import pytest

from .chatting import PROGRAM
from .conftest import OpenChat

QUESTION = "Write a quicksort in Python"
SHORT = ("--max-new-tokens", "64")
"""Enough for a median; the whole answer takes seconds on a busy machine."""


def race(*arguments: str) -> dict[str, Any]:
    command = [PROGRAM, "race", "-p", QUESTION, "--json", *SHORT, *arguments]
    result = subprocess.run(command, capture_output=True, timeout=120, stdin=subprocess.DEVNULL)
    assert result.returncode == 0, result.stderr.decode()
    report: dict[str, Any] = json.loads(result.stdout)
    return report


@pytest.fixture(scope="module")
def greedy() -> dict[str, Any]:
    """At temperature 0, with the lanes of the screen."""
    return race("--runs", "3", "--block-size", "16", "--block-size", "8")


def check_that_drafts_change_no_token(report: dict[str, Any]) -> None:
    assert report["identical"], report["remarks"]
    alone, wide, narrow = report["lanes"]
    assert alone["text"] == wide["text"] == narrow["text"] != ""
    assert {lane["num_reused_tokens"] for lane in report["lanes"]} == {alone["num_reused_tokens"]}
    assert alone["draft_passes"] == 0 and alone["target_passes"] == alone["num_tokens"] - 1
    assert wide["target_passes"] <= narrow["target_passes"] < alone["target_passes"]


def test_drafts_change_no_token(greedy: dict[str, Any]) -> None:
    check_that_drafts_change_no_token(greedy)


@pytest.mark.ci
@pytest.mark.terminal
def test_the_screen_shows_what_is_measured_without_one(chat: OpenChat, greedy: dict[str, Any]) -> None:
    """Within 5 % on a quiet machine. Where other programs take the processor in the middle of either, one pair of runs
    can be further apart than a factor of two; three in a row are not, unless the screen itself slows one lane."""
    window = chat(*SHORT)
    shown = re.compile(r"DFlash, block 16 +\d+ +([\d.]+)×")
    ratios = []
    for measured in (greedy, None, None):
        window.ask(f"/race {QUESTION}")
        window.terminal.wait_for("End result")
        window.terminal.press("End")  # what was measured is known before it is shown, slowed
        screen = window.terminal.wait_for(lambda text: shown.search(text))
        found = shown.search(screen)
        assert found is not None
        speed_up = (measured or race("--runs", "3", "--block-size", "16"))["lanes"][1]["speed_up"]
        ratios.append(float(found[1]) / speed_up)
        if 0.5 < ratios[-1] < 2:
            return
        window.terminal.press("Escape")
        window.terminal.wait_for(lambda text: "DFlash, block 16" not in text)
    raise AssertionError(f"the screen's speed-up for the command's: {ratios}")
