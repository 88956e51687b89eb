"""Random weights at any shape, made on the device: what a pass costs doesn't depend on what the weights say."""

from __future__ import annotations

from typing import TypeVar

import torch
from torch import Tensor, nn

from ..loading.checkpoint import compute_dtype
from ..models.attention_backends import choose_backends
from ..models.dflash.modules import DFlashDrafter
from ..models.target import TargetModel
from .shapes import Shape

Model = TypeVar("Model", bound=nn.Module)


def random_tensor(
    name: str, shape: tuple[int, ...], generator: torch.Generator, dtype: torch.dtype, branch_ends: tuple[str, ...]
) -> Tensor:
    """A parameter that keeps activations near one at any depth. Branches add a twentieth to the residual stream: with
    more, thirty random layers are chaotic and bf16 rounding decorrelates the output. The final norm has either sign, or
    the tied head would repeat the last token."""
    noise = torch.randn(shape, generator=generator, device=generator.device, dtype=dtype)
    parts = name.split(".")
    if name.endswith("layer_scalar"):
        return noise.mul_(0.02).add_(1)
    if len(parts) > 1 and parts[-2] == "norm":
        return noise.mul_(2)
    if name.endswith(branch_ends):
        noise = noise.mul_(0.25).add_(1) if len(shape) == 1 else noise.mul_(1.2 * shape[-1] ** -0.5)
        return noise.mul_(0.05)
    if len(shape) == 1:
        return noise.mul_(0.25).add_(1).mul_(0.25 if "k_norm" in name else 1.0)
    return noise.mul_(1.2 * shape[-1] ** -0.5)


def random_pair(shape: Shape, device: torch.device, seed: int = 0) -> tuple[TargetModel, DFlashDrafter | None]:
    """A target and its drafter in the device's dtype, ready to run; the same for the same seed and device."""
    generator = torch.Generator(device).manual_seed(seed)
    dtype = compute_dtype(device)
    with torch.device("meta"):
        target = shape.target.build()
        drafter = None if shape.drafter is None else shape.drafter.build()
    target.use_attention(choose_backends("auto", shape.target.attention, device, dtype, "attention_backend"))
    _fill(target, generator, dtype, target.branch_ends).prepare()
    if drafter is not None and shape.drafter is not None:
        drafter.use_attention(choose_backends("auto", shape.drafter.layers, device, dtype, "attention_backend"))
        _fill(drafter, generator, dtype, drafter.branch_ends).prepare()
    return target, drafter


def _fill(model: Model, generator: torch.Generator, dtype: torch.dtype, branch_ends: tuple[str, ...]) -> Model:
    """Replaces the parameters of a model on ``meta``, one after the other: no second copy is ever held."""
    for name, parameter in list(model.named_parameters()):
        owner, _, leaf = name.rpartition(".")
        tensor = random_tensor(name, tuple(parameter.shape), generator, dtype, branch_ends)
        setattr(model.get_submodule(owner), leaf, nn.Parameter(tensor, requires_grad=False))
    model.requires_grad_(False).eval()
    return model
