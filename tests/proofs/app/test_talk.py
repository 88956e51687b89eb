"""Waiting questions, undoing an edit, rendered answers, notices, and the way out while the models load."""

from __future__ import annotations

from textual.widgets import Markdown, Static

from dflash_tui.app.widgets.fence import NamedFence
from dflash_tui.app.widgets.rendered import RenderedView
from dflash_tui.core.settings.config import ScreenOptions
from tests.app.conftest import Launch


async def test_finished_answers_are_rendered_and_come_back_as_tokens(launch: Launch) -> None:
    formulas = r"\(a_1 * b_2\)", "\\[\na\n+ b \\\\\n\\]"
    answer = "# Head\n\n- item [link](http://x.test)\n\nSo {}:\n{}\n```python\n1\n```\n".format(*formulas)
    async with launch(answer=answer) as chat:
        await chat.pilot.press("ctrl+t")
        assert "no finished answer" in chat.notices() and chat.log.display
        await chat.ask_and_wait("one")
        await chat.ask_and_wait("/retry")
        await chat.pilot.press("ctrl+t")
        view = chat.screen.query_one(RenderedView)
        await chat.until(lambda: view.display)
        assert not chat.log.display and len(view.query(Markdown)) == 1
        words = "\n".join(str(each.render()) for each in view.query(Static))
        assert all(each in words for each in ("one", "‹ 2/2 ›", "tok/s", "code: [1] main.py", *formulas))
        assert len(view.query("MarkdownH1")) == 1
        await chat.pilot.press("ctrl+t")
        await chat.until(lambda: not view.display)
        assert chat.log.display and not view.children


async def test_every_answer_is_drawn_for_who_wants_that_with_its_file_s_name(launch: Launch) -> None:
    answer = "Here:\n\n```python sort.py\nprint(1)\n```\n"
    async with launch(answer=answer, screen_options=ScreenOptions(rendered=True)) as chat:
        await chat.ask_and_wait("one")
        view = chat.screen.query_one(RenderedView)
        await chat.until(lambda: view.display and bool(view.query(NamedFence)))
        (fence,) = view.query(NamedFence)
        assert fence.border_title == "sort.py" and fence.code.strip() == "print(1)"
        assert len({span.style for span in fence._highlighted_code.spans}) > 1, "in syntax colours"
        await chat.pilot.press("ctrl+t")
        assert chat.log.display and "Ctrl+T" not in chat.log.text, "who knows it isn't told"
    async with launch(answer=answer) as chat:
        await chat.ask_and_wait("one")
        await chat.ask_and_wait("two")
        assert chat.log.display and chat.log.text.count("Ctrl+T draws it") == 1
