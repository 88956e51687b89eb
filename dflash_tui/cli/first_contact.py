"""The first time without a MODEL on a machine that could run a real one: ask which it shall be, and remember."""

from __future__ import annotations

import json
import sys
from dataclasses import replace

from dflash_tui.core.files.places import state_directory
from engine.commands import EngineOptions
from engine.tools.suggestion import Suggestion, suggest_pair

from .terminal.background import in_browser

BUNDLED = "bundled"
"""In the place of MODEL: the bundled pair, whatever was answered."""
ANSWER_NAME = "first-contact.json"


def suggest_model(options: EngineOptions) -> EngineOptions:
    """``options``, with the model that the user picks, asked once, when they name none; ``KeyboardInterrupt`` for
    Ctrl+C or Ctrl+D."""
    if options.target == BUNDLED:
        return replace(options, target=None)
    if options.target is not None or options.drafter is not None or options.device == "cpu" or options.offline:
        return options
    remembered = _remembered()
    if remembered is not None:
        return replace(options, target=None if remembered == BUNDLED else remembered)
    suggestion = None if in_browser() else suggest_pair()  # a browser gives no line to read an answer from
    if suggestion is None:
        return options
    model = _ask(suggestion)
    _remember(model or BUNDLED)
    return replace(options, target=model)


def _ask(suggestion: Suggestion) -> str | None:
    """The model's name; None for the bundled pair."""
    target = suggestion.pair.target
    print(
        f"This machine has an {suggestion.gpu} with {suggestion.memory / 1e9:.0f} GB: enough for {target}\n"
        f"in {suggestion.weights} and its DFlash drafter ({suggestion.to_fetch / 1e9:.0f} GB, fetched where missing).\n"
        "Otherwise the small bundled pair opens, which knows little but is here already.\n"
        f"Later: dflash-chat {target}, or dflash-chat {BUNDLED}.",
        file=sys.stderr,
    )
    print("Open the large one? [y/N] ", end="", file=sys.stderr, flush=True)
    answer = sys.stdin.readline()
    if not answer:
        raise KeyboardInterrupt
    return target if answer.strip().lower() in ("y", "yes") else None


def _remembered() -> str | None:
    """The model that was chosen, ``BUNDLED``, or None when nobody was asked yet."""
    try:
        answer = json.loads((state_directory() / ANSWER_NAME).read_text("utf-8"))
    except (OSError, ValueError):
        return None
    model = answer.get("model") if isinstance(answer, dict) else None
    return model if isinstance(model, str) else None


def _remember(model: str) -> None:
    """A place that can't be written to only means being asked again."""
    path = state_directory() / ANSWER_NAME
    try:
        path.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
        path.write_text(json.dumps({"model": model}) + "\n", "utf-8")
    except OSError:
        return
