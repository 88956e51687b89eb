from __future__ import annotations

import re

import pytest

from dflash_tui.core.conversation.slash import ELSEWHERE, Argument, SlashCommand, SlashError, WaysOut, parse_slash
from dflash_tui.core.desk.commands import COMMANDS

WAYS = WaysOut("Ctrl+Q leaves.", "/ lists them all.")
KNOWN = ("temp", "system", "think")


def test_prompts_are_left_alone() -> None:
    assert parse_slash("what is 3 / 4?", KNOWN, WAYS) == "what is 3 / 4?"


def test_two_slashes_escape_one() -> None:
    assert parse_slash("//etc/hosts, what is it?", KNOWN, WAYS) == "/etc/hosts, what is it?"


def test_a_command_and_its_argument() -> None:
    assert parse_slash("/temp  0.7 ", KNOWN, WAYS) == SlashCommand("temp", "0.7")
    assert parse_slash("/system You are\nbrief.", KNOWN, WAYS) == SlashCommand("system", "You are\nbrief.")


@pytest.mark.parametrize(
    ("text", "hint"),
    [
        ("/nope", "/ lists"),
        ("/", "/ lists"),
        ("/etc/hosts", "/ lists"),
        ("/thinking", "/think?"),
        ("/tmep", "/temp?"),
        ("/exit", "/quit"),
        ("/clear", "/new"),
        ("/settings", "/temp"),
        ("/undo", "/edit"),
        ("/trace", "dflash-chat replay"),
    ],
)
def test_an_unknown_command_is_an_error_that_names_the_nearest_or_where_they_are(text: str, hint: str) -> None:
    with pytest.raises(SlashError) as failure:
        parse_slash(text, KNOWN, WAYS)
    assert hint in str(failure.value) and "//" in str(failure.value)


def test_words_of_other_programs_lead_to_commands_that_are_there() -> None:
    there = {command.slash for command in COMMANDS.values()} | {"quit", "help"}
    assert {name for hint in ELSEWHERE.values() for name in re.findall(r"/(\w+)", hint)} <= there


def test_numbers() -> None:
    assert Argument("0.7").number() == 0.7 and Argument("12").integer() == 12


@pytest.mark.parametrize("text", ["wide", "", "1.5"])
def test_a_wrong_number_is_an_error_that_says_what_is_taken(text: str) -> None:
    with pytest.raises(SlashError, match="/block takes"):
        Argument(text, "/block takes 2–16").integer()


def test_a_switch_is_on_or_off() -> None:
    assert Argument("on").switch() and not Argument("off").switch()
    for text in ("", "maybe"):
        with pytest.raises(SlashError, match=r"/think takes on\|off"):
            Argument(text, "/think takes on|off").switch()


@pytest.mark.parametrize("words", ["quit", "Exit", " :q "])
def test_who_wants_to_leave_is_told_how(words: str) -> None:
    with pytest.raises(SlashError, match=r"^Ctrl\+Q leaves\."):
        parse_slash(words, KNOWN, WAYS)
    assert parse_slash("quit smoking?", KNOWN, WAYS) == "quit smoking?"
