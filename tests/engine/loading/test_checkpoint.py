"""Loading: what is wrong with a checkpoint is said in words, with a next step, before anything is loaded."""

from __future__ import annotations

import json
import shutil
from collections.abc import Callable
from pathlib import Path

import pytest
import torch
from safetensors.torch import load_file, save_file
from torch import Tensor

from engine.errors import DeviceFailure, EngineFailure, WeightsFailure
from engine.files.shards import missing_weights
from engine.loading.checkpoint import load_drafter, load_target, pick_device
from engine.models.gemma4.modules import Gemma4
from support.checkpoints import FULL, SLIDING, drafter_config, write_drafter
from tests.engine.conftest import CPU, TinyPair, no_progress
from tests.engine.edited import edit_config, edit_tensors

PREFIX = "model.language_model."


@pytest.fixture
def folder(dense_pair: TinyPair, tmp_path: Path) -> Path:
    """A target that may be broken."""
    return Path(shutil.copytree(dense_pair.folder / "target", tmp_path / "target"))


def split_into_shards(folder: Path, count: int) -> None:
    """The same checkpoint as the large ones come: several files and an index."""
    weights = load_file(folder / "model.safetensors")
    (folder / "model.safetensors").unlink()
    names = sorted(weights)
    weight_map = {}
    for shard in range(count):
        file = f"model-{shard + 1:05}-of-{count:05}.safetensors"
        part = {name: weights[name] for name in names[shard::count]}
        save_file(part, folder / file, metadata={"format": "pt"})
        weight_map |= dict.fromkeys(part, file)
    index = {"metadata": {"total_size": sum(t.nbytes for t in weights.values())}, "weight_map": weight_map}
    (folder / "model.safetensors.index.json").write_text(json.dumps(index))


def refusal(folder: Path, load: Callable[[], object] | None = None) -> WeightsFailure:
    """Loading fails with a message and a hint, and no weight was read before it did."""
    progress: list[int] = []
    with pytest.raises(WeightsFailure) as caught:
        (load or (lambda: load_target(folder, CPU, lambda phase, done, total: progress.append(done))))()
    assert str(caught.value) and caught.value.hint
    assert progress == []
    return caught.value


def assert_same_weights(a: Gemma4, b: Gemma4) -> None:
    ours, theirs = a.state_dict(), b.state_dict()
    assert ours.keys() == theirs.keys()
    assert all(torch.equal(ours[name], theirs[name]) for name in ours)


# --- what loads


def test_a_sharded_checkpoint(dense_pair: TinyPair, folder: Path) -> None:
    split_into_shards(folder, 3)
    assert_same_weights(load_target(folder, CPU, no_progress), dense_pair.target)


def test_a_whole_file_beats_an_index_that_was_left_behind(dense_pair: TinyPair, folder: Path) -> None:
    """As for ``transformers``: who saves a model again, merged, leaves the old index and some shards."""
    whole = (folder / "model.safetensors").read_bytes()
    split_into_shards(folder, 3)
    (folder / "model.safetensors").write_bytes(whole)
    (folder / "model-00002-of-00003.safetensors").unlink()
    assert missing_weights(folder) is None
    assert_same_weights(load_target(folder, CPU, no_progress), dense_pair.target)


def test_frequencies_that_old_checkpoints_hold_stay_on_disk(dense_pair: TinyPair, folder: Path) -> None:
    edit_tensors(
        folder, lambda weights: weights.update({f"{PREFIX}layers.0.self_attn.rotary_emb.inv_freq": torch.ones(8)})
    )
    assert_same_weights(load_target(folder, CPU, no_progress), dense_pair.target)


def test_bf16_weights_become_fp32_on_the_cpu(dense_pair: TinyPair, folder: Path) -> None:
    def halve(weights: dict[str, Tensor]) -> None:
        weights.update({name: tensor.bfloat16() for name, tensor in weights.items()})

    edit_tensors(folder, halve)
    target = load_target(folder, CPU, no_progress)
    for name, tensor in target.state_dict().items():
        assert tensor.dtype is torch.float32
        assert torch.equal(tensor, dense_pair.target.state_dict()[name].bfloat16().float()), name


def test_progress_counts_every_byte(folder: Path) -> None:
    told: list[tuple[str, int, int]] = []
    target = load_target(folder, CPU, lambda *args: told.append(args))
    total = sum(parameter.nbytes for parameter in target.parameters())
    assert [done for _, done, _ in told] == sorted(done for _, done, _ in told)
    assert told[-1] == ("target", total, total) and len(told) == len(list(target.parameters()))


# --- what doesn't


def test_a_config_without_weights(folder: Path) -> None:
    (folder / "model.safetensors").unlink()
    assert "model.safetensors" in refusal(folder).hint
    (folder / "config.json").unlink()
    assert "config.json" in str(refusal(folder))


@pytest.mark.parametrize("content", ["", "{", "[1, 2]", "{}", '{"text_config": 3}'])
def test_a_damaged_config(content: str, folder: Path) -> None:
    (folder / "config.json").write_text(content)
    refusal(folder)


@pytest.mark.parametrize("field", ["hidden_size", "layer_types", "rope_parameters", "vocab_size", "sliding_window"])
def test_a_config_that_lacks_a_field(field: str, folder: Path) -> None:
    edit_config(folder, "text_config", **{field: None})
    assert field in str(refusal(folder))


@pytest.mark.parametrize("share", [0, 0.0001, 0.01, 0.3, 0.9, 0.9999])
def test_a_truncated_file(share: float, folder: Path) -> None:
    path = folder / "model.safetensors"
    whole = path.read_bytes()
    path.write_bytes(whole[: int(share * len(whole))])
    assert "damaged or incomplete" in str(refusal(folder))


@pytest.mark.parametrize("content", ["", "{}", "[]", '{"weight_map": 1}'])
def test_a_damaged_index(content: str, folder: Path) -> None:
    split_into_shards(folder, 2)
    (folder / "model.safetensors.index.json").write_text(content)
    refusal(folder)


def test_an_index_that_points_to_the_wrong_shard(folder: Path) -> None:
    split_into_shards(folder, 2)
    path = folder / "model.safetensors.index.json"
    index = json.loads(path.read_text())
    index["weight_map"] = dict.fromkeys(index["weight_map"], "model-00001-of-00002.safetensors")
    path.write_text(json.dumps(index))
    assert "model-00001-of-00002.safetensors" in str(refusal(folder))


@pytest.mark.parametrize("name", ["layers.1.layer_scalar", "embed_tokens.weight", "layers.0.self_attn.v_proj.weight"])
def test_a_missing_tensor(name: str, folder: Path) -> None:
    edit_tensors(folder, lambda weights: weights.__delitem__(PREFIX + name))
    assert PREFIX + name in str(refusal(folder))


@pytest.mark.parametrize(
    ("name", "shape", "words"),
    [
        ("layers.2.self_attn.v_proj.weight", (32, 64), ()),
        ("layers.0.mlp.up_proj.weight", (95, 64), ("[95, 64]", "[96, 64]")),
    ],
    ids=["surplus: keys are values there", "of another shape"],
)
def test_a_tensor_of_another_config(name: str, shape: tuple[int, ...], words: tuple[str, ...], folder: Path) -> None:
    edit_tensors(folder, lambda weights: weights.update({PREFIX + name: torch.zeros(shape)}))
    error = str(refusal(folder))
    assert all(word in error for word in (PREFIX + name, *words))


@pytest.mark.parametrize(
    ("field", "value", "word"), [("model_type", "mamba", "mamba"), ("hidden_size_per_layer_input", 256, "E2B")]
)
def test_another_architecture(field: str, value: object, word: str, folder: Path) -> None:
    edit_config(folder, "text_config", **{field: value})
    assert word in str(refusal(folder))


# --- drafters


def refuse_drafter(folder: Path, target: Gemma4) -> WeightsFailure:
    return refusal(folder, lambda: load_drafter(folder, target, no_progress))


@pytest.mark.parametrize("field", ["block_size", "head_dim", "num_hidden_layers", "dflash_config"])
def test_a_drafter_config_that_lacks_a_field(field: str, dense_pair: TinyPair, tmp_path: Path) -> None:
    write_drafter(tmp_path, drafter_config([SLIDING, FULL], [0, 2], 3))
    edit_config(tmp_path, **{field: None})
    refuse_drafter(tmp_path, dense_pair.target)


# --- devices


@pytest.mark.skipif(torch.cuda.is_available(), reason="says what happens without a CUDA device")
def test_devices_without_a_gpu() -> None:
    assert pick_device("auto") == pick_device("cpu") == CPU
    with pytest.raises(DeviceFailure) as caught:
        pick_device("cuda")
    assert caught.value.hint and isinstance(caught.value, EngineFailure)
