"""Files on the chat screen: mentioned, dropped, completed, folded; and what a program wrote."""

from __future__ import annotations

from pathlib import Path

import pytest
from textual import events

from dflash_tui.app.screens.unfolded import UnfoldedScreen
from dflash_tui.app.widgets.attached import Attached
from dflash_tui.app.widgets.token_log import TokenLog
from dflash_tui.core.conversation.question_context import messages_of
from dflash_tui.core.sessions.sessions import load_session
from engine.commands import Ask

from .conftest import Driver, Launch


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
        assert messages_of(load_session(path).turns, None)[0] == asked.messages[0], "by content: the file may go"
        assert path.read_text().count('"type":"file"') == 1


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
