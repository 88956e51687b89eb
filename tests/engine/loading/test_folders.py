"""Checkpoints as people really have them: saved alone or bare, in folders of their own, or with something else in the
folder, which is said."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
import torch
from safetensors.torch import load_file, save_file

from engine.errors import UsageFailure, WeightsFailure
from engine.files.headers import OTHER_FILES, read_headers
from engine.files.shards import INDEX
from engine.hub.pairs import PairFolders
from engine.loading.checkpoint import load_target
from engine.loading.layout import HEAD
from engine.loading.left_out import left_out
from tests.engine.conftest import no_progress
from tests.engine.models.pre_norm import write_target

PAIR = Path(__file__).parents[3] / "engine" / "demo" / "pair" / "target"
CPU = torch.device("cpu")
NAMES = "model.language_model."


def written(folder: Path, begin: str, **flags: object) -> Path:
    """The bundled pair's target as ``save_pretrained`` writes the text model alone, its names beginning with ``begin``,
    and its config's fields changed. The config begins with a mark, as editors on Windows write one."""
    folder.mkdir()
    config = json.loads((PAIR / "config.json").read_text())["text_config"]
    (folder / "config.json").write_text(
        json.dumps({**config, "architectures": ["Gemma4ForCausalLM"], **flags}), "utf-8-sig"
    )
    tensors = load_file(PAIR / "model.safetensors")
    save_file({begin + name.removeprefix(NAMES): each for name, each in tensors.items()}, folder / "model.safetensors")
    return folder


@pytest.mark.parametrize("begin", ["model.", "", "language_model.model."])
def test_a_text_model_saved_alone_has_the_same_weights(tmp_path: Path, begin: str) -> None:
    ours, theirs = (load_target(folder, CPU, no_progress) for folder in (written(tmp_path / "flat", begin), PAIR))
    for name, weight in theirs.named_parameters():
        assert torch.equal(ours.get_parameter(name), weight), name


def test_shards_may_lie_in_folders_of_the_checkpoint(tmp_path: Path) -> None:
    folder = written(tmp_path / "flat", "model.")
    names = list(load_file(folder / "model.safetensors"))
    (folder / "weights").mkdir()
    (folder / "model.safetensors").rename(folder / "weights" / "all.safetensors")
    for place, there in (
        ("weights/all.safetensors", True),
        ("./weights/all.safetensors", True),
        ("../all.safetensors", False),
        ("/all.safetensors", False),
    ):
        (folder / INDEX).write_text(json.dumps({"weight_map": dict.fromkeys(names, place)}))
        if there:
            assert read_headers(folder).keys() == set(names)
        else:
            with pytest.raises(WeightsFailure, match="which file holds which"):
                read_headers(folder)


def test_what_lacks_its_head_or_holds_an_adapter_is_told_as_such(tmp_path: Path) -> None:
    """An adapter beside whole weights is told of, and left out."""
    write_target(tmp_path, "llama", num_hidden_layers=1)
    weights, lora = tmp_path / "model.safetensors", "model.layers.0.self_attn.q_proj.lora_A.weight"
    tensors = load_file(weights)
    save_file({("language_model." * (name != HEAD)) + name: each for name, each in tensors.items()}, weights)
    assert torch.equal(load_target(tmp_path, CPU, no_progress).head, tensors[HEAD])
    head = {HEAD: tensors.pop(HEAD)}
    for added, said in (({}, "no output head"), (head | {lora: torch.ones(1)}, lora)):
        save_file(tensors | added, weights)
        with pytest.raises(WeightsFailure, match=said):
            load_target(tmp_path, CPU, no_progress)
    save_file(tensors | head, weights)
    (tmp_path / "adapter_model.safetensors").touch()
    assert "adapter_model.safetensors is not applied" in left_out(PairFolders("", tmp_path, None, None))
    weights.unlink(), weights.mkdir()
    with pytest.raises(WeightsFailure, match="can't be read: it is a folder"):
        read_headers(tmp_path)


@pytest.mark.parametrize(("pattern", "what", "hint"), OTHER_FILES, ids=lambda value: value[:20])
def test_a_folder_with_other_weights_is_told_what_it_holds(tmp_path: Path, pattern: str, what: str, hint: str) -> None:
    name = pattern.replace("*", "-1") if "." in pattern else f"{pattern.rstrip('*')}.00.pth"
    (tmp_path / name).touch()
    with pytest.raises(WeightsFailure, match=name) as caught:
        read_headers(tmp_path)
    assert what in str(caught.value) and caught.value.hint == hint and "again" not in hint


def test_names_of_another_program_are_told_as_such(tmp_path: Path) -> None:
    with pytest.raises(WeightsFailure, match="names its tensors otherwise") as caught:
        load_target(written(tmp_path / "odd", "transformer.h."), CPU, no_progress)
    assert "download" not in caught.value.hint.lower()


def test_a_head_of_its_own_behind_a_tied_config_is_refused(tmp_path: Path) -> None:
    folder = written(tmp_path / "flat", "model.")
    tensors = load_file(folder / "model.safetensors")
    head = tensors["model.embed_tokens.weight"].clone()
    for own in (False, True):
        head[0] += own
        save_file({**tensors, "lm_head.weight": head}, folder / "model.safetensors")
        if own:
            with pytest.raises(WeightsFailure, match="output head of its own"):
                load_target(folder, CPU, no_progress)
        else:
            load_target(folder, CPU, no_progress)


def test_widths_that_no_packed_weight_has_are_told(tmp_path: Path) -> None:
    from transformers import LlamaConfig, LlamaForCausalLM

    config = LlamaConfig(
        hidden_size=80, intermediate_size=176, num_hidden_layers=1, num_attention_heads=4, num_key_value_heads=2,
        vocab_size=64, head_dim=20, max_position_embeddings=64,
    )  # fmt: skip
    LlamaForCausalLM(config).to(torch.bfloat16).save_pretrained(tmp_path)
    for weights in ("int4", "fp8"):
        with pytest.raises(UsageFailure, match=f"held in {weights.upper()}"):
            load_target(tmp_path, CPU, no_progress, weights=weights)  # type: ignore[arg-type]
    load_target(tmp_path, CPU, no_progress)
