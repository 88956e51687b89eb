"""``dflash-chat tune`` from the shell's point of view."""

from __future__ import annotations

import json
import re
from functools import cache

import pytest

from dflash_tui.cli.commands import tune
from dflash_tui.cli.commands.tune import _kernel_lines, _kernels_object
from dflash_tui.cli.main import main
from engine.kernels.decode.tiles import Tiles
from engine.loading.choose_rounds import TimedTiles
from engine.measured.tiles import Timed

QUICK = ["tune", "--device", "cpu", "--tokens", "24", "-p", "what is 47 + 38?"]


def test_it_compares_every_size_with_choosing(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(tune, "_run", cache(tune._run))
    assert main(QUICK) == 0
    out = capsys.readouterr().out
    assert all(f"\n{name} " in out for name in ("plain", "block 2", "block 16", "auto", "oracle"))
    assert re.match(r"milliseconds at context 128: draft \d.*of 16 rows \(timed in \d\.\d\d s\)\n\n", out)
    assert "times the best fixed size" in out and "prompts of your own" in out
    assert main([*QUICK, "--json"]) == 0
    found = json.loads(capsys.readouterr().out)
    assert found["fixed"].keys() == {"1", "2", "4", "6", "8", "12", "16"}
    assert 0 < found["auto"]["low"] <= found["auto"]["tok_s"] <= found["auto"]["high"]
    assert found["oracle"]["tok_s"] >= found["auto"]["tok_s"]
    assert str(found["best_block_size"]) in found["fixed"]


def test_without_a_drafter_there_is_nothing_to_tune(capsys: pytest.CaptureFixture[str]) -> None:
    assert main([*QUICK, "--draft", "none"]) == 2
    assert "no drafter" in capsys.readouterr().err


def test_without_kernels_there_are_no_tiles_to_time(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["tune", "--device", "cpu", "--kernels"]) == 2
    assert "No kernels run the rounds of this pair here" in capsys.readouterr().err


def test_it_says_what_timing_tiles_changed() -> None:
    before, now = Tiles(32, 128, splits=4), Tiles(32, 128, splits=2, stages=3)
    timed = [Timed("output", before, 9.0, now, 8.0, 30), Timed("qkv", before, 10.0, before, 10.0, 30)]
    found = TimedTiles([*timed, Timed("head", before, 99.0, now, 50.0, 1)], 2, 23.4, complete=True, kept=True)
    assert found.describe() == "Tiles of 3 kernels were timed in 23 s: 2 changed."
    lines = _kernel_lines(found)
    assert [" ".join(line.split()) for line in lines[1:4]] == [
        "target output 9.00 8.00 splits 4 to 2, stages 4 to 3",
        "target qkv 10.00 10.00 -",
        "drafter head 99.00 50.00 splits 4 to 2, stages 4 to 3",
    ]
    last = "Products of a pass of 16 rows: 0.57 ms before, 0.54 ms now; kept for the next start."
    assert lines[-1] == last
    assert [each["pass"] for each in _kernels_object(found)["kernels"]] == ["target", "target", "drafter"]
