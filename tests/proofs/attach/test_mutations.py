"""Recorded streams with anything changed in them, and answers to the first questions too: no traceback, no hang, and
what comes out can be shown, stored and read back."""

from __future__ import annotations

import json
import logging
import random
from pathlib import Path
from typing import Any

import pytest

from dflash_tui.attach.transport.connection import Patience
from dflash_tui.core.conversation.reducer import Reducer
from dflash_tui.core.sessions.sessions import SessionLog, load_session
from dflash_tui.core.traces.reader import read_trace
from dflash_tui.core.traces.writer import TraceWriter
from engine.events import EngineError, EngineReady, TurnFinished, event_from_dict, event_to_dict
from tests.attach.conftest import CHAT, Attach, Serve, relayed_stream
from tests.attach.servers import CAPTURES, FakeServer, Reply, streamed
from tests.pace import IN_CI

STREAMS = 180 if IN_CI else 30
PATIENCE = Patience(connect=1.0, answer=1.0, first_token=1.0, silence=1.0, loading=0.5)
ODD = [
    None,
    -1,
    0,
    1e308,
    10**18,
    0.5,
    True,
    "",
    "\ud83d",
    "x" * 5000,
    [],
    [[]],
    {},
    {"a": {}},
    float("inf"),
    float("nan"),
    "\x1b[2J",
]
READY = EngineReady("target", "drafter", "cpu", "float32", 16, 4096, 0.5)
FOLDERS = {"llama.cpp": "llamacpp", "vllm": "vllm", "sglang": "vllm", "openai": "llamacpp", "dflash": ""}


def mutated(body: bytes, chance: random.Random) -> bytes:
    for _ in range(chance.randint(1, 4)):
        body = chance.choice((_bytes, _lines, _values, _values, _cut))(body, chance)
    return body


def _bytes(body: bytes, chance: random.Random) -> bytes:
    changed = bytearray(body)
    for _ in range(chance.randint(1, 20)):
        if changed:
            changed[chance.randrange(len(changed))] = chance.randrange(256)
    return bytes(changed)


def _lines(body: bytes, chance: random.Random) -> bytes:
    lines = body.split(b"\n\n")
    for _ in range(chance.randint(1, 6)):
        place = chance.randrange(len(lines))
        match chance.randrange(4):
            case 0:
                del lines[place : place + chance.randint(1, 3)]
            case 1:
                lines.insert(place, chance.choice(lines) if lines else b"")
            case 2:
                lines.insert(
                    place, chance.choice([b"data:", b"event: error", b": hm", b"data: []", b"data: [DONE]", b"\xff"])
                )
            case _:
                chance.shuffle(lines)
        lines = lines or [b""]
    return b"\n\n".join(lines)


def _cut(body: bytes, chance: random.Random) -> bytes:
    return body[: chance.randrange(len(body) + 1)]


def _values(body: bytes, chance: random.Random) -> bytes:
    """Other values in places of the JSON."""
    lines = body.split(b"\n")
    share = chance.choice((0.02, 0.2, 1.0))
    for place, line in enumerate(lines):
        if line.startswith(b"data: {") and chance.random() < share:
            try:
                data = json.loads(line[6:])
            except ValueError:
                continue
            _change(data, chance)
            lines[place] = b"data: " + json.dumps(data).encode()
    return b"\n".join(lines)


def _change(data: Any, chance: random.Random) -> None:
    while isinstance(data, dict | list) and data:
        key = chance.choice(list(data)) if isinstance(data, dict) else chance.randrange(len(data))
        if not isinstance(data[key], dict | list) or chance.random() < 0.2:
            data[key] = chance.choice(ODD)
            return
        data = data[key]


def answers_of(dialect: str, chance: random.Random) -> dict[str, Reply]:
    """To the first questions, as likely changed as not."""
    folder = CAPTURES / "llamacpp"
    ready = json.dumps(event_to_dict(READY) | {"server": "dflash-chat"}).encode()
    bodies = {
        "/v1/models": (folder / "dflash_v1_models.json").read_bytes(),
        "/props": (folder / "dflash_props.json").read_bytes(),
        "/slots": (folder / "ngram_slots.json").read_bytes(), "/version": b'{"version": "0.32.0"}',
        "/metrics": (CAPTURES / "vllm" / "dflash_metrics.txt").read_bytes(), "/dflash": ready,
        "/server_info": b'{"internal_states": [], "speculative_algorithm": "DFLASH", "context_length": 4096}',
    }  # fmt: skip
    replies = {}
    for path, body in bodies.items():
        if path != "/v1/models" and body[:1] in b"{[":
            data = json.loads(body)
            for _ in range(chance.randint(0, 2)):
                _change(data, chance)
            body = json.dumps(data).encode()
        if path != "/v1/models" and chance.random() < 0.1:
            body = _bytes(body, chance)
        replies[path] = Reply((body,))
    return replies


@pytest.mark.slow
def test_no_traceback_and_no_hang(
    serve: Serve, attach: Attach, caplog: pytest.LogCaptureFixture, tmp_path: Path
) -> None:
    caplog.set_level(logging.WARNING)
    relayed = relayed_stream()
    reducer = Reducer()
    log, trace = SessionLog(tmp_path / "session.jsonl"), TraceWriter(tmp_path / "run.dft")
    told: list[Any] = []
    for seed in range(STREAMS):
        chance = random.Random(seed)
        dialect = list(FOLDERS)[seed % len(FOLDERS)]
        captures = sorted((CAPTURES / FOLDERS[dialect]).glob("*chat*.sse")) if FOLDERS[dialect] else []
        body = chance.choice(captures).read_bytes() if captures else relayed
        body = mutated(body, chance)
        if not captures and chance.random() < 0.3:
            body = relayed  # its first answers may be changed enough
        split = [body[at : at + 3000] for at in range(0, len(body), 3000)]
        server: FakeServer = serve()
        server.replies = {**answers_of(dialect, chance), CHAT: streamed(*split)}
        attached = attach(server.url, patience=PATIENCE, dialect=None if chance.random() < 0.3 else dialect)
        attached.ready()
        attached.turn = seed
        log.user(seed + 1, "hello")
        for event in attached.ask(max_new_tokens=500):
            told.append(event)
            line = json.dumps(event_to_dict(event), ensure_ascii=False, allow_nan=False).encode()
            assert event_from_dict(json.loads(line)) == event
            reducer.apply(event)
            log.record(event)
            trace.record(event)
        finished = told[-1]
        assert isinstance(finished, TurnFinished) and finished.turn == seed + 1
        attached.close()
        server.close()
    log.close()
    trace.close()
    assert [record.getMessage() for record in caplog.records] == []
    assert trace.failure is None and len(load_session(log.path).turns) == STREAMS
    assert sum(isinstance(event, TurnFinished) for event in read_trace(trace.path).events(0)) == STREAMS
    ends = {event.reason for event in told if isinstance(event, TurnFinished)}
    assert ends >= {"stop", "error"}
    assert len({event.message for event in told if isinstance(event, EngineError)}) > 3
