"""A program of somebody else that embeds the engine is type-checked against it."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

CONSUMER = """
from collections.abc import Iterator

import engine
from engine import GenerationSettings, Message, Pair, Step, TurnFinished


def words(pair: Pair, question: str) -> Iterator[str]:
    for event in pair.generate([Message("user", question)], temperature=0.8, seed=1, block_size="auto"):
        if isinstance(event, Step) and event.num_accepted < len(event.draft):
            yield event.draft[event.num_accepted].text or "?"
        if isinstance(event, TurnFinished):
            yield f"{event.reason} {event.statistics.tok_s:.0f}"


try:
    with engine.load(device="cpu", max_context=4096, progress=lambda step: print(step.phase)) as pair:
        length: int = len(pair.answer("Hello")) + len(list(words(pair, "Hello")))
except engine.EngineFailure as failure:
    print(failure, failure.hint, failure.kind)
"""
MISTAKEN = 'import engine\n\npair = engine.load(devise="cpu")\nanswer: int = pair.answer("Hello", temperature="hot")\n'


def test_a_program_that_embeds_the_engine_is_type_checked(tmp_path: Path) -> None:
    """From another folder, as an installed package: without ``py.typed`` mypy would not look at it."""
    for name, code in (("consumer", CONSUMER), ("mistaken", MISTAKEN)):
        (tmp_path / f"{name}.py").write_text(code, encoding="utf-8")
    # The consumer sees nothing of these, and reading what they import would take nearly all of the time.
    unread = "[mypy-torch.*,transformers.*,engine.runner,engine.service]\nfollow_imports = skip\n"
    (tmp_path / "mypy.ini").write_text(f"[mypy]\nstrict = True\n{unread}")
    mypy = [sys.executable, "-m", "mypy", "--output", "json", "--cache-dir", str(tmp_path / "cache")]
    result = subprocess.run([*mypy, "consumer.py", "mistaken.py"], cwd=tmp_path, capture_output=True, text=True)
    found = [json.loads(line) for line in result.stdout.splitlines()]
    assert [(each["file"], each["line"], each["code"]) for each in found] == [
        ("mistaken.py", 3, "call-arg"),
        ("mistaken.py", 4, "assignment"),
        ("mistaken.py", 4, "arg-type"),
    ], result.stdout + result.stderr
