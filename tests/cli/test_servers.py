"""Attaching to a server from the command line."""

from __future__ import annotations

import io
import json
import sys
from pathlib import Path

import pytest

from dflash_tui.cli.main import main
from dflash_tui.core.exit_codes import ExitCode
from dflash_tui.core.replay.recording import read_recording
from dflash_tui.core.settings.addresses import KEY_VARIABLE
from dflash_tui.core.settings.config import CONFIG_VARIABLE
from engine.events import EngineError, Step, event_from_dict

from ..attach.conftest import CHAT
from ..attach.servers import FakeServer, content, finish, sse, streamed
from ..scripted_server import ADVICE, BLOCK, DIALECT, FIXED
from .conftest import SHORT, Program

URL = "http://gpu-box:8000"
SECRET = "sk-abc123"


@pytest.fixture
def team(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A configuration with two servers."""
    path = tmp_path / "config.toml"
    path.write_text(
        f'[servers.team]\nurl = "https://models.example.org"\nmodel = "gemma"\nkey_variable = "TEAM_KEY"\n'
        f'[servers.box]\nurl = "{URL}"\nheaders = {{X-Team = "{SECRET}"}}\n'
    )
    monkeypatch.setenv(CONFIG_VARIABLE, str(path))
    monkeypatch.setenv("TEAM_KEY", SECRET)
    monkeypatch.chdir(tmp_path)
    return path


def test_a_url_is_asked_and_told_by_whom(program: Program) -> None:
    program.run(URL, "-p", "hi", "--temperature", "0.5", "--dialect", "vllm")
    assert (program.code, program.out.decode()) == (ExitCode.OK, f"{SHORT}\n")
    assert DIALECT in program.err and URL in program.err and "by arrival" in program.err
    assert [(address.url, address.dialect) for address in program.addresses] == [(URL, "vllm")]


def test_a_name_is_looked_up_in_the_configuration(program: Program, team: Path) -> None:
    program.run("--server", "team", "-p", "hi")
    assert program.code == ExitCode.OK
    (address,) = program.addresses
    assert (address.url, address.model, address.key) == ("https://models.example.org", "gemma", SECRET)
    assert SECRET not in program.err + program.out.decode()


def test_what_is_written_down_gives_way_to_what_is_typed(program: Program, team: Path) -> None:
    team.write_text(f'server = "team"\n{team.read_text()}')
    assert program.run("-p", "hi").code == ExitCode.OK and len(program.addresses) == 1
    assert program.run("bundled", "-p", "hi").code == ExitCode.OK and len(program.engines) == 1


@pytest.mark.parametrize(
    ("arguments", "complaint"),
    [
        (("ftp://host",), "begins with ftp://"),
        (("localhost:8000",), "begins with http:// or https://: dflash-chat http://localhost:8000"),
        (("--server", "taem"), "Did you mean team?"),
        ((URL, "--server", "team"), "both say what is to answer"),
        (("--dialect", "vllm"), "there is none"),
        ((URL, "--draft", "none"), "--draft is for the engine of this program"),
        ((URL, "--device", "cpu"), "--device is for the engine of this program"),
        ((URL, "--block-size", "8"), f"--block-size: {BLOCK}"),
        ((URL, "--seed", "7"), f"--seed: {FIXED}"),
        ((URL, "--no-speculation"), f"--no-speculation: {FIXED}"),
        (("race", URL), "has to be raced against something"),
        (("race", "--against", "taem"), "Did you mean team?"),
        (("race", URL, "--against", URL, "--block-size", "4"), "chose their block sizes"),
        (("race", URL, "--against", URL, "--seed", "4"), f"--seed: {FIXED}"),
        (("selftest", URL), "needs the engine of this program"),
    ],
)
def test_what_can_not_be_done_is_a_sentence(
    program: Program, team: Path, arguments: tuple[str, ...], complaint: str
) -> None:
    program.run(*arguments, *(() if arguments[0] == "selftest" else ("-p", "hi")))
    assert (program.code, program.out) == (ExitCode.USAGE, b"")
    assert complaint in program.err and "Traceback" not in program.err


def test_a_key_that_is_not_there_is_told_before_anybody_is_asked(
    program: Program, team: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("TEAM_KEY")
    program.run("--server", "team", "-p", "hi")
    assert program.code == ExitCode.USAGE and "TEAM_KEY, which is not set" in program.err and not program.addresses


@pytest.mark.parametrize("loading", [True, False])
def test_trouble_with_the_server_is_exit_code_5(
    program: Program, loading: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    trouble = EngineError("server", f"Nothing listens at {URL}.", "Start it.", fatal=loading)
    program.server = {"load_error" if loading else "turn_error": trouble}
    program.run(URL, "-p", "hi")
    assert program.code == ExitCode.REMOTE and f"Nothing listens at {URL}.\n  Start it." in program.err


def test_what_the_server_wants_known_comes_behind_the_answer(program: Program) -> None:
    program.server = {"notice": True}
    program.run(URL, "-p", "hi")
    figures, *notes = program.err.splitlines()[-3:]
    assert "tokens" in figures and notes == [ADVICE.message, f"  {ADVICE.advice}"]


def test_scripts_get_the_rounds_as_they_were_told(program: Program, tmp_path: Path) -> None:
    trace = tmp_path / "run.jsonl"
    program.run(URL, "-p", "hi", "--stream-json", "--trace", str(trace))
    events = [event_from_dict(json.loads(line)) for line in program.out.decode().splitlines()]
    steps = [event for event in events if isinstance(event, Step)]
    assert [event for event in read_recording(trace).events() if isinstance(event, Step)] == steps
    program.run(URL, "-p", "hi", "--json")
    result = json.loads(program.out)
    assert (result["text"], result["server"], result["dialect"], result["times"]) == (SHORT, URL, DIALECT, "arrival")
    spec = [step for step in steps if step.draft]
    assert (result["num_spec_steps"], result["num_accepted_draft_tokens"]) == (
        len(spec), sum(step.num_accepted for step in spec),
    )  # fmt: skip


def test_a_key_from_the_environment_goes_to_a_url(program: Program, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(KEY_VARIABLE, SECRET)
    program.run(URL, "-p", "hi", "--stream-json")
    assert program.addresses[0].key == SECRET and SECRET not in program.err + program.out.decode()


def test_a_thought_that_ends_late_is_no_answer_when_the_conversation_goes_on(
    monkeypatch: pytest.MonkeyPatch, capfdbinary: pytest.CaptureFixture[bytes]
) -> None:
    """Its beginning was told as an answer by then. In mid-conversation and behind ``--continue`` it isn't sent back."""
    begun = ["hm, well, " * 10] * 4
    late = streamed(sse(*map(content, begun), content("so.</think>Hello"), content(" there"), finish(), "[DONE]"))
    with FakeServer({CHAT: [late, streamed(sse(content("Yes"), finish(), "[DONE]"))]}).closing() as server:
        for typed, more in (("hi\nand now?\n", ()), ("again?\n", ("--continue",))):
            monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(typed.encode())))
            assert main([server.url, "--plain", *more]) == 0
        for asked in server.asked()[1:]:
            assert [each["content"] for each in asked["messages"][:3]] == ["hi", "Hello there", "and now?"]
    capfdbinary.readouterr()
    main(["sessions", "list"])
    name = capfdbinary.readouterr().out.decode().split()[0]
    main(["sessions", "show", name])
    assert b"hm, well" not in capfdbinary.readouterr().out
