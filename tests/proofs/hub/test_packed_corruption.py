"""A hundred ways to damage a target in few bits, drawn at random: each is refused in words, or harmless, as those of
``test_corruption.py``."""

from __future__ import annotations

import json
import random
import shutil
from pathlib import Path

import pytest
import torch
from safetensors.torch import load_file, save_file

from engine.files.gguf import read_gguf
from tests.engine.checkpoints import FULL, SLIDING, drafter_config, random_target, write_drafter
from tests.engine.loading.test_gguf import q4_0, write_gguf
from tests.engine.packed_checkpoints import FP8_CONFIG, as_fp8, as_int4, int4_config, write_packed
from tests.pace import examples
from tests.proofs.hub.test_corruption import ABSURD, Damage, change_tensor, lose_or_rename_tensor, places, survive, use

FORMATS = ("int4", "fp8", "gguf")


@pytest.fixture(scope="module")
def healthy(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """One drafter, and a target in each format."""
    folder = tmp_path_factory.mktemp("packed")
    write_drafter(folder / "drafter", drafter_config([SLIDING], [0, 1], 2))
    write_packed(folder / "int4", random_target([SLIDING, FULL], True, 6), int4_config(32), as_int4(32), split=False)
    write_packed(folder / "fp8", random_target([SLIDING, FULL], True, 7), FP8_CONFIG, as_fp8, split=True)
    model = random_target([SLIDING, FULL], True, 8)
    model.save_pretrained(folder / "gguf")
    (folder / "gguf" / "model.safetensors").unlink()
    write_gguf(folder / "gguf" / "gemma-q4_0.gguf", model, q4_0)
    return folder


def a_copy(healthy: Path, to: Path, form: str) -> Path:
    shutil.copytree(healthy / "drafter", to / "drafter")
    shutil.copytree(healthy / form, to / "target")
    return to


# --- damages, all of the target


def weights_of(pair: Path) -> Path:
    return next(path for path in (pair / "target").iterdir() if path.suffix in (".gguf", ".safetensors"))


def flip_header_bit(pair: Path, draw: random.Random) -> str:
    path = weights_of(pair)
    content = bytearray(path.read_bytes())
    if path.suffix == ".gguf":  # its last part names tensors: the rest is a vocabulary that nobody reads
        end = min(header.offset for header in read_gguf(path).tensors.values())
        position = draw.choice((draw.randrange(64), draw.randrange(end - 3000, end)))
    else:
        position = draw.randrange(8 + int.from_bytes(content[:8], "little"))
    content[position] ^= 1 << draw.randrange(8)
    path.write_bytes(content)
    return f"bit of byte {position}"


def truncate(pair: Path, draw: random.Random) -> str:
    path = weights_of(pair)
    content = path.read_bytes()
    length = draw.choice((draw.randrange(len(content)), len(content) - 1))
    path.write_bytes(content[:length])
    return f"{length} of {len(content)} bytes"


def edit_config(pair: Path, draw: random.Random) -> str:
    """What it says of its quantisation, else anything."""
    path = pair / "target" / "config.json"
    config = json.loads(path.read_text())
    said = config.get("quantization_config", config["text_config"])
    holder, key = draw.choice([*places(said), (config, "quantization_config")])
    holder[key] = draw.choice(ABSURD)
    path.write_text(json.dumps(config))
    return f"{key} = {str(holder[key])[:40]}"


def spoil_scale(pair: Path, draw: random.Random) -> str:
    """Sets one to what no scale is. Those of a GGUF file lie among its numbers."""
    path, value = weights_of(pair), draw.choice((float("nan"), float("inf"), -float("inf"), 0.0))
    if path.suffix == ".gguf":
        header = draw.choice([each for each in read_gguf(path).tensors.values() if each.dtype == "Q4_0"])
        content = bytearray(path.read_bytes())
        place = header.offset + 18 * draw.randrange(header.nbytes // 18)
        content[place : place + 2] = bytes(torch.tensor([value], dtype=torch.float16).view(torch.uint8).tolist())
        path.write_bytes(content)
        return f"byte {place} = {value}"
    weights = load_file(path)
    name = draw.choice([name for name in sorted(weights) if name.endswith("_scale") and "per_expert" not in name])
    flat = weights[name].flatten()
    flat[draw.randrange(len(flat))] = value
    weights[name] = flat.view(weights[name].shape)
    save_file(weights, path)
    return f"{name} = {value}"


def of_tensors(damage: Damage) -> Damage:
    """Damages of safetensors files, here of the target's."""

    def change(pair: Path, draw: random.Random) -> str:
        if weights_of(pair).suffix == ".gguf":
            return spoil_scale(pair, draw)
        shutil.move(pair / "drafter", pair.parent / "aside")
        what = damage(pair, draw)
        shutil.move(pair.parent / "aside", pair / "drafter")
        return what

    return change


DAMAGES: dict[str, Damage] = {
    "a bit of the header": flip_header_bit,
    "cut off": truncate,
    "another tensor": of_tensors(change_tensor),
    "a tensor less": of_tensors(lose_or_rename_tensor),
    "another config": edit_config,
    "another scale": spoil_scale,
}
MUST_BE_REFUSED = ("cut off", "a tensor less", "another scale")
ROUNDS = 18
"""Of each kind: 108 in all."""


@pytest.mark.parametrize("name", DAMAGES)
def test_damage_is_refused_or_harmless(name: str, healthy: Path, tmp_path: Path) -> None:
    rounds = examples(ROUNDS)
    pairs = [a_copy(healthy, tmp_path / form, form) for form in FORMATS]
    refused, harmless = survive(range(1000, 1000 + rounds), pairs, tmp_path, DAMAGES[name])
    unnoticed = [what for what in harmless if "weight_shape" not in what]  # the config says it as well
    assert not unnoticed or name not in MUST_BE_REFUSED, unnoticed
    assert refused >= rounds // 3


@pytest.mark.parametrize("form", FORMATS)
def test_the_healthy_targets_work(form: str, healthy: Path, tmp_path: Path) -> None:
    use(a_copy(healthy, tmp_path / "pair", form))
