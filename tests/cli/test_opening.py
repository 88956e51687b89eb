"""What happens before the chat is on the screen, and in which order."""

from __future__ import annotations

import importlib
import sys
from collections.abc import Callable
from types import ModuleType

import pytest

from dflash_tui.cli.main import main

chat = importlib.import_module("dflash_tui.cli.chat")


@pytest.mark.parametrize(("device", "first"), [("auto", ["the GPU"]), ("cpu", [])])
def test_the_gpu_is_woken_before_the_screen_is_imported(
    device: str, first: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """The driver takes seconds, and needs no interpreter meanwhile."""
    happened: list[str] = []

    class Screen(ModuleType):
        @property
        def run_chat(self) -> Callable[..., int]:
            happened.append("the screen")
            return lambda *_given, **_more: 0

    monkeypatch.setitem(sys.modules, "dflash_tui.app.main", Screen("dflash_tui.app.main"))
    monkeypatch.setattr(chat, "wake_gpu", lambda: happened.append("the GPU"))
    monkeypatch.setattr(chat, "has_screen", lambda: True)
    monkeypatch.setattr(chat, "read_prompt", lambda *_: None)
    assert main(["bundled", "--device", device, "--theme", "dflash-light"]) == 0
    assert happened == [*first, "the screen"]
