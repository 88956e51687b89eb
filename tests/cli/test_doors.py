"""A stranger's words on their way to a terminal: nothing that it would act on, no line break where a line is meant, and
no key, in whatever the program writes."""

from __future__ import annotations

import io
import logging
import sys
from base64 import b64encode
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from dflash_tui.cli.main import main
from dflash_tui.core.files.places import log_file
from dflash_tui.core.settings.addresses import KEY_VARIABLE
from engine.events import EngineReady, event_to_dict

from ..attach.conftest import CHAT, Attached
from ..attach.servers import Answer, FakeServer, Reply, content, finish, said, sse, streamed
from ..pace import sampled

KEY = "sk-live-3f9a81c27e5d4b60"
FORMS = (KEY, b64encode(f"me:{KEY}".encode()).decode(), KEY.encode().hex())
SIGNS = "a\x1b]0;title\x07b\x9b31mc\u202ed\r\ne\x00"
EVIL = " ".join((SIGNS, *FORMS))
CALL = {"tool_calls": [{"function": {"name": EVIL}}]}
OWN = {"event": "EngineError", "kind": "server", "message": EVIL, "hint": EVIL, "fatal": False, "turn": 1}
ANSWERS = {
    "a tool": streamed(sse({"choices": [{"index": 0, "delta": CALL}]}, finish())),
    "a tool beside": streamed(sse(content(f"Hello {EVIL}"), {"choices": [{"index": 0, "delta": CALL}]}, finish())),
    "a part": streamed(sse({"choices": [{"index": 0, "delta": {"content": [{"type": EVIL, "id": 1}]}}]}, finish())),
    "an error": streamed(sse(content("Hel"), {"error": {"message": EVIL}})),
    "a status": said({"error": {"message": EVIL}}, 418),
    "a header": said({}, 429, Retry_After=f"a\x1b]0;title\x07 {KEY}"),
    "a reason": streamed(sse(content("Hel"), finish(EVIL), "[DONE]")),
    "not understood": streamed(sse(content("Hello"), {"choices": [], "said": EVIL}, finish())),
    "a page": Reply((f"<html><title>{EVIL}</title>".encode(),)),
    "our own": streamed(sse({"choices": [], "dflash": [OWN]}, "[DONE]")),
}
READY = event_to_dict(EngineReady(EVIL, EVIL, EVIL, EVIL, 16, 4096, 0.5, EVIL)) | {
    "server": "dflash-chat",
    "version": EVIL,
}


@pytest.fixture
def server(monkeypatch: pytest.MonkeyPatch) -> Iterator[FakeServer]:
    monkeypatch.setenv(KEY_VARIABLE, KEY)
    models = said({"data": [{"id": f"model {EVIL}", "owned_by": EVIL, "max_model_len": 4096}]})
    replies: dict[str, Answer] = {"/v1/models": models, "/version": said({"version": EVIL})}
    with FakeServer(replies).closing() as running:
        yield running


def is_clean(text: str) -> bool:
    return all(sign.isprintable() or sign in "\n\t" for sign in text) and not any(form in text for form in FORMS)


@pytest.mark.parametrize("case", sampled(list(ANSWERS), 3))
@pytest.mark.parametrize("mode", [("-p", "hi"), ("-p", "hi", "--json"), ("--plain",)])
def test_no_output_holds_what_a_terminal_acts_on(
    case: str, mode: tuple[str, ...], server: FakeServer, capfdbinary: pytest.CaptureFixture[bytes],
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path,
) -> None:  # fmt: skip
    server.replies[CHAT] = ANSWERS[case]
    server.replies |= {"/dflash": said(READY)} if case == "our own" else {}
    monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(b"hello\n")))
    monkeypatch.chdir(tmp_path)
    main([server.url, *mode])
    captured = capfdbinary.readouterr()
    assert is_clean(captured.err.decode()) and captured.err.count(b"\n") < 8
    assert KEY.encode() not in captured.out and ("-p" in mode or is_clean(captured.out.decode()))
    for path in tmp_path.rglob("*"):
        assert path.is_dir() or KEY.encode() not in path.read_bytes()


def _fault(words: str) -> Callable[..., None]:
    def fails(*_: object) -> None:
        raise RuntimeError(words)

    return fails


def test_nothing_that_is_kept_or_exported_holds_it(
    server: FakeServer, capfdbinary: pytest.CaptureFixture[bytes], monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    """Lists, searches, exports, the doctor and the log, behind answers, errors and faults of our own."""
    monkeypatch.chdir(tmp_path)
    cache = tmp_path / "a\x1b]0;title\x07\nb"
    monkeypatch.setattr("huggingface_hub.constants.HF_HUB_CACHE", str(cache))
    (cache / "models--some--mo\x1b]0;title\x07\ndel" / "snapshots").mkdir(parents=True)
    monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(f"{SIGNS}\n".encode())))
    server.replies[CHAT] = [ANSWERS["a tool beside"], ANSWERS["an error"]]
    with monkeypatch.context() as patched:
        patched.setattr(logging.getLogger(), "handlers", [])
        main([server.url, "--plain"])
        main([server.url, "-p", "hi", "--trace", "trace"])
        patched.setattr("dflash_tui.attach.reading.EventReader.read", _fault(EVIL))
        main([server.url, "-p", "hi"])
        patched.setattr("dflash_tui.cli.main.command_named", _fault(SIGNS))
        main(["doctor"])
    name = ""
    exports = [("export", "trace", "--format", kind) for kind in ("html", "json", "text")]
    exports += [("export", "{}", "--format", kind) for kind in ("html", "json", "text")]
    lists = [("sessions", "list"), ("sessions", "list", "--json"), ("sessions", "list", "title")]
    capfdbinary.readouterr()
    for words in (*lists, *exports, ("sessions", "show", "{}"), ("doctor",)):
        main([word.format(name) for word in words])
        captured = capfdbinary.readouterr()
        output = captured.out.decode()
        assert is_clean(output) and is_clean(captured.err.decode()) and "title" in output, words
        name = name or output.split()[0]
    assert is_clean(log_file().read_text()) and log_file().read_text().count("title") == 2


def test_what_the_screen_is_told_of_a_server_is_in_lines(server: FakeServer) -> None:
    """Title, status and lists show these."""
    attached = Attached(server.url, key=KEY)
    ready = attached.ready()
    for words in (ready.target, ready.dialect, ready.device, ready.server, *attached.source.capabilities.models):
        assert words.isprintable() and KEY not in words
    attached.close()


def test_a_files_name_is_told_in_a_line(
    tmp_path: Path, capfdbinary: pytest.CaptureFixture[bytes], monkeypatch: pytest.MonkeyPatch
) -> None:
    name = str(tmp_path / "a\x1b]0;title\x07\nb.txt")
    monkeypatch.chdir(tmp_path)
    for arguments in (["bundled", "-p", "hi", "--file", name], [name], ["replay", name], ["export", "html", name]):
        assert main(arguments) != 0
        told = capfdbinary.readouterr().err.decode()
        assert is_clean(told) and "title" in told and "\nb.txt" not in told
