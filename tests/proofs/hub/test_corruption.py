"""Three hundred ways to damage a checkpoint in CI, drawn at random: each is refused in words, or harmless.

Harmless means that what loaded has the shapes of its config and decodes. A traceback is never an answer.
"""

from __future__ import annotations

import json
import random
import shutil
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any

import pytest
import torch
from safetensors.torch import load_file, save_file

from engine.commands import GenerationSettings
from engine.decoding.decoder import Decoder, Prompt, Round
from engine.errors import EngineFailure
from engine.loading.checkpoint import load_drafter, load_target
from tests.engine.checkpoints import FULL, SLIDING, drafter_config, random_target, write_drafter
from tests.pace import examples

CPU = torch.device("cpu")
ROUNDS_PER_KIND = 50
INDEX = "model.safetensors.index.json"
ABSURD: list[Any] = [
    0, -1, 1, 2, 3, 7, 63, 65, 10**6, 2**31, 2**63, 10**400, 0.0, 0.5, -1.5, 1e-300, 1e300, float("nan"), float("inf"),
    True, False, None, "", "64", "full_attention", [], [0], [-1], [10**9], ["x"], [[1]], {}, {"a": 1}, {"0": 3},
]  # fmt: skip


@pytest.fixture(scope="module")
def healthy(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A pair with experts and both kinds of layers; the target's weights lie in two shards."""
    folder = tmp_path_factory.mktemp("healthy")
    random_target([SLIDING, FULL], moe=True, seed=5).save_pretrained(folder / "target")
    split(folder / "target")
    write_drafter(folder / "drafter", drafter_config([SLIDING, FULL], [0, 1], 2))
    return folder


def split(folder: Path) -> None:
    weights = load_file(folder / "model.safetensors")
    (folder / "model.safetensors").unlink()
    names = sorted(weights)
    shards = {f"model-{part + 1:05}-of-00002.safetensors": names[part::2] for part in range(2)}
    for shard, members in shards.items():
        save_file({name: weights[name] for name in members}, folder / shard, metadata={"format": "pt"})
    weight_map = {name: shard for shard, members in shards.items() for name in members}
    (folder / INDEX).write_text(json.dumps({"weight_map": weight_map}))


# --- damages. Each changes one file of a pair, and returns what it did.


def any_weights(pair: Path, draw: random.Random) -> Path:
    return draw.choice(sorted(pair.glob("*/*.safetensors")))


def flip_header_bit(pair: Path, draw: random.Random) -> str:
    path = any_weights(pair, draw)
    content = bytearray(path.read_bytes())
    position = draw.randrange(8 + int.from_bytes(content[:8], "little"))
    content[position] ^= 1 << draw.randrange(8)
    path.write_bytes(content)
    return f"{path.name}: bit of byte {position}"


def truncate(pair: Path, draw: random.Random) -> str:
    path = draw.choice(sorted(file for file in pair.glob("*/*") if file.stat().st_size))
    content = path.read_bytes()
    length = draw.randrange(len(content))
    path.write_bytes(content[:length])
    return f"{path.name}: {length} of {len(content)} bytes"


def change_tensor(pair: Path, draw: random.Random) -> str:
    path = any_weights(pair, draw)
    weights = load_file(path)
    name = draw.choice(sorted(weights))
    tensor = weights[name]
    damages: dict[str, Callable[[], torch.Tensor]] = {
        "int32": lambda: tensor.to(torch.int32),
        "bool": lambda: tensor.to(torch.bool),
        "fp8": lambda: tensor.to(torch.float8_e4m3fn),
        "fp16": lambda: tensor.to(torch.float16),
        "flat": lambda: torch.cat((tensor.flatten(), tensor.flatten())),
        "longer": lambda: torch.cat((tensor, tensor)),
        "deeper": lambda: tensor[None],
        "empty": lambda: tensor[:0],
    }
    how = draw.choice(sorted(damages))
    weights[name] = damages[how]().contiguous()
    save_file(weights, path, metadata={"format": "pt"})
    return f"{name}: {how}"


def lose_or_rename_tensor(pair: Path, draw: random.Random) -> str:
    path = any_weights(pair, draw)
    weights = load_file(path)
    name = draw.choice(sorted(weights))
    tensor = weights.pop(name)
    if renamed := draw.random() < 0.5:
        weights[name.replace(draw.choice(name), "_", 1)] = tensor
    save_file(weights, path, metadata={"format": "pt"})
    return f"{name}: {'renamed' if renamed else 'lost'}"


def edit_json(pair: Path, draw: random.Random) -> str:
    """Gives one value, at any depth, another one; or loses it."""
    path = draw.choice([*sorted(pair.glob("*/*config.json")), pair / "target" / INDEX])
    content = json.loads(path.read_text())
    holder, key = draw.choice(list(places(content)))
    value = draw.choice(ABSURD)
    if draw.random() < 0.15:
        del holder[key]
        what = f"{key} lost"
    else:
        holder[key] = value
        what = f"{key} = {str(value)[:40]}"
    path.write_text(json.dumps(content))
    return f"{path.name}: {what}"


def places(content: Any) -> Iterator[tuple[Any, Any]]:
    keys = content.keys() if isinstance(content, dict) else range(len(content)) if isinstance(content, list) else ()
    for key in keys:
        yield content, key
        yield from places(content[key])


def flip_json_bit(pair: Path, draw: random.Random) -> str:
    path = draw.choice(sorted(pair.glob("*/*.json")))
    content = bytearray(path.read_bytes())
    position = draw.randrange(len(content))
    content[position] ^= 1 << draw.randrange(8)
    path.write_bytes(content)
    return f"{path.name}: bit of byte {position}"


# --- what must hold


def use(pair: Path) -> None:
    """Loads a pair and decodes a few tokens. What loads must have its config's shapes, and compute with them."""
    target = load_target(pair / "target", CPU, lambda *told: None)
    drafter = load_drafter(pair / "drafter", target, lambda *told: None)
    assert all(not tensor.is_meta for model in (target, drafter) for tensor in model.parameters())
    hidden = target.config.hidden_size
    assert target.embed_tokens.weight.shape == (target.config.vocab_size, hidden)
    assert drafter.fc.weight.shape == (hidden, hidden * len(drafter.config.target_layer_ids))
    settings = GenerationSettings(max_new_tokens=6)
    rounds = Decoder(target, drafter, 64).decode(Prompt((2, 105, 9, 11), 4), lambda: settings)
    emitted = [token for done in rounds if isinstance(done, Round) for token in done.emitted]
    assert emitted and all(0 <= token < target.config.vocab_size for token in emitted)


Damage = Callable[[Path, random.Random], str]


def survive(
    seeds: range, pairs: Sequence[Path], into: Path, damage: Damage, used: Callable[[Path], None] = use
) -> tuple[int, list[str]]:
    """How many copies of ``pairs``, each damaged by a seed, are refused in words, and what was done to the others,
    which must work."""
    refused, harmless = 0, []
    for place, seed in enumerate(seeds):
        pair = into / str(seed)
        shutil.copytree(pairs[place % len(pairs)], pair)
        what = f"seed {seed}, {damage(pair, random.Random(seed))}"
        try:
            used(pair)
        except EngineFailure as failure:
            assert str(failure) and failure.hint, what
            refused += 1
        except Exception as error:
            pytest.fail(f"{what}: {type(error).__name__}: {error}")
        else:
            harmless.append(what)
        shutil.rmtree(pair)
    return refused, harmless


@pytest.mark.parametrize(
    "damage", [flip_header_bit, truncate, change_tensor, lose_or_rename_tensor, edit_json, flip_json_bit]
)
def test_damage_is_refused_or_harmless(damage: Damage, healthy: Path, tmp_path: Path) -> None:
    """Some kinds can be harmless: a halved precision, a number nobody reads. None is harmless mostly."""
    rounds = examples(ROUNDS_PER_KIND)
    assert survive(range(rounds), [healthy], tmp_path, damage)[0] >= rounds // 3


def test_the_healthy_pair_works(healthy: Path) -> None:
    use(healthy)
