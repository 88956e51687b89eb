"""``python -m engine.lab.bench.compiling``: compiles what a bench of random weights launches, in another process, as
a chat's kernels are while weights load. Piece by piece, when it is launched, all of it takes a minute."""

from __future__ import annotations

from contextlib import AbstractContextManager, nullcontext
from dataclasses import asdict, dataclass
from functools import partial

import torch

from ...commands import WeightFormat
from ...kernels.toolchain.card import card_of
from ...loading.precompile import Compiling, Order, digest_of, mark_for
from .shapes import Shape, read_shape


@dataclass(frozen=True, slots=True)
class BenchOrder(Order):
    """``target`` is the name of a shape."""

    num_layers: int = 0

    @property
    def digest(self) -> str:
        import triton

        return digest_of(asdict(self), torch.__version__, triton.__version__)


def compiling_beside(
    shape: Shape, context: int, device: torch.device, weights: WeightFormat
) -> AbstractContextManager[Compiling | None]:
    """Compiles what rounds by the device and prompts of a shape launch; None where that was done before."""
    num_layers = len(shape.target.layers)
    order = BenchOrder(shape.name, None, context, True, "auto", card_of(device), weights, num_layers=num_layers)
    mark = mark_for(order.digest)
    if mark.exists():
        return nullcontext()
    process = Compiling(__name__)
    process.begin(order, mark)
    return process


def launch_shape(order: BenchOrder) -> None:
    """Launches, on tensors without memory, what the bench does."""
    from ...loading.checkpoint import compute_dtype, drafter_shape
    from ...loading.memory_plan import META
    from ...loading.precompiler import CUDA, launch_pair
    from ...models.attention_backends import choose_backends
    from ...models.packed import shape_of
    from .routing import force_routing, forced_scores
    from .script import Script, ScriptedLaunches

    shape = read_shape(order.target, order.num_layers)
    target = shape_of(shape.target, compute_dtype(CUDA), order.weights)
    target.use_attention(choose_backends(order.attention, shape.target.attention, CUDA, target.dtype))
    target.prepare()
    if (moe := shape.target.moe) is not None:
        force_routing(target, forced_scores("uniform", len(shape.target.layers), moe.num_experts, META))
    drafter = None
    if shape.drafter is not None:
        drafter = drafter_shape(shape.drafter, CUDA).to(target.dtype)
        drafter.prepare()
    launch_pair(target, drafter, order, partial(ScriptedLaunches, Script(META)))


if __name__ == "__main__":
    from ...loading.precompiler import compile_ordered

    compile_ordered(BenchOrder, launch_shape)
