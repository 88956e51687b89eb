from __future__ import annotations

import pytest

from dflash_tui.core.slash import COMMANDS, SlashCommand, SlashError, parse_slash


def test_prompts_are_left_alone() -> None:
    assert parse_slash("what is 3 / 4?") == "what is 3 / 4?"


def test_two_slashes_escape_one() -> None:
    assert parse_slash("//etc/hosts, what is it?") == "/etc/hosts, what is it?"


def test_arguments() -> None:
    command = parse_slash("/temp  0.7 ")
    assert command == SlashCommand("temp", "0.7")
    assert command.number() == 0.7
    assert parse_slash("/system You are\nbrief.") == SlashCommand("system", "You are\nbrief.")


@pytest.mark.parametrize("text", ["/nope", "/", "/etc/hosts"])
def test_an_unknown_command_is_an_error_that_lists_the_known(text: str) -> None:
    with pytest.raises(SlashError) as failure:
        parse_slash(text)
    assert all(f"/{name}" in str(failure.value) for name in COMMANDS)


@pytest.mark.parametrize("text", ["/block wide", "/block", "/seed 1.5"])
def test_a_wrong_number_is_an_error_that_says_what_is_taken(text: str) -> None:
    command = parse_slash(text)
    assert isinstance(command, SlashCommand)
    with pytest.raises(SlashError, match=f"/{command.name} takes"):
        command.integer()


def test_a_switch_is_on_or_off() -> None:
    for text, expected in (("/think on", True), ("/think off", False)):
        command = parse_slash(text)
        assert isinstance(command, SlashCommand) and command.switch() is expected
    for text in ("/think", "/think maybe"):
        command = parse_slash(text)
        assert isinstance(command, SlashCommand)
        with pytest.raises(SlashError, match=r"/think takes on\|off"):
            command.switch()
