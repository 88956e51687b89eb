"""Checkpoints that were damaged anyhow, of each family and format: refused in words, or harmless.

Harmless means that what loaded has the shapes of its config and decodes. A traceback is never an answer."""

from __future__ import annotations

import json
import shutil
from collections import Counter
from collections.abc import Callable, Iterator
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import pytest
import torch
from gguf import GGMLQuantizationType as Type
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from safetensors.torch import load_file, save_file

from engine.commands import GenerationSettings
from engine.decoding.decoder import Decoder, Prompt, Round
from engine.errors import EngineFailure
from engine.hub.packaged import folder_of
from engine.loading.checkpoint import load_drafter, load_target
from support.checkpoints import FULL, SLIDING, drafter_config, random_target, write_drafter
from support.packed_checkpoints import FP8_CONFIG, as_fp8, as_int4, int4_config, write_packed
from tests.engine.conftest import CPU, no_progress
from tests.engine.loading.test_checkpoint import split_into_shards
from tests.engine.loading.test_gguf import q4_0, write_gguf
from tests.engine.loading.test_plain_gguf import WIDTH, a_model, write
from tests.engine.models import gpt_oss, pre_norm, qwen3_5
from tests.pace import examples

GGUF = "model.gguf"
KINDS = ("gemma4", "int4", "fp8", "gguf", *pre_norm.FAMILIES, "gpt_oss", "qwen3_5", GGUF)
HEADER = 9_000
"""Bytes of a GGUF file in which its metadata and tensors are named."""
ABSURD: list[Any] = [
    0, -1, 1, 2, 3, 7, 63, 65, 10**6, 2**31, 2**63, 10**400, 0.0, 0.5, -1.5, 1e-300, 1e300, float("nan"), float("inf"),
    True, False, None, "", "64", "full_attention", [], [0], [-1], [10**9], ["x"], [[1]], {}, {"a": 1}, {"0": 3},
]  # fmt: skip


@pytest.fixture(scope="module")
def healthy(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A pair of each kind; the first one's target lies in two shards."""
    folder = tmp_path_factory.mktemp("healthy")
    for number, kind in enumerate(KINDS):
        target, layers = folder / kind / "target", [SLIDING]
        if kind == "gemma4":
            random_target([SLIDING, FULL], moe=True, seed=5).save_pretrained(target)
            split_into_shards(target, 2)
            layers = [SLIDING, FULL]
        elif kind == "int4":
            write_packed(
                target, random_target([SLIDING, FULL], True, number), int4_config(32), as_int4(32), split=False
            )
        elif kind == "fp8":
            write_packed(target, random_target([SLIDING, FULL], True, number), FP8_CONFIG, as_fp8, split=True)
        elif kind == "gguf":
            model = random_target([SLIDING, FULL], True, number)
            model.save_pretrained(target)
            (target / "model.safetensors").unlink()
            write_gguf(target / "gemma-q4_0.gguf", model, q4_0)
        elif kind == "gpt_oss":
            gpt_oss.write_target(target, num_hidden_layers=2)
        elif kind == "qwen3_5":
            qwen3_5.write_target(target, num_hidden_layers=2, layer_types=list(qwen3_5.KINDS[2:4]))
        elif kind == GGUF:
            write_drafter(folder / kind / "drafter", drafter_config([FULL], [0, 1], 2, hidden_size=WIDTH))
            write(folder / kind / GGUF, a_model("llama"), Type.Q4_1)
            continue
        else:
            pre_norm.write_target(target, kind, num_hidden_layers=2)
        for path in target.glob("tokenizer*"):  # of which nothing here reads
            path.unlink()
        write_drafter(folder / kind / "drafter", drafter_config(layers, [0, 1], 2))
    return folder


def files(pair: Path, *suffixes: str) -> list[Path]:
    return sorted(path for path in pair.rglob("*") if path.suffix in suffixes and path.stat().st_size)


# --- damages. Each changes one file of a pair.


def truncate(pair: Path, draw: st.DataObject) -> None:
    path = draw.draw(st.sampled_from(files(pair, ".safetensors", ".gguf", ".json")))
    content = path.read_bytes()
    path.write_bytes(content[: draw.draw(st.integers(0, len(content) - 1))])


def flip_bit(pair: Path, draw: st.DataObject) -> None:
    """In JSON, or in what names tensors."""
    path = draw.draw(st.sampled_from(files(pair, ".safetensors", ".gguf", ".json")))
    content = bytearray(path.read_bytes())
    heads = {".safetensors": 8 + int.from_bytes(content[:8], "little"), ".gguf": HEADER}
    content[draw.draw(st.integers(0, min(heads.get(path.suffix, len(content)), len(content)) - 1))] ^= 1 << draw.draw(
        st.integers(0, 7)
    )
    path.write_bytes(content)


def edit_json(pair: Path, draw: st.DataObject) -> None:
    """Gives one value, at any depth, another one; or loses it."""
    path = draw.draw(st.sampled_from(files(pair, ".json")))
    content = json.loads(path.read_text())
    holder, key = draw.draw(st.sampled_from(list(places(content)) or [(content, "x")]))
    value = draw.draw(st.sampled_from([*ABSURD, places]))
    if value is places and isinstance(holder, dict):
        holder.pop(key, None)
    else:
        holder[key] = None if value is places else value
    path.write_text(json.dumps(content))


def places(content: Any) -> Iterator[tuple[Any, Any]]:
    keys = content.keys() if isinstance(content, dict) else range(len(content)) if isinstance(content, list) else ()
    for key in keys:
        yield content, key
        yield from places(content[key])


CHANGES: dict[str, Callable[[torch.Tensor], torch.Tensor]] = {
    "lost": lambda tensor: tensor,
    "int32": lambda tensor: tensor.to(torch.int32),
    "bool": lambda tensor: tensor.to(torch.bool),
    "fp16": lambda tensor: tensor.to(torch.float16),
    "flat": lambda tensor: torch.cat((tensor.flatten(), tensor.flatten())),
    "deeper": lambda tensor: tensor[None],
    "empty": lambda tensor: tensor[:0],
    "no number": lambda tensor: tensor.clone().fill_(float("nan")) if tensor.is_floating_point() else tensor[:0],
}


def change_tensor(pair: Path, draw: st.DataObject) -> None:
    path = draw.draw(st.sampled_from(files(pair, ".safetensors")))
    weights = load_file(path)
    name, how = draw.draw(st.sampled_from(sorted(weights))), draw.draw(st.sampled_from(sorted(CHANGES)))
    weights[name] = CHANGES[how](weights[name]).contiguous()
    if how == "lost":
        del weights[name]
    save_file(weights, path, metadata={"format": "pt"})


def use(pair: Path) -> None:
    """Loads a pair and decodes a few tokens. What loads must have its config's shapes, and compute with them."""
    folder = folder_of(pair / GGUF) if (pair / GGUF).exists() else pair / "target"
    target = load_target(folder, CPU, no_progress)
    drafter = load_drafter(pair / "drafter", target, no_progress)
    assert all(not tensor.is_meta for model in (target, drafter) for tensor in model.parameters())
    wanted = GenerationSettings(max_new_tokens=6)
    rounds = Decoder(target, drafter, 64).decode(Prompt((2, 105, 9, 11), 4), lambda: wanted)
    emitted = [token for done in rounds if isinstance(done, Round) for token in done.emitted]
    assert emitted and all(0 <= token < target.config.vocab_size for token in emitted)


@pytest.mark.parametrize("damage", [truncate, flip_bit, edit_json, change_tensor])
@pytest.mark.parametrize("kind", KINDS)
def test_damage_is_refused_in_words_or_harmless(
    kind: str,
    damage: Callable[[Path, st.DataObject], None],
    healthy: Path,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    use(healthy / kind)
    counts: Counter[str] = Counter()

    @settings(max_examples=examples(16), suppress_health_check=list(HealthCheck))
    @given(st.data())
    def survives(draw: st.DataObject) -> None:
        with TemporaryDirectory() as folder:
            pair = Path(folder) / "pair"
            shutil.copytree(healthy / kind, pair)
            damage(pair, draw)
            try:
                use(pair)
                counts["harmless"] += 1
            except EngineFailure as failure:
                assert str(failure) and failure.hint
                counts["refused"] += 1

    survives()
    assert counts["refused"], "some damage is none to overlook"
    assert damage is not truncate or not counts["harmless"], "what is cut off is always missed"
