"""Generated answers of every shape: the text is whole, or a sentence says why; never nothing, a traceback or a hang."""

from __future__ import annotations

import logging
from concurrent.futures import ThreadPoolExecutor
from random import Random
from time import monotonic
from typing import Any

import pytest

from dflash_tui.attach.transport.connection import Patience
from engine.events import EngineError, Notice, Step, event_to_dict
from tests.attach.conftest import CHAT, Attach, Attached, Serve
from tests.attach.servers import FakeServer, Reply, said
from tests.pace import IN_CI
from tests.proofs.attach.refusals import failing, refusing
from tests.proofs.attach.shapes import FIRST, KEY, SILENCE, framing, living, shaped

KINDS = {
    "framing": framing, "content": shaped, "refused fields": refusing, "errors": failing, "signs of life": living,
}  # fmt: skip
EACH = 100 if IN_CI else 10
PATIENCE = Patience(connect=2.0, answer=2.0, first_token=5.0, silence=5.0, figures=0.1)
QUICK = Patience(connect=2.0, answer=2.0, first_token=FIRST, silence=SILENCE, figures=0.1)
VLLM = {
    "v1/models": said({"data": [{"id": "some-model", "owned_by": "vllm"}]}),
    "version": said({"version": "0.33.0"}),
    "metrics": Reply((b"vllm:num_requests_running 0\n",)),
}


@pytest.mark.parametrize("kind", KINDS)
def test_whatever_shape_it_has_it_is_read_or_named(
    kind: str, serve: Serve, attach: Attach, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.WARNING)

    patience = QUICK if kind == "signs of life" else PATIENCE
    own = kind in ("refused fields", "signs of life")  # a server for each, which remembers nothing of the others

    def fresh() -> tuple[FakeServer, Attached]:
        server = serve(**(VLLM if kind == "refused fields" else {}))
        attached = attach(server.url, patience=patience, key=KEY)
        attached.ready()
        return server, attached

    shared = None if own else fresh()

    def ask(seed: int) -> list[str]:
        made = KINDS[kind](Random(f"{kind} {seed}"))
        server, attached = shared or fresh()
        server.replies[CHAT] = made.answer
        before, began = len(server.asked()), monotonic()
        events = attached.ask(**made.settings)
        found = complaints(made, events, len(server.asked()) - before, monotonic() - began)
        if kind == "refused fields":  # what was refused once is not tried again, nor said again
            before = len(server.asked())
            again = attached.ask(**made.settings)
            if again[-1].text != made.text or len(server.asked()) != before + 1 or notices(again):
                found.append(f"the second question: {again}")
        if own:
            attached.close()
            server.close()
        return [f"{kind} {seed}: {each}\n  {made.what}" for each in found]

    at_once = 10 if kind == "signs of life" else 1  # those wait for the most part
    with ThreadPoolExecutor(at_once) as pool:
        wrong = [each for found in pool.map(ask, range(EACH)) for each in found]
    assert not wrong, f"{len(wrong)} of {EACH}:\n" + "\n".join(wrong)
    assert [record.getMessage() for record in caplog.records] == []


def notices(events: list[Any]) -> str:
    return " ".join(event.message for event in events if isinstance(event, Notice) if "speculat" not in event.message)


def complaints(made: Any, events: list[Any], asked: int, took: float) -> list[str]:
    finished, found = events[-1], []
    errors = [event for event in events if isinstance(event, EngineError)]
    said = " ".join(f"{error.message} {error.hint}" for error in errors)
    streamed = "".join(token.text for step in events if isinstance(step, Step) for token in step.emitted)
    told = "".join(map(repr, map(event_to_dict, events)))
    if made.text is None:
        if not errors:
            found.append(f"nothing is said of {finished.text!r}")
        found += [f"{words!r} is not in {said!r}" for words in made.words if words not in said]
    elif errors or (finished.text, finished.thought) != (made.text, made.thought):
        found.append(f"{finished.text!r} and {finished.thought!r}, not {made.text!r} and {made.thought!r}; {said}")
    else:
        found += [f"{name} is not in {notices(events)!r}" for name in made.words if name not in notices(events)]
    if streamed != finished.thought + finished.text:
        found.append(f"the pieces are {streamed!r}, and not {finished.thought + finished.text!r}")
    if asked > made.asked:
        found.append(f"{asked} questions")
    if KEY in told:
        found.append("the key is told")
    if took > 6:
        found.append(f"{took:.1f} s")
    if "could not be understood" in said:
        found.append(said)
    return found
