"""The bundled pair's own drafts under every policy: choosing the width must not lose to any width fixed beforehand.

``drafts.xz`` holds what the bundled drafter drafted behind every token of 144 held-out answers, six domains at three
temperatures (``python -m tests.engine.record_drafts``).
"""

from __future__ import annotations

import math
from itertools import groupby
from pathlib import Path

import pytest

from engine.tuning.files import Recording, load_recordings, save_recordings
from engine.tuning.play import Anchor
from engine.tuning.rates import rate
from engine.width import Auto, CostTable, Fixed, RoundCosts

RECORDINGS = load_recordings(Path(__file__).with_name("drafts.xz"))
CELLS = {
    f"{domain} T={temperature}": list(answers)
    for (domain, temperature), answers in groupby(
        sorted(RECORDINGS, key=lambda each: (each.domain, each.temperature)),
        key=lambda each: (each.domain, each.temperature),
    )
}


def _experts(correlated: bool) -> CostTable:
    """Gemma 4 26B-A4B by its bytes at 3.3 TB/s: 7.6 GB a row and 0.357 GB for each further expert of a layer; how
    many of 128 experts 8 choices a row touch, if rows choose alone or alike. Not measured."""

    def distinct(rows: int) -> float:
        alone = 128 * (1 - (1 - 8 / 128) ** rows)
        return alone * (1 - 0.0975 * math.log2(rows)) if correlated else alone

    passes = tuple((7.6 + 0.357 * (distinct(rows) - 8)) / 3.3 for rows in range(1, 17))
    return CostTable((0,), (RoundCosts(0.75, passes),))


TABLES = {
    "26B uniform": _experts(correlated=False),
    "26B correlated": _experts(correlated=True),
    "31B": CostTable((0,), (RoundCosts(1.6, tuple(16.8 + 0.02 * rows for rows in range(16))),)),
}


@pytest.mark.parametrize("table", TABLES.values(), ids=TABLES)
@pytest.mark.parametrize("cell", CELLS)
def test_auto_is_not_slower_than_any_fixed_width(cell: str, table: CostTable) -> None:
    answers = CELLS[cell]
    fixed = {size: rate(lambda size=size: Fixed(size), answers, table).tok_s for size in range(1, 17)}  # type: ignore[misc]
    auto = rate(lambda: Auto(table), answers, table)
    assert auto.tok_s >= 0.98 * max(fixed.values())
    assert auto.low <= auto.tok_s <= auto.high
    if table is not TABLES["31B"] and cell.split()[0] in ("chat", "explain"):
        assert auto.tok_s >= 1.1 * fixed[16]


def test_every_domain_and_temperature_is_there() -> None:
    assert len(CELLS) == 18 and all(len(answers) == 8 for answers in CELLS.values())


def test_a_file_gives_back_what_was_saved(tmp_path: Path) -> None:
    kept = [Recording("maths", 0.7, 12, (Anchor((1.0, 51 / 255), 1), Anchor((0.0,), 0), Anchor((), 0)))]
    save_recordings(tmp_path / "drafts.xz", kept)
    assert load_recordings(tmp_path / "drafts.xz") == kept
    (tmp_path / "drafts.xz").write_bytes(b"something else")
    with pytest.raises(ValueError, match="not a file of recorded drafts"):
        load_recordings(tmp_path / "drafts.xz")
