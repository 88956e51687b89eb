"""Makes random weights of any shape on the device: what a pass costs doesn't depend on the weights' values."""

from __future__ import annotations

from collections.abc import Iterator

import torch
from torch import Tensor, nn

from ...commands import WeightFormat
from ...kernels.weights.kinds import MAKERS
from ...kernels.weights.plain import PlainWeight
from ...loading.checkpoint import compute_dtype
from ...models.attention_backends import choose_backends
from ...models.drafter import Drafter
from ...models.merged_weights import Together
from ...models.packed import hold, packed_in
from ...models.target import TargetModel
from .shapes import Shape


def random_tensor(
    name: str, shape: tuple[int, ...], generator: torch.Generator, dtype: torch.dtype, branch_ends: tuple[str, ...]
) -> Tensor:
    """A random parameter that keeps activations near one at any depth. Branches add a twentieth to the residual stream:
    with more, thirty random layers are chaotic and bf16 rounding decorrelates the output. The final norm has either
    sign, or the tied head would repeat the last token."""
    noise = torch.randn(shape, generator=generator, device=generator.device, dtype=dtype)
    parts = name.split(".")
    if name.endswith("layer_scalar"):
        return noise.mul_(0.02).add_(1)
    if len(parts) > 1 and parts[-2] == "norm":
        return noise.mul_(2)
    if name.endswith(branch_ends):
        noise = noise.mul_(0.25).add_(1) if len(shape) == 1 else noise.mul_(1.2 * shape[-1] ** -0.5)
        return noise.mul_(0.05)
    if name.endswith("A_log"):
        return noise.sub_(2)  # heads forget within tens to hundreds of tokens
    if name.endswith("bias"):
        return noise.mul_(0.05)
    if len(shape) == 1:
        return noise.mul_(0.25).add_(1).mul_(0.25 if "k_norm" in name else 1.0)
    return noise.mul_(1.2 * shape[-1] ** -0.5)


def random_pair(
    shape: Shape, device: torch.device, seed: int = 0, weights: WeightFormat = "bf16"
) -> tuple[TargetModel, Drafter | None]:
    """A target, its weights in some format, and its drafter in the device's dtype, ready to run. They are the same for
    the same seed and device."""
    generator = torch.Generator(device).manual_seed(seed)
    dtype = compute_dtype(device)
    with torch.device("meta"):
        target = shape.target.build()
        drafter = None if shape.drafter is None else shape.drafter.build()
    target.use_attention(choose_backends("auto", shape.target.attention, device, dtype))
    packed = set(packed_in(target, weights))
    together = Together(target, target.read_together if device.type == "cuda" else ())
    for name, tensor in _random_tensors(target, generator, dtype, target.branch_ends):
        hold(target, name, MAKERS[weights if name in packed else "bf16"](tensor))
        together.loaded(name)
    target.requires_grad_(False).eval()
    target.prepare()
    if drafter is not None and shape.drafter is not None:
        drafter.use_attention(choose_backends("auto", shape.drafter.layers, device, dtype))
        for name, tensor in _random_tensors(drafter, generator, dtype, drafter.branch_ends):
            hold(drafter, name, PlainWeight(tensor))
        drafter.requires_grad_(False).eval()
        drafter.prepare()
    return target, drafter


def _random_tensors(
    model: nn.Module, generator: torch.Generator, dtype: torch.dtype, branch_ends: tuple[str, ...]
) -> Iterator[tuple[str, Tensor]]:
    """Yields each parameter of a model on ``meta``, one after the other, so that no second copy is ever held."""
    for name, parameter in list(model.named_parameters()):
        yield name, random_tensor(name, tuple(parameter.shape), generator, dtype, branch_ends)
