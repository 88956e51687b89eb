"""Maps the names of the modules' parameters to llama.cpp's names of Gemma 4's tensors."""

from __future__ import annotations

from ..pre_norm import names

LAYER_NAMES = names.OF_GGUF_LAYERS | {
    "post_attention_layernorm.weight": "post_attention_norm.weight",
    "pre_feedforward_layernorm.weight": "ffn_norm.weight",
    "post_feedforward_layernorm.weight": "post_ffw_norm.weight",
    "layer_scalar": "layer_output_scale.weight",
    "router.proj.weight": "ffn_gate_inp.weight",
    "router.scale": "ffn_gate_inp.scale",
    "router.per_expert_scale": "ffn_down_exps.scale",
    "pre_feedforward_layernorm_2.weight": "pre_ffw_norm_2.weight",
    "experts.gate_up_proj": "ffn_gate_up_exps.weight",
    "experts.down_proj": "ffn_down_exps.weight",
    "post_feedforward_layernorm_1.weight": "post_ffw_norm_1.weight",
    "post_feedforward_layernorm_2.weight": "post_ffw_norm_2.weight",
}


def gguf_name(parameter: str) -> str:
    """The GGUF name of a parameter such as ``layers.3.mlp.up_proj.weight``."""
    return names.gguf_name(parameter, in_layers=LAYER_NAMES)
