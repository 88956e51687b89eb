"""``dflash-chat sessions``, and going on with an older conversation in a script."""

from __future__ import annotations

import json
from contextlib import closing
from pathlib import Path

from dflash_tui.core.exit_codes import ExitCode
from dflash_tui.core.files.places import sessions_directory
from dflash_tui.core.sessions.archive import reopen
from dflash_tui.core.sessions.sessions import load_session
from support.scripted import ANSWER
from tests.core.sessions.test_archive import write

from .conftest import Program


def test_the_list_and_its_words(program: Program) -> None:
    write(sessions_directory(), "a page with \x1b[31mdrones", at=1)
    new = write(sessions_directory(), "sums", at=2)
    lines = program.run("sessions").out.decode().splitlines()
    assert len(lines) == 2 and lines[0].startswith(new.stem) and "\x1b" not in lines[1]
    assert program.run("sessions", "list", "drones").out.decode().splitlines() == lines[1:]
    facts = json.loads(program.run("sessions", "list", "--json", "sums").out)
    assert (facts["id"], facts["questions"], facts["target"]) == (new.stem, ["sums"], "org/target")


def test_an_empty_list(program: Program) -> None:
    program.run("sessions")
    assert (program.code, program.out) == (ExitCode.OK, b"") and "No conversation yet" in program.err


def test_a_conversation_is_shown_as_markdown(program: Program) -> None:
    path = write(sessions_directory(), "sums")
    assert b"> sums\n\nFour.\n" in program.run("sessions", "show", path.stem[-6:]).out


def test_export_with_the_colours_of_the_tokens(program: Program, tmp_path: Path) -> None:
    program.run("-p", "hi", "--resume", write(sessions_directory(), "<script>sums").stem)
    file = tmp_path / "talk.html"
    program.run("export", sessions_directory().glob("*").__next__().stem, "-o", str(file))
    page = file.read_text()
    assert program.code == ExitCode.OK and "print(" in page and "accepted" in page
    assert "<script>sums" not in page


def test_deleting_needs_a_yes(program: Program) -> None:
    path = write(sessions_directory(), "sums")
    program.run("sessions", "delete", path.stem)
    assert (program.code, path.exists()) == (ExitCode.USAGE, True) and "--yes" in program.err
    program.run("sessions", "delete", path.stem, "--yes")
    assert (program.code, path.exists()) == (ExitCode.OK, False)


def test_what_is_not_there(program: Program) -> None:
    for arguments in (["sessions", "show", "zzz"], ["-p", "hi", "--resume", "zzz"], ["-p", "hi", "-c"]):
        program.run(*arguments)
        assert program.code == ExitCode.USAGE and "no conversation" in program.err, arguments
        assert program.engines == []
    for word, does in (("find", "sessions list WORDS"), ("export", "dflash-chat export ID")):
        assert program.run("sessions", word, "x").code == ExitCode.USAGE and does in program.err


def test_a_script_goes_on_with_a_conversation(program: Program) -> None:
    path = write(sessions_directory(), "sums")
    program.run("-p", "and then?", "--continue", "--system", "Be brief.")
    assert program.code == ExitCode.OK
    (ask,) = program.engine.asked
    assert [message.content for message in ask.messages] == ["Be brief.", "sums", "Four.", "and then?"]
    first, second = load_session(path).turns
    assert (first.question, second.question, second.answer) == ("sums", "and then?", "".join(ANSWER))
    assert (second.reason, second.system) == ("stop", "Be brief.")
    program.run("-p", "once more", "--resume", path.stem)
    assert len(program.engine.asked[0].messages) == 6 and len(load_session(path).turns) == 3


def test_without_asking_for_it_nothing_is_recorded(program: Program) -> None:
    program.run("-p", "hi")
    assert not sessions_directory().exists()


def test_what_is_open_in_a_window_is_neither_deleted_nor_gone_on_with(program: Program) -> None:
    path = write(sessions_directory(), "sums")
    with closing(reopen(path)[1]):
        for arguments in (("sessions", "delete", path.stem, "--yes"), ("-p", "and?", "--continue")):
            program.run(*arguments)
            assert program.code == ExitCode.USAGE and "“sums” is open in another window" in program.err
    assert path.exists()


def test_everything_said_is_searched(program: Program) -> None:
    path = write(sessions_directory(), "about drones", "more", answer="They fly\nover the \x1b[31m needle.", at=1)
    write(sessions_directory(), "about boats", at=2)
    (line,) = program.run("sessions", "list", "needle").out.decode().splitlines()
    assert line.startswith(path.stem) and "\x1b" not in line
    assert program.run("sessions", "list", "nosuchword").out == b"" and "has these words" in program.err


def test_going_on_restores_every_setting_that_is_not_typed(program: Program) -> None:
    program.run("-p", "hi", "--resume", write(sessions_directory(), "sums").stem, "--temperature", "0.7", "--seed", "5")
    program.run("-p", "again", "--continue", "--seed", "9", "--json")
    path = next(sessions_directory().glob("*.jsonl"))
    settings = [turn.started.settings for turn in load_session(path).turns if turn.started is not None]
    assert [(each["temperature"], each["seed"]) for each in settings] == [(0.7, 5), (0.7, 9)]
