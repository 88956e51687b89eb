"""The bundled pair through the engine thread: an answer as it is told, and the same without speculation."""

from __future__ import annotations

from pathlib import Path

from engine.commands import AUTO, EngineOptions
from engine.events import EngineReady, TurnFinished
from engine.tokenization.tokenizer import ChatTokenizer
from tests.engine.test_service import ask, check_steps, running


def test_bundled_pair_answers(bundled_pair: Path) -> None:
    with running(EngineOptions(device="cpu")) as session:
        ready = next(event for event in session.events if isinstance(event, EngineReady))
        assert ready.banner and ready.drafter and ready.max_block_size == 16
        session.service.send(ask(1, "Write a quicksort in Python", max_new_tokens=120, block_size=AUTO))
        finished = session.wait_for(TurnFinished, 1)
        assert finished.reason in ("stop", "length") and finished.text.strip()
        check_steps(session.steps(1), finished)
        answer = [t.id for step in session.steps(1) for t in step.emitted if t.channel == "answer"]
        assert finished.text == ChatTokenizer(bundled_pair / "target").decode(answer)
        session.service.send(ask(2, "Write a quicksort in Python", max_new_tokens=120, speculation=False))
        assert session.wait_for(TurnFinished, 2).text == finished.text
