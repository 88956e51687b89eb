"""gpt-oss against ``transformers``: logits, taps, answers, numbers of MXFP4; its messages; what is refused of it."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
import torch
from torch import Tensor
from transformers import GptOssForCausalLM, Mxfp4Config

from engine.errors import UsageFailure, WeightsFailure
from engine.kernels.weights.kinds import weight_of
from engine.loading.checkpoint import load_drafter, load_target, read_target_config
from engine.loading.stored_format import stored_format
from engine.models.packed import PackedLinear
from engine.models.target import TargetModel
from engine.tokenization.tokenizer import stream_of
from support.checkpoints import FULL, drafter_config, write_drafter
from tests.engine.conftest import CPU, no_progress
from tests.engine.edited import Tensors, copied, edit_config, edit_tensors, refusal
from tests.engine.models.against_transformers import (
    assert_same,
    assert_same_far_out,
    in_pieces,
)
from tests.engine.models.gpt_oss import PARTS, WINDOW, YARN, random_model, write_target
from tests.engine.models.test_family_chats import TALK, rendered, tokenizer_of
from tests.engine.small_decoders import prompt_ids

TAPS = [0, 1, 2]
LENGTH = 5 * WINDOW + 3
GATE_UP = "model.layers.1.mlp.experts.gate_up_proj"


@dataclass(frozen=True)
class Small:
    folder: Path
    reference: GptOssForCausalLM
    target: TargetModel

    @property
    def path(self) -> Path:
        return self.folder / "target"


@pytest.fixture(scope="module")
def small(tmp_path_factory: pytest.TempPathFactory) -> Small:
    folder = tmp_path_factory.mktemp("gpt_oss")
    reference = write_target(folder / "target")
    return Small(folder, reference, load_target(folder / "target", CPU, no_progress))


@pytest.mark.parametrize("size", [LENGTH, 37, 1], ids=["whole", "chunks", "one-by-one"])
def test_logits_and_taps_equal_those_of_transformers(size: int, small: Small) -> None:
    """Over several windows: a ring overwrites its rows, and pieces are longer than a window."""
    assert_same(small.target, small.reference, torch.tensor(prompt_ids(LENGTH)), [size], TAPS)


def test_transformers_reads_the_same_numbers_from_the_same_file(small: Small) -> None:
    """Its own unpacking, of blocks and scales that this test packed."""
    unpacked = Mxfp4Config(dequantize=True)
    theirs = GptOssForCausalLM.from_pretrained(small.path, quantization_config=unpacked, dtype=torch.float32)
    ours = load_target(small.path, CPU, no_progress, weights="bf16")
    for layer in range(4):
        for part in PARTS:
            expected = theirs.model.layers[layer].mlp.experts.get_parameter(part).mT
            assert torch.equal(ours.get_parameter(f"layers.{layer}.mlp.experts.{part}"), expected)
    held = weight_of(small.target.get_submodule("layers.0.mlp.experts"), "down_proj").values
    assert held.dtype == torch.uint8 and held.shape == (8, 4, 1, 16, 16)


def test_positions_far_out_turn_as_in_transformers(small: Small) -> None:
    target, module = small.target, small.reference.model.rotary_emb
    assert isinstance(target.frequencies, Tensor)
    torch.testing.assert_close(target.frequencies, module.inv_freq, atol=0, rtol=1e-6)
    assert target.config.attention[0].scale == pytest.approx(32**-0.5 * module.attention_scaling**2)
    assert_same_far_out(target, small.reference)


def write_gpt_oss_drafter(folder: Path, **changes: Any) -> None:
    """In the published layout: biases on all projections of attention, YaRN, blocks of 8."""
    rope = {"rope_theta": 1e3, "rope_scaling": YARN, "max_position_embeddings": 8192}
    config = drafter_config([FULL, FULL], TAPS, 4, final_logit_softcapping=None, attention_bias=True, block_size=8)
    write_drafter(folder, {**config, "model_type": "gpt_oss", **rope, **changes})


def test_floats_lie_transposed_and_are_the_same_model(small: Small, tmp_path: Path) -> None:
    """As ``transformers`` saves them, and as copies in bf16 are published; ``fp8`` keeps the biases beside."""
    random_model().save_pretrained(tmp_path)
    edit_config(tmp_path, hidden_act="swish")
    target, ids = load_target(tmp_path, CPU, no_progress), torch.tensor(prompt_ids(20))
    assert stored_format(tmp_path).weights == "bf16"
    both = (in_pieces(each, ids, [20], TAPS) for each in (target, small.target))
    torch.testing.assert_close(*both, atol=1e-5, rtol=0)
    packed = load_target(tmp_path, CPU, no_progress, weights="fp8")
    projection, x = packed.get_submodule("layers.0.self_attn.q_proj"), torch.randn(3, 64)
    assert isinstance(projection, PackedLinear)
    bias = small.reference.model.layers[0].self_attn.q_proj.bias
    torch.testing.assert_close(projection(x), x @ weight_of(projection).restored().T + bias)
    with pytest.raises(UsageFailure, match="isn't in MXFP4"):
        load_target(tmp_path, CPU, no_progress, weights="mxfp4")
    with pytest.raises(UsageFailure, match="weights are MXFP4; rounding them again to INT4"):
        load_target(small.path, CPU, no_progress, weights="int4")


# --- messages

HARMONY = ["<|start|>", "<|channel|>", "<|message|>", "<|end|>", "<|return|>", "<|call|>", "<|constrain|>"]
HALF = "é"
"""Of which the second byte is left out."""
THOUGHT = "<|channel|>analysis<|message|>Hm, <think>Ü\n<|end|>"


@pytest.mark.parametrize(
    ("said", "answer", "thought"),
    [
        (f"{THOUGHT}<|start|>assistant<|channel|>final<|message|>Yes.\n<|return|>", "Yes.\n", "Hm, <think>Ü\n"),
        (
            f"{THOUGHT}<|start|>assistant<|channel|>commentary to=functions.a <|constrain|>json<|message|>{{}}<|call|>",
            "<|channel|>commentary to=functions.a <|constrain|>json<|message|>{}",
            "Hm, <think>Ü\n",
        ),
        (
            "<|channel|>final<|message|>A<|end|><|start|>assistant to=f.a<|channel|>commentary json<|message|>{}",
            "A to=f.a<|channel|>commentary json<|message|>{}",
            "",
        ),
        (
            "<|channel|>analysis to=python code<|message|>1+1<|end|><|start|>assistant<|channel|>analysis<|message|>2",
            "",
            "<|channel|>analysis to=python code<|message|>1+12",
        ),
        ("No header at all", "No header at all", ""),
        (f"<|channel|>final<|message|>A{HALF}<|end|>", "A\N{REPLACEMENT CHARACTER}", ""),
        ("<|channel|>fin", "", ""),
        ("<|channel|>final<|message|>", "", ""),
    ],
    ids=["final", "call", "call in the role", "tool of a thought", "no header", "half a letter", "cut off", "empty"],
)
def test_channels(said: str, answer: str, thought: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("tests.engine.models.test_family_chats.SPECIAL", ["<|begin_of_text|>", *HARMONY, "<|im_end|>"])
    tokenizer = tokenizer_of(tmp_path, "gpt_oss")
    stream, found = stream_of(tokenizer), {"answer": "", "thought": "", "control": ""}
    known = tokenizer.raw_prompt(HALF).ids
    for token in (each for each in tokenizer.raw_prompt(said).ids if each not in known[1:]):
        piece, channel = stream.push(token)
        found[channel] += piece
    assert found == {"answer": answer, "thought": thought, "control": ""}


@pytest.mark.parametrize(("thinking", "effort"), [(True, "medium"), (False, "low")])
def test_its_template(thinking: bool, effort: str, tmp_path: Path) -> None:
    text = rendered(tokenizer_of(tmp_path, "gpt_oss"), [*TALK[:2], *TALK[3:]], thinking)
    assert f"\n\nReasoning: {effort}\n\n# Valid channels: analysis, commentary, final." in text
    assert text.endswith(
        "<|end|><|start|>developer<|message|># Instructions\n\nBe brief.<|end|><|start|>user<|message|>Hi<|end|>"
        "<|start|>user<|message|>Sort it<|end|><|start|>assistant"
    )


# --- bad input

CONFIGS: dict[str, tuple[dict[str, Any], str]] = {
    "no biases": ({"attention_bias": False}, "attention_bias"),
    "clamped elsewhere": ({"swiglu_limit": 6.0}, "swiglu_limit"),
    "another slope": ({"swiglu_alpha": 1.0}, "swiglu_alpha"),
    "another activation": ({"hidden_act": "gelu"}, "'gelu'"),
    "another rotation": ({"rope_scaling": {"rope_type": "longrope"}}, "'longrope'"),
    "no factor": ({"rope_scaling": {"rope_type": "yarn"}}, "factor"),
    "kinds of layers": ({"layer_types": ["full_attention"] * 3}, "a list of 4"),
    "an unknown kind": ({"layer_types": ["linear_attention"] * 4}, "'linear_attention'"),
    "no window": ({"sliding_window": None}, "sliding_window"),
    "no experts": ({"num_local_experts": None}, "num_experts"),
    "more chosen than there are": ({"num_experts_per_tok": 9}, "num_experts_per_tok"),
    "heads that don't divide": ({"num_key_value_heads": 3}, "num_attention_heads"),
    "odd heads": ({"head_dim": 31}, "head_dim"),
    "a stop of no vocabulary": ({"eos_token_id": 512}, "eos_token_id"),
}


@pytest.mark.parametrize("what", CONFIGS)
def test_configs_that_ask_for_something_else_are_refused(what: str, small: Small, tmp_path: Path) -> None:
    changes, word = CONFIGS[what]
    edit_config(copied(small.path, tmp_path), **changes)
    assert word in refusal(lambda: read_target_config(tmp_path))


def without(name: str) -> Callable[[Tensors], object]:
    return lambda those: those.pop(name)


def changed(name: str, how: Callable[[Tensor], Tensor]) -> Callable[[Tensors], object]:
    return lambda those: those.update({name: how(those[name]).contiguous()})


def no_number(scales: Tensor) -> Tensor:
    scales[3, 5, 1] = 255
    return scales


DAMAGE: dict[str, tuple[Callable[[Tensors], object], str]] = {
    "no sinks": (without("model.layers.2.self_attn.sinks"), "lacks 1 tensors.*sinks"),
    "no scales": (without(f"{GATE_UP}_scales"), f"lacks the scales of {GATE_UP}"),
    "no blocks": (without(f"{GATE_UP}_blocks"), f"lacks the blocks of {GATE_UP}"),
    "an expert less": (changed(f"{GATE_UP}_blocks", lambda part: part[1:]), "blocks of .* the config asks for U8"),
    "scales of fewer rows": (changed(f"{GATE_UP}_scales", lambda part: part[:, 1:]), "scales of .* asks for U8"),
    "blocks of 8": (changed(f"{GATE_UP}_blocks", lambda part: part[..., :8]), "blocks of .* asks for U8"),
    "transposed": (changed(f"{GATE_UP}_blocks", lambda part: part.transpose(1, 2)), "blocks of .* asks for U8"),
    "scales in fp32": (changed(f"{GATE_UP}_scales", Tensor.float), "scales of .* are F32"),
    "a scale that is no number": (changed(f"{GATE_UP}_scales", no_number), "not a finite number"),
    "a scale beyond any weight's": (changed(f"{GATE_UP}_scales", lambda part: part.clamp(min=134)), r"2\^7 or more"),
    "in two formats": (lambda those: those.update({GATE_UP: torch.zeros(8, 64, 64)}), "in two formats"),
    "NaN": (
        changed("model.layers.0.self_attn.sinks", lambda part: part * float("nan")),
        "sinks holds values that are no numbers",
    ),
    "floats by rows": (
        lambda those: [
            those.pop(f"{GATE_UP}_blocks"), those.pop(f"{GATE_UP}_scales"),
            those.update({GATE_UP: torch.zeros(8, 32, 64)}),
        ],
        "the config asks for floating-point",
    ),
}  # fmt: skip


@pytest.mark.parametrize("what", DAMAGE)
def test_damaged_weights_are_named(what: str, small: Small, tmp_path: Path) -> None:
    change, sentence = DAMAGE[what]
    edit_tensors(copied(small.path, tmp_path), change)
    with pytest.raises(WeightsFailure, match=sentence) as caught:
        load_target(tmp_path, CPU, no_progress)
    assert caught.value.hint


def test_a_drafter_without_its_biases_is_refused(small: Small, tmp_path: Path) -> None:
    write_gpt_oss_drafter(tmp_path)
    edit_config(tmp_path, attention_bias=False)
    with pytest.raises(WeightsFailure, match=r"has, against its config, 8 tensors.*bias"):
        load_drafter(tmp_path, small.target, no_progress)
