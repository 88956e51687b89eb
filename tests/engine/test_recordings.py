"""The bundled pair's own drafts under every policy: choosing the width must not lose to any width fixed beforehand.

``drafts.xz`` holds what the bundled drafter drafted behind every token of 144 held-out answers, six domains at three
temperatures (``python -m tests.engine.record_drafts``).
"""

from __future__ import annotations

from dataclasses import replace
from itertools import groupby
from pathlib import Path

import pytest

from engine.tuning.files import Recording, load_recordings, save_recordings
from engine.tuning.play import Anchor, play_oracle
from engine.tuning.rates import rate, rate_of
from engine.width import Auto, Fixed
from tests.engine.recorded_costs import recorded_tables

RECORDINGS = load_recordings(Path(__file__).with_name("drafts.xz"))
CELLS = {
    f"{domain} T={temperature}": list(answers)
    for (domain, temperature), answers in groupby(
        sorted(RECORDINGS, key=lambda each: (each.domain, each.temperature)),
        key=lambda each: (each.domain, each.temperature),
    )
}


TABLES = recorded_tables()


@pytest.mark.parametrize("ahead", [0, 32_000], ids=["short", "long"])
@pytest.mark.parametrize("name", TABLES)
@pytest.mark.parametrize("cell", CELLS)
def test_auto_is_not_slower_than_any_fixed_width(cell: str, name: str, ahead: int) -> None:
    """``ahead``: so many tokens stand before the prompt."""
    table = TABLES[name]
    answers = [replace(each, prompt_length=each.prompt_length + ahead) for each in CELLS[cell]]
    fixed = {size: rate(lambda size=size: Fixed(size), answers, table).tok_s for size in range(1, 17)}  # type: ignore[misc]
    auto = rate(lambda: Auto(table), answers, table)
    assert auto.tok_s >= 0.98 * max(fixed.values())
    assert auto.low <= auto.tok_s <= auto.high
    if cell.split()[0] in ("chat", "explain"):
        if name.startswith("26B"):
            assert auto.tok_s >= 1.1 * fixed[16]
        else:
            # On a dense model a pass over 16 rows costs hardly more than one over a single row: whoever knew beforehand
            # which drafts are right would not be a tenth faster than whole blocks (an eighth, at the longest context).
            known = rate_of([play_oracle(each.anchors, table, each.prompt_length) for each in answers]).tok_s
            assert 0.99 * fixed[16] <= auto.tok_s < known < (1.13 if ahead else 1.1) * fixed[16]


def test_every_domain_and_temperature_is_there() -> None:
    assert len(CELLS) == 18 and all(len(answers) == 8 for answers in CELLS.values())


def test_a_file_gives_back_what_was_saved(tmp_path: Path) -> None:
    kept = [Recording("maths", 0.7, 12, (Anchor((1.0, 51 / 255), 1), Anchor((0.0,), 0), Anchor((), 0)))]
    save_recordings(tmp_path / "drafts.xz", kept)
    assert load_recordings(tmp_path / "drafts.xz") == kept
    (tmp_path / "drafts.xz").write_bytes(b"something else")
    with pytest.raises(ValueError, match="not a file of recorded drafts"):
        load_recordings(tmp_path / "drafts.xz")
