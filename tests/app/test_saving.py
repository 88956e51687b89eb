"""Save, open and copy code blocks from the chat."""

from __future__ import annotations

from pathlib import Path

import pytest

from .conftest import Launch

TWO = "```html\n<p>\n```\nand\n```python run.py\nprint(1)\n```\n"


async def test_what_was_saved_stays_in_the_transcript(launch: Launch) -> None:
    async with launch(answer=TWO) as chat:
        await chat.ask_and_wait("two files")
        await chat.ask("/save 1 page.html")
        assert (chat.out_dir / "page.html").read_text() == "<p>\n"
        assert f"saved to {chat.out_dir / 'page.html'} · /open shows it" in chat.log.text.replace("\n", ""), "it stays"
        await chat.ask("/save all")
        assert (chat.out_dir / "index.html").exists() and "Saved 2" in chat.notices()


async def test_a_saved_file_is_a_link_that_no_name_can_break(launch: Launch) -> None:
    async with launch(answer="```html [b].html\n<p>\n```\n") as chat:
        await chat.ask_and_wait("a file")
        await chat.ask("/save")
        path = chat.out_dir / "[b].html"
        assert path.exists()
        (notice,) = chat.app._notifications
        assert f"link='{path.resolve().as_uri()}'" in notice.message
        assert path.read_text().strip() == "<p>"


async def test_open_saves_first_and_never_runs(launch: Launch, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    opened: list[Path] = []
    monkeypatch.setattr("dflash_tui.core.files.desktop.shutil.which", lambda name: f"/bin/{name}")
    monkeypatch.setenv("DISPLAY", ":0")
    monkeypatch.delenv("SSH_CONNECTION", raising=False)

    class Opener:
        def __init__(self, command: list[Path], **_: object) -> None:
            opened.append(command[1])

        def wait(self, _seconds: float) -> int:
            return 0

    monkeypatch.setattr("dflash_tui.core.files.desktop.subprocess.Popen", Opener)
    async with launch(answer=TWO) as chat:
        await chat.ask_and_wait("two files")
        await chat.ask("/open 1")
        await chat.pilot.press("n")
        assert not opened and (chat.out_dir / "index.html").exists(), "it was asked first"
        await chat.ask("/open 1")
        await chat.pilot.press("y")
        await chat.until(lambda: "Opened" in chat.notices())
        assert opened == [(chat.out_dir / "index.html").resolve()] and opened[0].exists()
        await chat.ask("/open 2")
        assert len(opened) == 1 and "isn't opened" in chat.notices()
        assert (chat.out_dir / "run.py").exists()


async def test_what_terminals_refuse_goes_into_a_file(launch: Launch, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("dflash_tui.app.chat.face.LONGEST_SEQUENCE", 100)
    code = "x" * 100
    async with launch(answer=f"```text\n{code}\n```\n") as chat:
        await chat.ask_and_wait("much")
        await chat.ask("/copy")
        assert chat.app.clipboard == "" and "Not copied" in chat.notices()
        assert (chat.out_dir / "block-1.txt").read_text() == code + "\n"
