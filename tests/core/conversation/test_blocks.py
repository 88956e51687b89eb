"""Which code block is meant."""

from __future__ import annotations

import pytest

from dflash_tui.core.conversation.blocks import chosen_block
from dflash_tui.core.conversation.slash import SlashError

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
