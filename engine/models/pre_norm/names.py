"""Maps the names of the modules' parameters to those in checkpoints for ``transformers`` and in GGUF files of
llama.cpp."""

from __future__ import annotations

from collections.abc import Mapping

OF_GGUF = {
    "embed_tokens.weight": "token_embd.weight",
    "norm.weight": "output_norm.weight",
    "lm_head.weight": "output.weight",
}
OF_GGUF_LAYERS = {
    "input_layernorm.weight": "attn_norm.weight",
    "self_attn.q_proj.weight": "attn_q.weight",
    "self_attn.k_proj.weight": "attn_k.weight",
    "self_attn.v_proj.weight": "attn_v.weight",
    "self_attn.o_proj.weight": "attn_output.weight",
    "self_attn.q_norm.weight": "attn_q_norm.weight",
    "self_attn.k_norm.weight": "attn_k_norm.weight",
    "post_attention_layernorm.weight": "ffn_norm.weight",
    "mlp.gate_proj.weight": "ffn_gate.weight",
    "mlp.up_proj.weight": "ffn_up.weight",
    "mlp.down_proj.weight": "ffn_down.weight",
}


def tensor_name(parameter: str) -> str:
    """The checkpoint's name of a parameter such as ``layers.3.mlp.up_proj.weight``."""
    return parameter if parameter.startswith("lm_head.") else f"model.{parameter}"


def gguf_name(parameter: str, in_layers: Mapping[str, str] = OF_GGUF_LAYERS) -> str:
    """The name in a GGUF file of a parameter such as ``layers.3.mlp.up_proj.weight``. ``in_layers``: names within a
    layer; the default is for a pre-norm decoder without experts."""
    if parameter in OF_GGUF:
        return OF_GGUF[parameter]
    _, layer, rest = parameter.split(".", 2)
    return f"blk.{layer}.{in_layers[rest]}"
