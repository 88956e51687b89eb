"""Decides the shape of a new drafter, and writes the ``config.json`` that says so."""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass
from typing import Any

from ...errors import UsageFailure
from ...models.family import TargetConfig
from ...tokenization.tokenizer import ChatTokenizer

BYTES = 2
"""Bytes of a stored number."""
STEP = 32
"""The MLP's width is a multiple of this, the length of a block of packed weights."""
WIDEST_HEAD = 128
THETA = 1_000_000
DEEPEST = 5
"""How many layers are tapped; published drafters tap five or six."""
LAST_TAPPED = 3
"""How many layers below the top the deepest tap is: what comes behind is about the next token alone."""


@dataclass(frozen=True, slots=True)
class DrafterShape:
    """Sizes of a drafter; its width is the target's."""

    layers: int = 5
    nbytes: int | None = None
    """The most bytes of its file, for which its MLPs are as wide as they can be; None: as wide as the target's."""
    block_size: int = 16


def taps_of(depth: int) -> list[int]:
    """The layers of a target to tap, evenly spaced as in the published drafters."""
    last = max(depth - LAST_TAPPED, 0)
    first = min(1, last)
    count = min(DEEPEST, last - first + 1)
    if count == 1:
        return [depth // 2]
    return [round(first + index * (last - first) / (count - 1)) for index in range(count)]


def drafter_json(shape: DrafterShape, target: TargetConfig, embedding_scale: float, mask: int) -> dict[str, Any]:
    """A drafter's ``config.json`` in the published layout. ``mask``: the token that stands for what is to be
    drafted."""
    attention = target.attention[0]
    head_dim = min(attention.head_dim, WIDEST_HEAD)
    # The kernels of rounds need a power of two of queries for each key.
    heads = 1 << (attention.num_heads.bit_length() - 1)
    kv_heads = min(1 << (attention.num_kv_heads - 1).bit_length(), heads)
    taps = taps_of(len(target.layers))
    attending = target.hidden_size * head_dim * (2 * heads + 2 * kv_heads)
    dflash: dict[str, Any] = {
        "block_size": shape.block_size,
        "input_embedding_scale": embedding_scale,
        "mask_token_id": mask,
        "target_layer_ids": taps,
    }
    if target.logit_softcap is not None:
        dflash["final_logit_softcapping"] = target.logit_softcap
    return {
        "architectures": ["DFlashDraftModel"],
        "attention_bias": False,
        "attention_dropout": 0.0,
        "block_size": shape.block_size,
        "dflash_config": dflash,
        "dtype": "bfloat16",
        "eos_token_id": target.stop_token_ids[0] if target.stop_token_ids else None,
        "head_dim": head_dim,
        "hidden_act": "silu",
        "hidden_size": target.hidden_size,
        "initializer_range": 0.02,
        "intermediate_size": _intermediate(shape, target, attending, len(taps)),
        "layer_types": ["full_attention"] * shape.layers,
        "max_position_embeddings": target.max_context,
        "max_window_layers": shape.layers,
        "model_type": "qwen3",
        "num_attention_heads": heads,
        "num_hidden_layers": shape.layers,
        "num_key_value_heads": kv_heads,
        "num_target_layers": len(target.layers),
        "rms_norm_eps": target.rms_norm_eps,
        "rope_scaling": None,
        "rope_theta": THETA,
        "sliding_window": None,
        "tie_word_embeddings": False,
        "use_cache": True,
        "use_sliding_window": False,
        "vocab_size": target.vocab_size,
    }


def mask_token(target: TargetConfig, tokenizer: ChatTokenizer, used: Collection[int]) -> int:
    """A token that no text holds: the tokenizer's own for masks, a special one that conversations don't use, or one
    that the model has and the tokenizer lacks. Raises ``UsageFailure`` where there is none."""
    taken = {*used, *target.stop_token_ids}
    spare = [token for token in tokenizer.special() if token < target.vocab_size and token not in taken]
    if tokenizer.size < target.vocab_size:
        spare.append(tokenizer.size)
    if not spare:
        raise UsageFailure("Every token of this target stands for something: none is left for masks.")
    return spare[0]


def _intermediate(shape: DrafterShape, target: TargetConfig, attending: int, taps: int) -> int:
    width = target.hidden_size
    if shape.nbytes is None:
        moe = target.moe
        return target.intermediate_size or (moe.top_k * moe.intermediate_size if moe is not None else 2 * width)
    spare = shape.nbytes // BYTES - width * width * taps - shape.layers * attending
    norms = (2 * shape.layers + 2) * width + 2 * shape.layers * WIDEST_HEAD
    header = 8192
    fitting = (spare - norms - header) // (3 * width * shape.layers) // STEP * STEP
    if fitting < STEP:
        raise UsageFailure(
            f"{shape.layers} layers of width {width} need more than {shape.nbytes / 1e6:.0f} MB.",
            "Take fewer layers, or allow more.",
        )
    return fitting
