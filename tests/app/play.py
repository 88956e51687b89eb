"""``python -m tests.app.play``: the chat on the scripted engine, to look at."""

from __future__ import annotations

import sys
from functools import partial
from pathlib import Path

from dflash_tui.app.main import run_chat
from engine.commands import GenerationSettings

from ..scripted_engine import PAGE, ScriptedEngine

if __name__ == "__main__":
    source = partial(ScriptedEngine, answer=PAGE * 20, load_seconds=1.5)
    theme = sys.argv[1] if len(sys.argv) > 1 else None
    sys.exit(run_chat(source, GenerationSettings(), Path("dflash-out"), theme))
