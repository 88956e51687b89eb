"""Ways to damage a Llama, a Qwen3, a mixture of experts, a gpt-oss in MXFP4, and a Llama that is a GGUF file alone:
each is refused in words, or harmless, as those of ``test_corruption.py``."""

from __future__ import annotations

import random
import shutil
from collections.abc import Callable
from pathlib import Path

import pytest
from gguf import GGMLQuantizationType as Type

from engine.errors import EngineFailure
from engine.hub.packaged import folder_of
from tests.engine.checkpoints import FULL, SLIDING, drafter_config, write_drafter
from tests.engine.loading.test_plain_gguf import WIDTH, a_model, write
from tests.engine.models import gpt_oss, pre_norm
from tests.hub.test_corruption import (
    change_tensor,
    edit_json,
    flip_header_bit,
    flip_json_bit,
    lose_or_rename_tensor,
    split,
    truncate,
    use,
)
from tests.pace import examples

FAMILIES = (*pre_norm.FAMILIES, "gpt_oss")
GGUF = "model.gguf"
HEADER = 9_000
"""Bytes of the GGUF file in which its metadata and tensors are named."""


@pytest.fixture(scope="module")
def healthy(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("families")
    for family in FAMILIES:
        if family == "gpt_oss":
            gpt_oss.write_target(folder / family / "target", num_hidden_layers=2)
        else:
            pre_norm.write_target(folder / family / "target", family, num_hidden_layers=2)
        split(folder / family / "target")
        for path in (folder / family / "target").glob("tokenizer*"):  # of which nothing here reads
            path.unlink()
        write_drafter(folder / family / "drafter", drafter_config([SLIDING], [0, 1], 2))
    write_drafter(folder / "gguf" / "drafter", drafter_config([FULL], [0, 1], 2, hidden_size=WIDTH))
    write(folder / "gguf" / GGUF, a_model("llama"), Type.Q4_1)
    return folder


def survive(rounds: int, prepare: Callable[[int], Path], damage: Callable[[Path, random.Random], str]) -> int:
    """How many of so many damaged pairs are refused; the others must work."""
    refused = 0
    for seed in range(rounds):
        pair = prepare(seed)
        what = damage(pair, random.Random(2000 + seed))
        try:
            if (pair / GGUF).exists():
                (pair / "target").symlink_to(folder_of(pair / GGUF))
            use(pair)
        except EngineFailure as failure:
            assert str(failure) and failure.hint, what
            refused += 1
        except Exception as error:
            pytest.fail(f"seed {seed}, {what}: {type(error).__name__}: {error}")
        else:
            print(f"seed {seed}, {what}: harmless")
        shutil.rmtree(pair)
    return refused


@pytest.mark.parametrize(
    "damage", [flip_header_bit, truncate, change_tensor, lose_or_rename_tensor, edit_json, flip_json_bit]
)
def test_damaged_folders(damage: Callable[[Path, random.Random], str], healthy: Path, tmp_path: Path) -> None:
    def prepare(seed: int) -> Path:
        pair = tmp_path / str(seed)
        shutil.copytree(healthy / FAMILIES[seed % len(FAMILIES)], pair)
        return pair

    rounds = examples(28)
    refused = survive(rounds, prepare, damage)
    assert refused >= rounds // 3
    assert refused == rounds or damage is not truncate


def cut_off(pair: Path, draw: random.Random) -> str:
    content = (pair / GGUF).read_bytes()
    length = draw.choice((draw.randrange(len(content)), draw.randrange(HEADER), len(content) - 1))
    (pair / GGUF).write_bytes(content[:length])
    return f"{length} of {len(content)} bytes"


def flip_bits(pair: Path, draw: random.Random) -> str:
    content = bytearray((pair / GGUF).read_bytes())
    place = draw.choice((draw.randrange(64), draw.randrange(HEADER)))
    content[place] ^= 1 << draw.randrange(8)
    (pair / GGUF).write_bytes(content)
    return f"bit of byte {place}"


@pytest.mark.parametrize("damage", [cut_off, flip_bits])
def test_a_damaged_file(
    damage: Callable[[Path, random.Random], str], healthy: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))

    def prepare(seed: int) -> Path:
        pair = tmp_path / str(seed)
        shutil.copytree(healthy / "gguf", pair)
        return pair

    rounds = examples(24)
    refused = survive(rounds, prepare, damage)
    assert refused >= rounds // 3 and (refused == rounds or damage is flip_bits)
