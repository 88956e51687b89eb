"""Fields of a ``config.json`` that no family and no drafter here reads, and that would change what a model computes: a
checkpoint that sets one is refused, since its text would come out, and be worse than it is."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from ..errors import WeightsFailure
from ..files.json_fields import Fields

NEUTRAL: Mapping[str, tuple[Any, ...]] = {
    "is_neox_style": (True,),
    "rope_is_neox_style": (True,),
    "rotary_interleaved": (False,),
    "rope_interleaved": (False,),
    "rope_interleave": (False,),
    "interleaved_rope": (False,),
    "use_rope": (True,),
    "no_rope_layers": ([],),
    "nope_layer_interval": (0,),
    "attn_logit_softcapping": (0, 0.0),
    "attention_multiplier": (),
    "attention_chunk_size": (0,),
    "attention_mode": ("gqa",),
    "attn_temperature_tuning": (False,),
    "embedding_multiplier": (1, 1.0),
    "residual_multiplier": (1, 1.0),
    "logits_scaling": (1, 1.0),
    "logit_scale": (1, 1.0),
    "scale_emb": (1, 1.0),
    "scale_depth": (),
    "clip_qkv": (0,),
    "alibi": (False,),
    "parallel_attn": (False,),
    "use_parallel_residual": (False,),
    "use_double_wide_mlp": (False,),
    "use_bidirectional_attention": (False, "vision"),
    "n_shared_experts": (0,),
    "num_shared_experts": (0,),
    "first_k_dense_replace": (0,),
    "routed_scaling_factor": (1, 1.0),
    "scoring_func": ("softmax",),
    "topk_group": (1,),
    "n_group": (1,),
    "q_lora_rank": (0,),
    "kv_lora_rank": (0,),
}
"""The values of each field with which it changes nothing; null and a missing field never do."""
OF_TARGETS: Mapping[str, tuple[Any, ...]] = {**NEUTRAL, "is_causal": (True,)}
"""The same for targets: of the two, only drafters may see what comes later."""


def refuse_unread(fields: Fields, neutral_values: Mapping[str, tuple[Any, ...]] = NEUTRAL) -> None:
    """Raises ``WeightsFailure`` with the first field that would change what is computed."""
    for name, neutral in neutral_values.items():
        value = fields.raw(name)
        if value is not None and not any(value == each and type(value) is type(each) for each in neutral):
            raise WeightsFailure(
                f"{fields.where} sets {name} to {value!r}: that changes what a model computes, which the engine lacks.",
                "Name another checkpoint.",
            )
