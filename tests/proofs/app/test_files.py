"""Files on the chat screen: mentioned, dropped, completed, folded; and what a program wrote."""

from __future__ import annotations

from dflash_tui.app.widgets.attached import Attached
from engine.commands import Ask
from tests.app.conftest import Launch
from tests.app.test_files import attached, here

__all__ = ["here"]


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
