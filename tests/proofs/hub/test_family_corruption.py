"""Ways to damage a Llama, a Qwen3, a mixture of experts, a gpt-oss in MXFP4, a Qwen3.5, and a Llama that is a GGUF file
alone: each is refused in words, or harmless, as those of ``test_corruption.py``."""

from __future__ import annotations

import json
import random
from pathlib import Path

import pytest
from gguf import GGMLQuantizationType as Type

from engine.hub.packaged import folder_of
from tests.engine.checkpoints import FULL, SLIDING, drafter_config, write_drafter
from tests.engine.loading.test_plain_gguf import WIDTH, a_model, write
from tests.engine.models import gpt_oss, pre_norm, qwen3_5
from tests.pace import examples
from tests.proofs.hub.test_corruption import (
    Damage,
    change_tensor,
    edit_json,
    flip_header_bit,
    flip_json_bit,
    lose_or_rename_tensor,
    split,
    survive,
    truncate,
    use,
)

FAMILIES = (*pre_norm.FAMILIES, "gpt_oss", "qwen3_5")
GGUF = "model.gguf"
HEADER = 9_000
"""Bytes of the GGUF file in which its metadata and tensors are named."""


@pytest.fixture(scope="module")
def healthy(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("families")
    for family in FAMILIES:
        if family == "gpt_oss":
            gpt_oss.write_target(folder / family / "target", num_hidden_layers=2)
        elif family == "qwen3_5":
            qwen3_5.write_target(folder / family / "target", num_hidden_layers=2, layer_types=list(qwen3_5.KINDS[2:4]))
        else:
            pre_norm.write_target(folder / family / "target", family, num_hidden_layers=2)
        split(folder / family / "target")
        for path in (folder / family / "target").glob("tokenizer*"):  # of which nothing here reads
            path.unlink()
        write_drafter(folder / family / "drafter", drafter_config([SLIDING], [0, 1], 2))
    write_drafter(folder / "gguf" / "drafter", drafter_config([FULL], [0, 1], 2, hidden_size=WIDTH))
    write(folder / "gguf" / GGUF, a_model("llama"), Type.Q4_1)
    return folder


@pytest.mark.parametrize(
    "damage", [flip_header_bit, truncate, change_tensor, lose_or_rename_tensor, edit_json, flip_json_bit]
)
def test_damaged_folders(damage: Damage, healthy: Path, tmp_path: Path) -> None:
    rounds = examples(28)
    refused, _ = survive(range(2000, 2000 + rounds), [healthy / family for family in FAMILIES], tmp_path, damage)
    assert refused >= rounds // 3
    assert refused == rounds or damage is not truncate


def upset(pair: Path, draw: random.Random) -> str:
    """Says something else of what layers that recur are, or of what the drafter reads of them."""
    name, key, values = draw.choice(SAYINGS)
    path, value = pair / name / "config.json", draw.choice(values)
    config = json.loads(path.read_text())
    holder = config.get("text_config", config)
    if key in holder.get("dflash_config", {}):
        holder = holder["dflash_config"]
    holder[key] = value
    path.write_text(json.dumps(config))
    return f"{key} = {value}"


RECURS, ATTENDS = qwen3_5.RECURS, qwen3_5.ATTENDS
SAYINGS: tuple[tuple[str, str, tuple[object, ...]], ...] = (
    (
        "target",
        "layer_types",
        ([ATTENDS, RECURS], [RECURS, RECURS], [ATTENDS] * 2, [RECURS], ["sliding_attention"] * 2),
    ),
    ("target", "linear_conv_kernel_dim", (3, 5, 0)),
    ("target", "linear_num_key_heads", (1, 3, 4)),
    ("target", "linear_num_value_heads", (2, 4, 7)),
    ("target", "linear_key_head_dim", (8, 32, 15)),
    ("target", "linear_value_head_dim", (8, 32, 12)),
    ("target", "head_dim", (16, 31)),
    ("target", "attn_output_gate", (False, "yes")),
    ("target", "output_gate_type", ("sigmoid", "tanh")),
    ("target", "rope_parameters", ({"rope_type": "yarn", "rope_theta": 1e4}, {"rope_type": "default"}, [])),
    ("drafter", "target_layer_ids", ([0, 2], [1, 1], [0], [0, -1])),
    ("drafter", "num_target_layers", (8, 3)),
    ("drafter", "block_size", (1, 0, "16")),
    ("drafter", "mask_token_id", (512, -4)),
)


def test_a_qwen3_5_that_is_said_to_be_otherwise(healthy: Path, tmp_path: Path) -> None:
    """What is said otherwise than the tensors are is refused, all of it."""
    rounds = examples(60)
    assert survive(range(2000, 2000 + rounds), [healthy / "qwen3_5"], tmp_path, upset)[0] == rounds


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
def test_a_damaged_file(damage: Damage, healthy: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))

    rounds = examples(24)

    def used(pair: Path) -> None:
        (pair / "target").symlink_to(folder_of(pair / GGUF))
        use(pair)

    refused, _ = survive(range(2000, 2000 + rounds), [healthy / "gguf"], tmp_path, damage, used)
    assert refused >= rounds // 3 and (refused == rounds or damage is flip_bits)
