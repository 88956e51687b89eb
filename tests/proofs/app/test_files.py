"""Files on the chat screen: mentioned, dropped, completed, folded; and what a program wrote."""

from __future__ import annotations

from pathlib import Path

import pytest

from dflash_tui.app.screens.asking import AskScreen
from dflash_tui.app.widgets.attached import Attached
from dflash_tui.app.widgets.status import StatusLine
from dflash_tui.app.widgets.token_log import TokenLog
from dflash_tui.core.sessions.sessions import load_session
from engine.commands import Ask
from tests.app.conftest import Driver, Launch

CODE = "```python\nfor n in range(30):\n    print(f'line {n} \\x1b[31m')\n```\n"


@pytest.fixture(autouse=True)
def here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    folder = tmp_path / "here"
    folder.mkdir()
    monkeypatch.chdir(folder)
    (folder / "notes.txt").write_text("[bold]Cats[/] \x1b[31msleep\u202e a lot.\n")
    (folder / "two words.md").write_text("# Two\n")
    (folder / "bin.dat").write_bytes(b"a\0b")
    return folder


def attached(chat: Driver) -> str:
    return chat.screen.query_one(Attached).render().plain


async def test_what_can_t_go_is_told_and_the_question_comes_back(launch: Launch) -> None:
    async with launch() as chat:
        for name, words in (
            ("bin.dat", "binary"),
            ("./gone", "There is no file ./gone. Look at the path; Tab"),
            ("../here", "a folder"),
        ):
            chat.prompt.text = f"see @{name} please"
            await chat.until(lambda words=words: words in attached(chat))
            await chat.pilot.press("enter")
            assert words in chat.notices() and chat.prompt.text == f"see @{name} please" and not chat.sent(Ask)
            chat.screen.query_one(Attached).look_now(chat.prompt.text)
            await chat.until(lambda: all(each.is_finished for each in chat.app.workers if each.group == "files"))
            assert not chat.screen.query_one(Attached).display, "it is said once"
            await chat.pilot.press("space")
            await chat.until(lambda words=words: words in attached(chat))


async def test_paths_complete_behind_an_at(launch: Launch) -> None:
    async with launch() as chat:
        chat.prompt.focus()
        await chat.pilot.press(*"see @tw", "tab")
        assert chat.prompt.text == 'see @"two words.md" '
        await chat.pilot.press(*"and @no")
        assert chat.prompt.suggestion == "tes.txt "
        await chat.pilot.press("tab", *"x")
        assert chat.prompt.text == 'see @"two words.md" and @notes.txt x'


@pytest.mark.terminals
async def test_a_block_runs_once_that_is_agreed(launch: Launch) -> None:
    async with launch(answer=CODE) as chat:
        await chat.ask_and_wait()
        await chat.ask("/run")
        assert isinstance(chat.app.screen, AskScreen)
        await chat.pilot.press("enter")
        assert chat.app.screen is chat.screen and "▸" not in chat.log.text, "no is the first choice"
        await chat.ask("/run")
        await chat.pilot.press("y")
        await chat.until(lambda: "▸ block 1 ran" in chat.log.text)
        assert "exit code 0" in chat.log.text and "line 7 ␛[31m" in chat.log.text and "line 8" not in chat.log.text
        assert "22 more lines" in chat.log.text
        await chat.pilot.press("alt+o")
        await chat.until(lambda: "line 29" in chat.app.screen.query_one(TokenLog).text)
        await chat.pilot.press("escape")
        (turn,) = load_session(chat.screen.queue.log.path).turns
        assert turn.runs[0].output.startswith("line 0 \x1b[31m\n")
        chat.screen.conversation.retell(0)
        assert "line 7 ␛[31m" in chat.log.text, "and when it is told anew"


@pytest.mark.terminals
async def test_escape_stops_a_program_and_so_does_control_c(launch: Launch) -> None:
    async with launch(answer="```python\nwhile True: pass\n```") as chat:
        await chat.ask_and_wait()
        status = chat.screen.query_one(StatusLine)
        for count, key in enumerate(("escape", "ctrl+c"), start=1):
            await chat.ask("/run 1")
            await chat.pilot.press("y")
            assert status.facts.state == "block 1 runs; Esc stops it"
            await chat.pilot.press(key)
            await chat.until(lambda count=count: chat.log.text.count("▸ block 1 ran · stopped") == count)
            assert status.facts.state == "ready"
