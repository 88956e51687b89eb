"""What rounds cost is kept between starts, for the card and the weights it was timed with."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from engine.files.cache_folder import cache_folder
from engine.measured import store
from engine.measured.store import known_costs
from engine.speculation.costs import CostTable, RoundCosts

TABLE = CostTable((128, 2048), (RoundCosts(0.5, (2.0, 3.0), 0.1), RoundCosts(0.75, (2.5, 4.0), 0.1)))
SLOWER = CostTable((128,), (RoundCosts(5.0, (20.0, 30.0), 1.0),))
CARD = ("NVIDIA H200", "target", "drafter", "32768")


@pytest.fixture(autouse=True)
def cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    return tmp_path


def never() -> CostTable | None:
    raise AssertionError("timed again")


def test_it_is_timed_once_for_each_card_and_each_pair_of_weights() -> None:
    assert known_costs(CARD, lambda: TABLE) == TABLE
    assert known_costs(CARD, never) == TABLE
    for place in range(len(CARD)):
        other = (*CARD[:place], "another", *CARD[place + 1 :])
        assert known_costs(other, lambda: SLOWER) == SLOWER
    assert known_costs(CARD, never) == TABLE and len(list(cache_folder("costs").iterdir())) == 5


def test_other_code_is_timed_again(monkeypatch: pytest.MonkeyPatch) -> None:
    known_costs(CARD, lambda: TABLE)
    monkeypatch.setattr(store, "fingerprint_of_code", lambda: "another version")
    assert known_costs(CARD, lambda: SLOWER) == SLOWER


@pytest.mark.parametrize(
    "change",
    [
        {"contexts": [128]},
        {"contexts": [2048, 128]},
        {"costs": []},
        {"costs": [{"draft": 1, "verify": [1, 2], "ingest": 0}]},
        {"costs": [{"draft": 1, "verify": [1, 2], "ingest": 0}, {"draft": 1, "verify": [0, 2], "ingest": 0}]},
        {"costs": [{"draft": 1, "verify": [1, 2], "ingest": 0}, {"draft": 1, "verify": [2], "ingest": 0}]},
        {"costs": [{"draft": 1, "verify": "12", "ingest": 0}] * 2, "contexts": [1, "x"]},
        {"costs": [{"draft": float("nan"), "verify": [1, 2], "ingest": 0}] * 2},
        {"identity": ["NVIDIA H100", *CARD[1:]]},
        *(b"", b"\xff\xfe", b"[]", b"{}", b'{"identity": 1', b"[" * 100_000),
    ],
)
def test_a_file_that_is_damaged_or_holds_something_else_is_written_anew(change: dict[str, object] | bytes) -> None:
    known_costs(CARD, lambda: TABLE)
    (path,) = cache_folder("costs").iterdir()
    changed = change if isinstance(change, bytes) else json.dumps({**json.loads(path.read_text()), **change}).encode()
    path.write_bytes(changed)
    assert known_costs(CARD, lambda: SLOWER) == SLOWER
    assert known_costs(CARD, never) == SLOWER


def test_where_nothing_can_be_kept_it_is_timed_every_time(cache: Path) -> None:
    (cache / "dflash-chat").write_text("a file, not a folder")
    assert known_costs(CARD, lambda: TABLE) == TABLE
    assert known_costs(CARD, lambda: SLOWER) == SLOWER
