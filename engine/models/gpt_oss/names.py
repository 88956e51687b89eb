"""What checkpoints of gpt-oss call the parameters of the modules."""

from __future__ import annotations

BIASES = {"experts.gate_up_bias": "experts.gate_up_proj_bias", "experts.down_bias": "experts.down_proj_bias"}
"""Those that would else begin like the weight that they are added to."""


def tensor_name(parameter: str) -> str:
    """Of a parameter such as ``layers.3.self_attn.sinks``."""
    for ours, theirs in BIASES.items():
        parameter = parameter.replace(ours, theirs)
    return parameter if parameter.startswith("lm_head.") else f"model.{parameter}"
