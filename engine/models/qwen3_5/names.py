"""What checkpoints of Qwen3.5 call the parameters of the modules."""

from __future__ import annotations


def tensor_name(parameter: str) -> str:
    """Of a parameter such as ``layers.3.mlp.up_proj.weight``, beside a model of pictures."""
    return parameter if parameter.startswith("lm_head.") else f"model.language_model.{parameter}"
