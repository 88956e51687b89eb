"""Which code block is meant."""

from __future__ import annotations

import pytest

from dflash_tui.core.conversation.blocks import chosen_block, chosen_program
from dflash_tui.core.conversation.slash import SlashError

from ..answers_for_tests import answered

PYTHON = "```python\none = 1\n```\nand\n```python\ntwo = 2\n```\n"
SHELL = "```bash\nls\n```\n"


def test_a_number_is_one_of_the_newest_answer_with_code_and_none_the_last() -> None:
    answers = ["words", SHELL, PYTHON]
    assert chosen_block(answers, "").content == chosen_block(answers, "1").content == "ls\n"
    assert chosen_block(answers[2:], "").content == "two = 2\n"
    for number in ("2", "0", "x", "-1"):
        with pytest.raises(SlashError, match="newest answer with code has 1"):
            chosen_block(answers, number)
    with pytest.raises(SlashError, match="no code block yet"):
        chosen_block(["words"], "1")


def test_without_a_number_the_last_python_runs_wherever_it_was_written() -> None:
    path = [answered(number, "", answer) for number, answer in enumerate(("x", PYTHON, SHELL, "x"), 1)]
    turn, block = chosen_program(path, "")
    assert (turn, block.content) == (2, "two = 2\n")
    turn, block = chosen_program(path, "1")
    assert (turn, block.content) == (3, "ls\n"), "a number means the newest code; what can't be run is told then"
    with pytest.raises(SlashError, match="no block of Python yet"):
        chosen_program(path[2:], "")
