"""What makes an answer right: each kind of demand passes a right answer and sees what is wrong with another."""

from __future__ import annotations

from typing import Any

import pytest

from engine.lab.demo.judging.checks import verdicts
from engine.lab.demo.judging.programs import SECONDS

PROGRAM: dict[str, Any] = {
    "kind": "program", "name": "double", "class": False, "typed": True, "documented": False, "tested": False,
    "commented": False, "guarded": False, "shows": ["21"], "test": "assert double(4) == 8",
}  # fmt: skip
DOUBLE = "Here:\n\n```python\ndef double(x: int) -> int:\n    return 2 * x\n\n\nprint(double(21))\n```"
PAGE: dict[str, Any] = {
    "kind": "page",
    "script": True,
    "slots": {
        "count": {"number": [r"const count = ([\d.]+);", 40, 40]},
        "speed": {"number": [r"const speed = ([\d.]+);", 2.0, None], "has": [r"[*/] speed"]},
        "trails": {"lacks": [r"globalAlpha"]},
    },
}
SCRIPT = "const count = 40;\nconst speed = 2.5;\nx += dx * speed;"
WHOLE = f"<!DOCTYPE html>\n<html>\n<body>\n<canvas></canvas>\n<script>\n{SCRIPT}\n</script>\n</body>\n</html>"
ANIMATION = f"A page:\n\n```html index.html\n{WHOLE}\n```"
NUMBER = {"kind": "number", "answer": "8 remainder 2"}
PROSE = {"kind": "prose", "words": {"on_topic": [2, ["tree", "node", "leaf"]]}, "form": [False, 2]}
EDIT = {"kind": "edit", "task": "set_constant", "result": "a = 2\nb = 1", "fenced": True}
CHANGE = {"kind": "change", "whole": PAGE, "text": WHOLE, "changed": ["const count = 40;"]}
SAYS = {"kind": "says", "text": "It stops at one."}

RIGHT = [
    (PROGRAM, DOUBLE),
    (PAGE, ANIMATION),
    (NUMBER, "50 / 10 = 5\n5 + 3 = 8\nThe answer is 8 remainder 2 pens."),
    (PROSE, "A tree has nodes. A leaf is one without children."),
    (EDIT, "Changed:\n\n```python a.py\na = 2\nb = 1\n```"),
    (CHANGE, ANIMATION),
    (SAYS, "Because of this. It stops at one."),
]
WRONG = [
    (PROGRAM, DOUBLE.replace("2 * x", "3 * x"), "passes"),
    (PROGRAM, DOUBLE.replace("return", "retrun"), "parses"),
    (PROGRAM, DOUBLE.replace("double(x", "twice(x"), "defines"),
    (PROGRAM, DOUBLE.replace("x: int", "x"), "follows"),
    (PROGRAM, DOUBLE.replace("21", "20"), "follows"),
    (PROGRAM, DOUBLE.replace("def double", "import os\n\n\ndef double"), "passes"),
    (PAGE, ANIMATION.replace("</body>", ""), "valid"),
    (PAGE, ANIMATION.replace("40;", "40);"), "valid"),
    (PAGE, ANIMATION.replace("40", "41"), "slot_count"),
    (PAGE, ANIMATION.replace("2.5", "1.5"), "slot_speed"),
    (PAGE, ANIMATION.replace("x += dx", "globalAlpha = dx"), "slot_trails"),
    (PAGE, "I can't.", "slots"),
    (NUMBER, "50 / 10 = 5\nThe answer is 8.", "answer"),
    (NUMBER, "50 / 10 = 6\nThe answer is 8 remainder 2.", "steps"),
    (PROSE, "A tree. It has roots.", "on_topic"),
    (PROSE, "A tree has nodes.", "form"),
    (PROSE, "A tree has nodes. And so on", "ends"),
    (EDIT, "Changed:\n\n```python a.py\na = 3\nb = 1\n```", "exact"),
    (CHANGE, ANIMATION.replace("const count = 40;", "const count = 39;"), "changed"),
    (CHANGE, "```html\n<!DOCTYPE html>\n</html>\n```", "kept"),
    (SAYS, "It stops.", "says"),
]  # fmt: skip


@pytest.mark.parametrize(("right", "answer"), RIGHT, ids=[right["kind"] for right, _ in RIGHT])
def test_a_right_answer_passes(right: dict[str, Any], answer: str) -> None:
    assert all(verdicts(answer, right).values())


@pytest.mark.parametrize(("right", "answer", "failed"), WRONG, ids=[f"{each[0]['kind']}-{each[2]}" for each in WRONG])
def test_what_is_wrong_is_seen(right: dict[str, Any], answer: str, failed: str) -> None:
    assert verdicts(answer, right)[failed] is False


@pytest.mark.parametrize("line", ["while True: pass", "raise SystemExit(0)", "x = [0] * 10**11"])
def test_a_program_that_never_ends_or_takes_too_much_fails(line: str, monkeypatch: pytest.MonkeyPatch) -> None:
    assert SECONDS > 1
    monkeypatch.setattr("engine.lab.demo.judging.programs.SECONDS", 1)
    assert not verdicts(DOUBLE.replace("print(double(21))", f"{line}  # 21"), PROGRAM)["passes"]
