"""What checkpoints of Qwen3.5 call the parameters of the modules."""

from __future__ import annotations


def tensor_name(parameter: str) -> str:
    """The name of a parameter such as ``layers.3.mlp.up_proj.weight`` in checkpoints that also hold a model of
    pictures."""
    return parameter if parameter.startswith("lm_head.") else f"model.language_model.{parameter}"
