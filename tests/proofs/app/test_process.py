"""The chat as a process in a terminal: what it imports, how it starts, and how it ends."""

from __future__ import annotations

import os
from pathlib import Path

from dflash_tui.core.files.places import log_file, sessions_directory
from dflash_tui.core.sessions.sessions import load_session
from support.terminal import Terminal

LEAVE_TERMINAL = "\x1b[?1049l"
CHAT = """
from pathlib import Path
from dflash_tui.app.main import run_chat
from engine.commands import EngineOptions, GenerationSettings
from support.scripted_engine import PAGE, ScriptedEngine
from engine.events import EngineError
import sys
{setup}
source = lambda emit: {source}
sys.exit(run_chat(source, GenerationSettings(), Path({out!r})))
"""


def chat(
    out: Path, source: str = "ScriptedEngine(emit, answer=PAGE * 200)", setup: str = "", fresh: bool = False
) -> Terminal:
    return Terminal(CHAT.format(source=source, setup=setup, out=str(out)), fresh=fresh)


EARLY = """
import array, asyncio, fcntl, os, sys, termios
os.setsid()
fcntl.ioctl(0, termios.TIOCSCTTY, 0)

def stop(place):  # until the test has typed
    os.write(1, f"({{place}})".encode())
    os.read({go}, 1)

def importing(event, details):
    if event == "import" and details[0] == "dflash_tui.app.main" and stops:
        stop(stops.pop())
stops = ["importing"]
sys.addaudithook(importing)
stop("starting")
from dflash_tui.app.chat.screen import ChatScreen
from dflash_tui.cli.main import main
from support.scripted_engine import ScriptedEngine
compose = ChatScreen._compose
async def late(screen):
    await asyncio.to_thread(stop, "composing")
    waiting = array.array("i", [1])
    while waiting[0]:  # until it has been heard
        await asyncio.sleep(0.01)
        fcntl.ioctl(0, termios.FIONREAD, waiting)
    await compose(screen)
ChatScreen._compose = late
sys.exit(main(["--out", {out!r}], lambda options: ScriptedEngine))
"""
"""The chat, which stops at places of its start where somebody might be typing already."""


def test_the_engine_is_not_imported_to_build_the_screen(tmp_path: Path) -> None:
    setup = "from dflash_tui.sources import engine_source; engine_source(EngineOptions())"
    source = "(_ for _ in ()).throw(SystemExit(int('torch' in sys.modules or 'engine.service' in sys.modules)))"
    with chat(tmp_path, source, setup, fresh=True) as terminal:
        assert terminal.wait_for_exit() == 0


def test_what_is_typed_while_the_program_starts_is_asked(tmp_path: Path) -> None:
    """In lines at first, among what the terminal says of itself, then while the screen is being made."""
    listens, go = os.pipe()
    code = EARLY.format(go=listens, out=str(tmp_path))
    with Terminal(code, pass_fds=(listens,)) as terminal:
        for place, keys in (
            ("starting", "what x\x7fis "),
            ("importing", "one \x1b]11;rgb:0000/0000/0000\x1b\\an\x1b[?62;4cd "),
            ("composing", "twp\x7fo?\r"),
        ):
            terminal.wait_for(f"({place})")
            terminal.send(keys)
            os.write(go, b".")
        terminal.wait_for("doctype")
        terminal.send("\x11")
        assert terminal.wait_for_exit() == 0
    (turn,) = load_session(only_session()).turns
    assert turn.question == "what is one and two?"


def test_leaving_says_how_to_go_on_once_something_was_asked(tmp_path: Path) -> None:
    for question, says in (("", False), ("go on\r", True)):
        with chat(tmp_path) as terminal:
            terminal.wait_for("ready")
            terminal.send(question)
            if question:
                terminal.wait_for("doctype")
            terminal.send("\x11")
            assert terminal.wait_for_exit() == 0
            (_, _, after) = terminal.output.rpartition(LEAVE_TERMINAL)
            assert ("dflash-chat --continue" in after) is says


def test_an_engine_that_ended_decides_the_exit_code(tmp_path: Path) -> None:
    error = "EngineError('weights', 'model.safetensors is missing.', 'Run make.', fatal=True)"
    with chat(tmp_path, f"ScriptedEngine(emit, load_error={error})") as terminal:
        terminal.wait_for("model.safetensors is missing.")
        terminal.send("\x11")
        assert terminal.wait_for_exit() == 3


def test_a_mistake_of_the_program_is_one_sentence_and_a_log(tmp_path: Path) -> None:
    setup = """
from dflash_tui.core.desk.desk import Desk
from dflash_tui.cli.logs import log_to_file
log_to_file()
Desk.new = lambda self: 1 / 0
"""
    with chat(tmp_path, setup=setup) as terminal:
        terminal.wait_for("ready")
        terminal.send("go on\r")
        terminal.wait_for("requestAnimationFrame")
        terminal.send("\x0e")
        assert terminal.wait_for_exit() == 1
        (_, _, after) = terminal.output.rpartition(LEAVE_TERMINAL)
    assert "mistake of its own" in after and "locals" not in after and len(after) < 1000
    assert "ZeroDivisionError" in log_file().read_text()
    (turn,) = load_session(only_session()).turns
    assert turn.question == "go on" and "Array.from" in turn.answer


def only_session() -> Path:
    (path,) = sessions_directory().iterdir()
    return path
