"""What the end-to-end tests share: a way to open the chat, and the answer that others are compared with."""

from __future__ import annotations

import json
import os
import subprocess
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from functools import partial
from pathlib import Path

import pytest

from .chatting import DRONE_PAGE, PROGRAM, ChatWindow, open_chat

OpenChat = Callable[..., ChatWindow]


@pytest.fixture
def chat(tmp_path: Path) -> Iterator[OpenChat]:
    """``chat(*flags, size=(120, 36), ready=True)`` opens the chat in a terminal that ends with the test."""
    with ExitStack() as stack:
        opened = partial(open_chat, tmp_path)
        yield lambda *flags, **options: stack.enter_context(opened(*flags, **options))


@pytest.fixture(scope="session")
def greedy_page(tmp_path_factory: pytest.TempPathFactory) -> str:
    """The whole answer to ``DRONE_PAGE`` at temperature 0, from the program without a screen."""
    environment = {**os.environ, "DFLASH_CHAT_STATE": str(tmp_path_factory.mktemp("state"))}
    result = subprocess.run(
        [PROGRAM, "-p", DRONE_PAGE, "--json"], env=environment, capture_output=True, check=True, timeout=120
    )
    text: str = json.loads(result.stdout)["text"]
    return text
