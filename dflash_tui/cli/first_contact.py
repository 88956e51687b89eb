"""The first time without a MODEL on a machine that could run a real one: ask which it shall be, and remember."""

from __future__ import annotations

import sys
from dataclasses import replace

from dflash_tui.core.files.places import keep, read_kept
from engine.commands import BUNDLED, EngineOptions
from engine.tools.suggestion import Suggestion, suggest_pair

from .terminal.saying import remark

ANSWER_NAME = "first-contact.json"


def suggest_model(options: EngineOptions) -> EngineOptions:
    """``options``, with the model that the user picks, asked once, when they name none; ``KeyboardInterrupt`` for
    Ctrl+C or Ctrl+D."""
    if options.target == BUNDLED:
        return replace(options, target=None)
    if options.target is not None or options.drafter is not None or options.device == "cpu" or options.offline:
        return options
    remembered = read_kept(ANSWER_NAME).get("model")
    if isinstance(remembered, str):
        return replace(options, target=None if remembered == BUNDLED else remembered)
    suggestion = suggest_pair()
    if suggestion is None:
        return options
    model = _ask(suggestion)
    keep(ANSWER_NAME, {"model": model or BUNDLED})
    return replace(options, target=model)


def _ask(suggestion: Suggestion) -> str | None:
    """Ask which model to open; returns its name, or None for the bundled pair."""
    target = suggestion.pair.target
    remark(
        f"This machine has an {suggestion.gpu} with {suggestion.memory / 1e9:.0f} GB: enough for {target}\n"
        f"in {suggestion.weights} and its DFlash drafter ({suggestion.to_fetch / 1e9:.0f} GB, fetched where missing).\n"
        "Otherwise the small bundled pair opens, which knows little but is here already.\n"
        f"Later: dflash-chat {target}, or dflash-chat {BUNDLED}."
    )
    sys.stderr.write("Open the large one? [y/N] ")
    sys.stderr.flush()
    answer = sys.stdin.readline()
    if not answer:
        raise KeyboardInterrupt
    return target if answer.strip().lower() in ("y", "yes") else None
