"""``python -m engine.lab.bench predict FILE...``: what a bench's figures say of cards that nobody measured. Predictions
by bytes: each pass takes what its bytes take at the card's bandwidth, reached as far as copies reach it on the card
that was measured, and on top what that card took beyond its floor: as many milliseconds (the lower figure), or the same
share of the time (the upper). Slow arithmetic, as of unpacking on few multiprocessors, is in neither."""

from __future__ import annotations

import argparse
import json
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from ...hub.pairs import KNOWN_PAIRS
from ...hub.sizes import CONTEXTS, size_of
from ...tools.gpus import CARDS, KnownCard
from .report import table
from .shapes import PUBLISHED

PROG = "python -m engine.lab.bench predict"
PREDICTED = ("RTX 3090", "RTX 4090", "RTX 5090")
BARS = {
    "RTX 3090": "217 code, 168 prose (vLLM, AWQ, MTP n=4)",
    "RTX 4090": "138 plain (llama.cpp, 15 GB)",
    "RTX 5090": "578 (random data)",
}
"""Tokens per second of Gemma 4 26B-A4B that others measured: club-3090 (BENCHMARKS.md, 2026-06-06), gemmaclaw#262, and
vLLM on random data."""
HEADS = ("card", "weights", "context", "routing", "rows", "ms", "tok/s", "measured by others, tok/s")


@dataclass(frozen=True, slots=True)
class Measured:
    """One row of a bench: rounds of one width."""

    weights: str
    context: int
    routing: str
    width: int
    nbytes: float
    milliseconds: float
    acceptance_length: float
    copy_rate: float
    """Bytes per second that copies reached on that card."""
    nominal: float
    """And what its data sheet says."""

    def on(self, card: KnownCard) -> tuple[float, float]:
        """Milliseconds there: with the same overhead in time, and with the same share of the memory's speed."""
        rate = card.bandwidth * self.copy_rate / self.nominal
        overhead = max(0.0, self.milliseconds - self.nbytes / self.copy_rate * 1e3)
        return self.nbytes / rate * 1e3 + overhead, self.milliseconds * self.copy_rate / rate


def read_bench(path: Path) -> tuple[str, list[Measured]]:
    """A bench's shape and rounds; ``ValueError`` for another file, and for a card that isn't known."""
    try:
        found: dict[str, Any] = json.loads(path.read_text("utf-8"))
        device, copy_rate = found["device"], found["ceiling"]["copy"]
        card = next((card for card in CARDS if all(word in device for word in card.name.split())), None)
        if card is None:
            raise ValueError(f"{path} was measured on {device}, whose bandwidth is not known")
        return found["shape"], [
            Measured(
                found["weights"],
                each["context"],
                each["routing"],
                each["width"],
                each["verify_bytes"] + each["draft_bytes"],
                each["round_ms"],
                each["acceptance_length"],
                copy_rate,
                card.bandwidth,
            )
            for each in found["rounds"]
        ]
    except (OSError, LookupError, TypeError, json.JSONDecodeError) as error:
        raise ValueError(f"{path} holds no figures of the bench: {error}") from error


def predictions(shape: str, rounds: Sequence[Measured], cards: Sequence[KnownCard]) -> Iterator[list[str]]:
    """Rows of the table."""
    names = (
        pair.target for pair in KNOWN_PAIRS if shape in PUBLISHED and pair.target.endswith("/" + PUBLISHED[shape][0])
    )
    size = size_of(next(names, ""))
    for card in cards:
        for each in rounds:
            context = next((known for known in CONTEXTS if known >= each.context), CONTEXTS[-1])
            fits = size is None or size.fits(each.weights, context, card.free)  # type: ignore[arg-type]
            low, high = sorted(each.on(card))
            rates = [1e3 * each.acceptance_length / ms for ms in (high, low)]
            yield [
                card.name,
                each.weights,
                str(each.context),
                each.routing,
                str(each.width),
                f"{low:.2f}-{high:.2f}" if fits else "-",
                f"{rates[0]:.0f}-{rates[1]:.0f}" if fits else "doesn't fit",
                BARS.get(card.name, "") if shape == "26B-A4B" else "",
            ]


def run(arguments: Sequence[str]) -> int:
    """Prints the table; returns the exit code."""
    parser = argparse.ArgumentParser(prog=PROG, description=__doc__)
    parser.add_argument("files", type=Path, nargs="+", metavar="FILE", help="the JSON of a bench (--out), per format")
    names = [card.name for card in CARDS]
    parser.add_argument("--cards", nargs="+", choices=names, default=list(PREDICTED), metavar="CARD")
    parser.add_argument("--widths", type=int, nargs="+", default=[1, 16], metavar="N", help="rows per pass")
    options = parser.parse_args(arguments)
    cards = [card for card in CARDS if card.name in options.cards]
    rows = []
    for file in options.files:
        shape, rounds = read_bench(file)
        rows += list(predictions(shape, [each for each in rounds if each.width in options.widths], cards))
    print("Predictions from bytes and the overheads that were measured; nobody has run these.")
    print(table(HEADS, sorted(rows, key=lambda row: names.index(row[0]))))
    return 0
