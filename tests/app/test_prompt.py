"""The prompt: history, completion, lines, pastes, examples and the editor."""

from __future__ import annotations

from contextlib import nullcontext
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from textual import events
from textual.app import SuspendNotSupported
from textual.widgets.text_area import Selection

from dflash_tui.app.screens.picker import SearchScreen
from dflash_tui.app.widgets.completion_menu import CompletionMenu
from dflash_tui.app.widgets.starters import Starter, Starters
from dflash_tui.core.conversation.start import STARTERS, starters_of
from engine.commands import Ask
from engine.hub.pairs import SHORT_NAMES

from .conftest import Driver, Launch

PASTE = "\n".join(f"line {number}" for number in range(20))


def menu(chat: Driver) -> str:
    shown = chat.screen.query_one(CompletionMenu)
    return str(shown.visual) if shown.display else ""


async def type_in(chat: Driver, text: str) -> None:
    await chat.pilot.press(*({" ": "space", "/": "slash", "\\": "backslash"}.get(key, key) for key in text))


async def paste(chat: Driver, text: str) -> None:
    chat.prompt.post_message(events.Paste(text))
    await chat.until(lambda: chat.prompt.folds)


async def test_a_command_is_completed_by_tab(chat: Driver) -> None:
    await type_in(chat, "/thi")
    assert "/think" in menu(chat) and "/theme" not in menu(chat)
    assert chat.prompt.suggestion == "nk "
    await chat.pilot.press("tab")
    assert chat.prompt.text == "/think " and "/think on" in menu(chat) and chat.prompt.has_focus
    await chat.pilot.press("down", "tab")
    assert chat.prompt.text == "/think off" and menu(chat) == ""
    await chat.pilot.press("enter")
    assert not chat.screen.chat.settings.thinking and chat.prompt.text == ""


async def test_enter_takes_a_choice_that_was_made_in_the_menu(chat: Driver) -> None:
    await type_in(chat, "/theme dflash-")
    names = [name for name in sorted(chat.app.available_themes) if name.startswith("dflash-")]
    assert all(name in menu(chat) for name in names)
    await chat.pilot.press("down", "up", "up", "enter")
    assert chat.prompt.text == f"/theme {names[-1]}"
    await chat.pilot.press("enter")
    assert chat.app.theme == names[-1]


async def test_enter_completes_half_a_name_and_runs_what_needs_no_more(launch: Launch) -> None:
    async with launch(answer="ok") as chat:
        await chat.ask_and_wait("one")
        await type_in(chat, "/ne")
        await chat.pilot.press("enter")
        assert chat.screen.chat.answers == [] and chat.prompt.text == ""
        await type_in(chat, "/th")
        await chat.pilot.press("enter")
        assert chat.prompt.text.startswith("/th") and chat.prompt.text.endswith(" "), "what it takes is still to come"


async def test_an_unknown_name_is_explained_and_typed_over(chat: Driver) -> None:
    await type_in(chat, "/nope")
    await chat.pilot.press("enter")
    assert "There is no command /nope" in chat.notices() and chat.prompt.text == "/nope"
    await type_in(chat, "hi")
    assert chat.prompt.text == "hi"


async def test_a_word_that_may_mean_a_command_is_typed_over_and_a_question_is_not(chat: Driver) -> None:
    await type_in(chat, "quit")
    await chat.pilot.press("enter")
    assert chat.prompt.selected_text == "quit"
    await type_in(chat, "hi")
    assert chat.prompt.text == "hi"
    chat.prompt.clear()
    chat.prompt.give_back("hello")
    await type_in(chat, "!")
    assert chat.prompt.text == "hello!"


async def test_escape_closes_the_menu_before_anything_else(launch: Launch) -> None:
    async with launch(holds=True) as chat:
        await chat.ask("one")
        await type_in(chat, "/th")
        await chat.pilot.press("escape")
        assert (menu(chat), chat.prompt.text, chat.screen.chat.stopping) == ("", "/th", False)
        await chat.pilot.press("escape")
        await chat.until(lambda: chat.screen.chat.stopping or not chat.screen.chat.busy)


async def test_a_backslash_before_enter_starts_a_line(launch: Launch) -> None:
    async with launch(answer="ok") as chat:
        await type_in(chat, "a\\")
        await chat.pilot.press("enter", "b", "enter")
        await chat.until(lambda: not chat.screen.chat.busy)
        assert chat.sent(Ask)[0].messages[-1].content == "a\nb"


async def test_questions_of_earlier_runs_come_back(launch: Launch) -> None:
    async with launch(answer="ok") as chat:
        chat.prompt.questions.add("of old")
        await chat.ask_and_wait("new")
        await chat.pilot.press("up", "up")
        assert chat.prompt.text == "of old"


async def test_ctrl_r_searches_the_questions(chat: Driver) -> None:
    for question in ("sort a list", "a page", "sort\nby hand"):
        chat.prompt.questions.add(question)
    await type_in(chat, "half")
    await chat.pilot.press("ctrl+r")
    assert isinstance(chat.app.screen, SearchScreen)
    await type_in(chat, "sort")
    await chat.pilot.press("down", "enter")
    assert chat.prompt.text == "sort a list" and chat.prompt.has_focus
    assert chat.prompt.questions.entries[-1] == "half", "what was typed can be recalled"


async def test_a_folded_paste_unfolds(chat: Driver) -> None:
    await paste(chat, PASTE)
    assert chat.prompt.text == "[Pasted #1 +20 lines]"
    await chat.pilot.press("alt+o")
    assert chat.prompt.text == chat.prompt.unfolded == PASTE
    await chat.pilot.press("alt+o")
    assert "Nothing is folded" in chat.notices()


async def test_a_question_that_comes_back_has_its_paste_folded(chat: Driver) -> None:
    await type_in(chat, "Explain this: ")
    await paste(chat, PASTE)
    await type_in(chat, " please")
    await chat.pilot.press("enter")
    await chat.until(lambda: not chat.screen.chat.busy)
    await chat.pilot.press("up")
    assert chat.prompt.text == "Explain this: [Pasted #1 +20 lines] please"
    assert chat.prompt.unfolded == f"Explain this: {PASTE} please"
    chat.prompt.fill("")


async def test_a_folded_paste_is_never_half_there(chat: Driver) -> None:
    """Its marker would be sent as it stands, and what it stands for would be lost."""
    await type_in(chat, "sum up: ")
    await paste(chat, PASTE)
    await chat.pilot.press("backspace")
    assert chat.prompt.text == "sum up: "
    await chat.pilot.press("alt+z", "home", *["right"] * 12, "x")
    assert chat.prompt.text == "sum up: [Pasted #1 +20 lines]x" and chat.prompt.unfolded == f"sum up: {PASTE}x"
    chat.prompt.selection = Selection((0, 4), (0, 12))
    await chat.pilot.press("y")
    assert chat.prompt.text == "sum yx"


async def test_examples_come_with_a_key_or_a_click_until_something_is_asked(launch: Launch) -> None:
    async with launch(answer="ok") as chat:
        assert chat.screen.query_one(Starters).display
        await chat.pilot.press("right")
        assert chat.prompt.text == STARTERS[0]
        await chat.pilot.press("right")
        assert chat.prompt.text == STARTERS[1]
        await chat.pilot.click(list(chat.screen.query(Starter))[2])
        assert chat.prompt.text == STARTERS[2]
        await chat.pilot.press("enter")
        await chat.until(lambda: not chat.screen.chat.busy)
        assert not chat.screen.query_one(Starters).display
        await chat.pilot.press("right")
        assert chat.prompt.text == ""
        await chat.pilot.press("ctrl+n")
        assert chat.screen.query_one(Starters).display, "a new chat begins as the first one did"


async def test_a_model_that_introduces_itself_has_examples_of_its_own(launch: Launch) -> None:
    introduced = {name: each for name, each in SHORT_NAMES.items() if each.banner}
    assert introduced.keys() == {"smollm2"}
    async with launch(answer="ok") as chat:
        ready = chat.screen.chat.reducer.ready
        assert ready is not None and starters_of(replace(ready, banner="")) == starters_of(None) == ()
        examples = starters_of(replace(ready, target=introduced["smollm2"].target))
        assert examples[0] == "hi" and not {*examples} & {*STARTERS}
        chat.screen.query_one(Starters).offer(examples)
        await chat.until(lambda: [each.question for each in chat.screen.query(Starter)] == [*examples])
        await chat.pilot.press("right")
        assert chat.prompt.text == "hi"


async def test_the_editor_writes_the_question(chat: Driver, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    editor = tmp_path / "my editor"
    editor.write_text('#!/bin/sh\nprintf " and more\\n" >> "$2"\n')
    editor.chmod(0o755)
    monkeypatch.setenv("VISUAL", f"'{editor}' --wait")
    monkeypatch.setattr(chat.app, "suspend", nullcontext)
    chat.prompt.fill(PASTE)
    await chat.pilot.press("alt+e")
    assert chat.prompt.unfolded == f"{PASTE} and more"


async def test_no_editor_and_no_terminal_for_it(launch: Launch, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("VISUAL", raising=False)
    monkeypatch.delenv("EDITOR", raising=False)

    def suspend() -> Any:
        raise SuspendNotSupported

    async with launch() as chat:
        await chat.pilot.press("alt+e")
        assert "Set EDITOR" in chat.notices()
        monkeypatch.setenv("EDITOR", "true")
        monkeypatch.setattr(chat.app, "suspend", suspend)
        await chat.pilot.press("alt+e")
        assert "needs a terminal" in chat.notices()
