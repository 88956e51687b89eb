"""``python -m measure.app.searching [--sessions 10000]``: how soon a search over everything said finds something.

Writes that many conversations of three questions into a temporary folder, as large as real ones (rounds and all), then
searches them with the index cold, warm, after one more answer, and without one.
"""

from __future__ import annotations

import argparse
import json
import os
import random
import tempfile
import time
from pathlib import Path

from dflash_tui.core.sessions.search import INDEX_NAME, Search
from measure.quick import parse

ALLOWED_MS = 200.0
TURNS, ROUNDS, WORDS = 3, 40, 5
VOWELS = ("a", "e", "i", "o", "u", "ai")
VOCABULARY = [f"{head}{vowel}{tail}" for head in "bdfgklmnprst" for vowel in VOWELS for tail in ("n", "r", "st", "")]
STEP = "BAABEAAAAFYBAgMEBQYHCAkKCwwNDg8QERITFBUWFxgZGhscHR4fICEiIyQlJicoKSorLC0uLzAxMjM0NTY3ODk6Ozw9Pj9AQQ=="
"""A text as long as a packed round."""


def write(folder: Path, number: int, dice: random.Random) -> None:
    """Writes a conversation; the word ``quokka`` is in one of a thousand, ``needle17`` only in number 17."""
    weights = [1 / rank for rank in range(1, len(VOCABULARY) + 1)]
    lines = [{"type": "session", "version": 1, "created": "2026-11-23T10:00:00.000+00:00"}]
    lines.append({"type": "model", "target": "org/target", "drafter": "org/drafter", "device": "cpu"})
    for turn in range(1, TURNS + 1):
        said = dice.choices(VOCABULARY, weights, k=12)
        lines.append({"type": "user", "turn": turn, "text": " ".join(said), "time": "2026-11-23T10:00:00.000+00:00"})
        lines.append({"type": "started", "turn": turn, "prompt_tokens": 9, "reused_tokens": 0, "settings": {}})
        for index in range(ROUNDS):
            words = dice.choices(VOCABULARY, weights, k=WORDS)
            if index == turn and number % 1000 == 7:
                words.append("quokka")
            if index == turn and number == 17:
                words.append("needle17")
            lines.append({"type": "text", "turn": turn, "answer": " ".join(words) + " ", "step": STEP})
        lines.append({"type": "finished", "turn": turn, "reason": "stop", "statistics": {"num_tokens": 200}})
    path = folder / f"2026-01-01T00-00-00-{number:06d}.jsonl"
    path.write_text("".join(json.dumps(line) + "\n" for line in lines))
    os.utime(path, (1_700_000_000 + 60 * number,) * 2)


def first_hit(folder: Path, words: str) -> float:
    """Runs a search that ends with its first hit; returns its milliseconds."""
    started = time.perf_counter()
    search = Search(folder)
    next(search.find(words), None)
    took = 1000 * (time.perf_counter() - started)
    search.close()
    return took


def report(what: str, milliseconds: float, allowed: bool = True) -> bool:
    good = milliseconds <= ALLOWED_MS or not allowed
    limit = f"   allowed {ALLOWED_MS:.0f} ms" if allowed else ""
    print(f"{what:<52} {milliseconds:9.1f} ms{limit}{'' if good else '   TOO SLOW'}", flush=True)
    return good


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--sessions", type=int, default=10_000)
    count = parse(parser, "--sessions 60").sessions
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        dice = random.Random(1)
        for number in range(count):
            write(folder, number, dice)
        size = sum(path.stat().st_size for path in folder.iterdir())
        print(f"{count} conversations, {size / 1e6:.0f} MB")
        good = report("first hit of a common word, no index yet", first_hit(folder, VOCABULARY[0]))
        started = time.perf_counter()
        search = Search(folder)
        for _ in search.update():
            pass
        search.close()
        report("taking in all of them, once", 1000 * (time.perf_counter() - started), allowed=False)
        print(f"the index has {(folder / INDEX_NAME).stat().st_size / 1e6:.0f} MB")
        for words in (VOCABULARY[0], "quokka", "needle17", "nosuchword", f"{VOCABULARY[1]} {VOCABULARY[9]}"):
            times = sorted(first_hit(folder, words) for _ in range(9))
            good &= report(f"“{words}”: first hit, median of 9", times[4])
        write(folder, count, dice)
        good &= report("the same after one more answer", first_hit(folder, "quokka"))
        (folder / INDEX_NAME).chmod(0o400)
        folder.chmod(0o500)
        report("in a folder that can't be written", first_hit(folder, "quokka"), allowed=os.geteuid() != 0)
        folder.chmod(0o700)
    return 0 if good else 1


if __name__ == "__main__":
    raise SystemExit(main())
