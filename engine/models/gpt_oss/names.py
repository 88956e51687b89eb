"""What checkpoints of gpt-oss call the parameters of the modules."""

from __future__ import annotations

from ..pre_norm import names

THEIRS = {
    "experts.gate_up_bias": "experts.gate_up_proj_bias",  # as they are, they would begin like the weight they belong to
    "experts.down_bias": "experts.down_proj_bias",
    "mlp.gate.": "mlp.router.",
}


def tensor_name(parameter: str) -> str:
    """The checkpoint's name of a parameter such as ``layers.3.self_attn.sinks``."""
    for ours, theirs in THEIRS.items():
        parameter = parameter.replace(ours, theirs)
    return names.tensor_name(parameter)
