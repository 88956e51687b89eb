"""``dflash-chat race`` as the command line sees it."""

from __future__ import annotations

import json

import pytest

from dflash_tui.core.exit_codes import ExitCode
from dflash_tui.core.race.lanes import ALONE
from engine.commands import AUTO
from engine.events import EngineError
from support.scripted import Script

from .conftest import Program

PROMPT = ("race", "-p", "hi")
OUT_OF_MEMORY = EngineError("device", "The GPU ran out of memory.", "Close something.")


def test_the_table_has_a_row_per_lane(program: Program) -> None:
    program.run(*PROMPT, "--block-size", "16", "--block-size", "4", "--runs", "2")
    assert program.code == ExitCode.OK
    rows = program.out.decode().splitlines()
    assert rows[0].split()[:2] == ["tokens/s", "speed-up"]
    assert [row.partition("  ")[0] for row in rows[1:4]] == [ALONE, "DFlash, block 16", "DFlash, block 4"]
    settings = [ask.settings for ask in program.engine.asked]
    assert [(each.speculation, each.block_size) for each in settings[1::2]] == [
        (False, AUTO), (True, 16), (True, 4), (True, 4), (True, 16), (False, AUTO),
    ]  # fmt: skip


def test_drafters_race_on_an_engine_each(program: Program) -> None:
    """The target alone comes first, and runs where the first drafter does."""
    program.run(*PROMPT, "--draft", "mtp,lookup,none,dflash", "--runs", "1")
    assert program.code == ExitCode.OK
    rows = program.out.decode().splitlines()
    lanes = [row.partition("  ")[0] for row in rows[1:5]]
    assert lanes == [ALONE, "MTP, auto", "Lookup, auto", "DFlash, auto"]
    asked = [[ask.settings for ask in engine.asked[1::2]] for engine in program.engines]
    assert [engine.options.drafter for engine in program.engines] == ["mtp", "dflash"]
    said = [[(each.speculation, each.draft_by) for each in settings] for settings in asked]
    assert said == [[(False, "both"), (True, "drafter"), (True, "lookup")], [(True, "drafter")]]


def test_one_drafter_is_called_by_its_kind(program: Program) -> None:
    program.run(*PROMPT, "--draft", "mtp", "--runs", "1")
    assert b"\nMTP, auto" in program.out and b"DFlash" not in program.out


def test_json_is_one_object(program: Program) -> None:
    program.run(*PROMPT, "--json", "--runs", "1", "--temperature", "0.8", "--seed", "5", "--system", "Be brief.")
    assert program.code == ExitCode.OK
    result = json.loads(program.out)
    assert result["question"] == "hi" and result["identical"] is True
    alone, drafted = result["lanes"]
    assert (alone["name"], alone["num_tokens"]) == (ALONE, drafted["num_tokens"])
    assert drafted["settings"]["temperature"] == 0.8 and drafted["settings"]["seed"] == 5
    assert drafted["first_divergence"] is None and drafted["text"] == alone["text"]
    assert result["models"]["target"] == "tiny"
    assert [message.content for message in program.engine.asked[1].messages] == ["Be brief.", "hi"]


@pytest.mark.parametrize(
    ("arguments", "complaint"),
    [
        (("race",), "needs a question"),
        (("race", "-p", " "), "empty"),
        ((*PROMPT, "--block-size", "17"), "Block size must be between"),
        ((*PROMPT, "--temperature", "3"), "Temperature must be"),
        ((*PROMPT, "--runs", "0"), "--runs"),
        ((*PROMPT, "--draft", "mtp,mtp"), "each once"),
        ((*PROMPT, "--draft", "none,none"), "each once"),
        ((*PROMPT, "--draft", "mtp,dflash", "--against", "http://localhost:1"), "on this engine alone"),
        ((*PROMPT, "--draft", "lookup", "--against", "http://localhost:1"), "--draft lookup races on this"),
    ],
)
def test_what_cannot_be_raced_is_told_before_a_model_is_loaded(
    program: Program, arguments: tuple[str, ...], complaint: str
) -> None:
    program.run(*arguments, stdin=None)
    assert (program.code, program.out) == (ExitCode.USAGE, b"")
    assert complaint in program.err and not program.engines


def test_an_answer_that_fails_ends_the_race(program: Program) -> None:
    program.script = Script(error=OUT_OF_MEMORY)
    program.run(*PROMPT)
    assert (program.code, program.out) == (ExitCode.DEVICE, b"")
    assert len(program.engine.asked) == 1


@pytest.mark.parametrize("draft", ["none", "lookup", "lookup,none"])
def test_lookup_races_without_a_drafter(program: Program, draft: str) -> None:
    program.run(*PROMPT, "--draft", draft, "--runs", "1")
    assert program.code == ExitCode.OK and program.engine.options.drafter == "none"
    assert [row.partition("  ")[0] for row in program.out.decode().splitlines()[1:3]] == [ALONE, "Lookup, auto"]
