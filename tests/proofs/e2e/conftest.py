"""What the end-to-end tests share: a way to open the chat, and the answer that others are compared with."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import ExitStack
from functools import partial
from pathlib import Path

import pytest

from tests.proofs.engine.lab.demo.golden import golden_text

from .chatting import DRONE_PAGE, ChatWindow, open_chat

OpenChat = Callable[..., ChatWindow]


@pytest.fixture
def chat(tmp_path: Path) -> Iterator[OpenChat]:
    """``chat(*flags, size=(120, 36), ready=True)`` opens the chat in a terminal that ends with the test."""
    with ExitStack() as stack:
        opened = partial(open_chat, tmp_path)
        yield lambda *flags, **options: stack.enter_context(opened(*flags, **options))


@pytest.fixture(scope="session")
def greedy_page() -> str:
    """The whole answer to ``DRONE_PAGE`` at temperature 0."""
    return golden_text(DRONE_PAGE)
