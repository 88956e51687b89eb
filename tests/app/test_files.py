"""Files on the chat screen: mentioned, dropped, completed, folded; and what a program wrote."""

from __future__ import annotations

from pathlib import Path

import pytest
from textual import events

from dflash_tui.app.screens.asking import AskScreen
from dflash_tui.app.screens.unfolded import UnfoldedScreen
from dflash_tui.app.widgets.attached import Attached
from dflash_tui.app.widgets.status import StatusLine
from dflash_tui.app.widgets.token_log import TokenLog
from dflash_tui.core.conversation.start import Start
from dflash_tui.core.desk.presets import Presets
from dflash_tui.core.sessions.sessions import load_session
from dflash_tui.core.settings.config import read_config
from engine.commands import Ask
from engine.events import TurnFinished

from .conftest import Driver, Launch

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


async def test_a_file_goes_with_its_question(launch: Launch, here: Path) -> None:
    async with launch(answer="Fine.") as chat:
        chat.prompt.text = "what is in @notes.txt?"
        await chat.until(lambda: chat.screen.query_one(Attached).display)
        assert "notes.txt" in attached(chat) and "tokens" in attached(chat) and "of the context" in attached(chat)
        await chat.pilot.press("enter")
        await chat.until(lambda: not chat.screen.chat.busy)
        assert not chat.screen.query_one(Attached).display
        (asked,) = chat.sent(Ask)
        assert asked.messages[0].content == (
            f"File notes.txt:\n```\n{(here / 'notes.txt').read_text()}```\n\nwhat is in @notes.txt?"
        )
        assert "▸ notes.txt · " in chat.log.text and "Cats" not in chat.log.text
        await chat.pilot.press("alt+o")
        assert isinstance(chat.app.screen, UnfoldedScreen)
        await chat.until(lambda: "Cats" in chat.app.screen.query_one(TokenLog).text)
        shown = chat.app.screen.query_one(TokenLog).text
        assert "[bold]Cats[/] ␛[31msleep� a lot." in shown, "as it is, and inert"
        await chat.pilot.press("escape")
        await chat.ask_and_wait("/retry")
        assert chat.sent(Ask)[1].messages == asked.messages
        (here / "notes.txt").unlink()
        path = chat.screen.queue.log.path
        assert load_session(path).messages()[0] == asked.messages[0], "by content: the file may go"
        assert path.read_text().count('"type":"file"') == 1


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


async def test_dropped_files_are_attached_and_pasted_text_attaches_none(launch: Launch, here: Path) -> None:
    async with launch(answer="Fine.") as chat:
        chat.prompt.post_message(events.Paste(f"'{here}/two words.md' "))
        await chat.pilot.pause()
        assert chat.prompt.text == f'@"{here}/two words.md" '
        chat.prompt.text = ""
        chat.prompt.post_message(events.Paste("line\n" * 30 + f"@{here}/notes.txt"))
        await chat.pilot.pause()
        await chat.pilot.press("enter")
        await chat.until(lambda: bool(chat.sent(Ask)))
        assert "Cats" not in chat.sent(Ask)[0].messages[0].content, "who wrote it did not ask for a file"


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
async def test_what_an_older_block_wrote_comes_into_view(launch: Launch) -> None:
    async with launch(answer=CODE + "word\n" * 60, size=(80, 24)) as chat:
        await chat.ask_and_wait("one")
        await chat.ask_and_wait("two")
        chat.screen.chat.tree[2].finish(TurnFinished(2, "stop", "no code"))
        await chat.ask("/run")
        await chat.pilot.press("y")
        await chat.until(lambda: "▸ block 1 ran" in chat.log.text)
        seen = chat.log.rows[chat.log.scroll_offset.y :][: chat.log.size.height]
        assert any("▸ block 1 ran" in row.text for row in seen) and any("22 more lines" in row.text for row in seen)


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


async def test_the_preset_in_force_is_in_the_header(launch: Launch, here: Path) -> None:
    (here / "config.toml").write_text("[presets.tutor]\ntemperature = 0.3")
    async with launch() as chat:
        chat.screen.desk.presets = Presets(chat.screen.chat, Start(config=read_config(here / "config.toml")))
        await chat.ask("/preset tutor")
        assert "preset: tutor" in chat.screen.query_one("#header").render().plain
        await chat.ask("/temp 0.9")
        await chat.until(lambda: "preset: tutor*" in chat.screen.query_one("#header").render().plain)
