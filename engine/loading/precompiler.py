"""``python -m engine.loading.precompiler``: compiles all that a pair, given as JSON on stdin, launches. The pair is
built on ``meta`` and decodes once, so nothing is listed by hand; ``precompile.py`` runs this process."""

from __future__ import annotations

from collections.abc import Callable
from importlib import import_module
from time import monotonic
from types import ModuleType
from typing import Any, TypeVar

STARTED = monotonic()

import sys  # noqa: E402  (imports are what the clock measures first)
from pathlib import Path  # noqa: E402

import torch  # noqa: E402

from ..decoding.decoder import GPU_PREFILL_CHUNK, Decoder  # noqa: E402
from ..decoding.pass_check import launch_products  # noqa: E402
from ..decoding.round_launches import RoundLaunches  # noqa: E402
from ..kernels.decode.tiling.tiles import DraftTiles, TargetTiles  # noqa: E402
from ..kernels.toolchain.card import Card  # noqa: E402
from ..kernels.toolchain.disk_cache import read_compiler_beside  # noqa: E402
from ..kernels.toolchain.jit import MAX_ROWS  # noqa: E402
from ..kernels.weights.int8 import Int8Weight  # noqa: E402
from ..machine import cores  # noqa: E402
from ..measured.tiles import first_ring  # noqa: E402
from ..models.dflash.weights import hold_in_8_bits  # noqa: E402
from ..models.drafter import Drafter  # noqa: E402
from ..models.host_embedding import hold_embedding_on_host  # noqa: E402
from ..models.target import TargetModel  # noqa: E402
from .checkpoint import compute_dtype, drafter_shape, read_drafter_config, target_on_meta  # noqa: E402
from .choose_rounds import derived_tiles, kept_tiles  # noqa: E402
from .memory_plan import META  # noqa: E402
from .precompile import Order  # noqa: E402

AnOrder = TypeVar("AnOrder", bound=Order)


class NoCompiler(ModuleType):
    """Stands in for torch's compiler in this process: some operations on meta tensors import it, which takes as long as
    torch itself, only to say that it shall leave them alone."""

    @staticmethod
    def disable(operation: Callable[..., Any], *_how: object, **_more: object) -> Callable[..., Any]:
        return operation


CUDA = torch.device("cuda")
"""The device that is compiled for. No tensor is ever put there."""
PROMPT_ROWS = 2 * MAX_ROWS
"""Rows of a short prompt that is tried out beside the longest piece: all others run the machine code of one of the
two."""


def launch_all(order: Order) -> None:
    """Launches everything that a turn may launch, on tensors without memory."""
    target = target_on_meta(Path(order.target), CUDA, weights=order.weights)
    target.prepare()
    config = target.config
    if order.embedding_on_host:
        hold_embedding_on_host(target)
    drafter = None
    if order.drafter is not None:
        draft_config = read_drafter_config(Path(order.drafter), config, Path(order.target))
        drafter = drafter_shape(draft_config, CUDA, order.attention).to(compute_dtype(CUDA))
        drafter.prepare()
        if order.packed_drafter:
            hold_in_8_bits(drafter)
    launch_pair(target, drafter, order)


def launch_pair(
    target: TargetModel,
    drafter: Drafter | None,
    order: Order,
    launches_of: Callable[[Decoder, Int8Weight | None, TargetTiles, DraftTiles], RoundLaunches] = RoundLaunches,
) -> None:
    """Launches what answers of a pair of this shape do. ``launches_of`` makes its rounds."""
    decoder = Decoder(target, drafter, order.context)
    copy = None
    if drafter is not None and order.drafts_in_8_bits:
        copy = Int8Weight.allocate(*drafter.plain_head(target).shape, device=META)
    known = kept_tiles(decoder, order.drafts_in_8_bits)
    launches = launches_of(decoder, copy, *(known or derived_tiles(decoder, order.drafts_in_8_bits)))
    launches.rehearse()  # first what takes longest to compile: passes of one row, then of sixteen
    _rehearse_prompt(decoder, order.chunk or GPU_PREFILL_CHUNK)
    if known is None and not order.card.was_measured:
        _rehearse_tiles(launches, order.card)


def _rehearse_tiles(launches: RoundLaunches, card: Card) -> None:
    """Launches the tiles that will be timed."""
    for launch in first_ring(launches.target.tiles, launches.target.trials(), card):
        launch()
    if launches.drafter is not None:
        for launch in first_ring(launches.drafter.tiles, launches.drafter.trials(), card):
            launch()


@torch.inference_mode()
def _rehearse_prompt(decoder: Decoder, chunk: int) -> None:
    """Launches the products that are tried out first, and two pieces of a prompt, as ``decoder.Turn`` runs them: a
    short one, and the longest, of ``chunk`` rows, with a drafter that takes it in."""
    launch_products(decoder.target)
    drafter = decoder.drafter
    longest = min(chunk, decoder.max_context - PROMPT_ROWS)
    taps = () if drafter is None else drafter.config.target_layer_ids
    for start, rows, tapped in ((0, PROMPT_ROWS, ()), (PROMPT_ROWS, longest, taps)):
        ids = torch.zeros(rows, dtype=torch.int64, device=decoder.device)
        output = decoder.read(ids, start, decoder.cache, tapped)
        decoder.cache.commit(start + rows)
        if drafter is not None and decoder.draft_cache is not None and output.features is not None:
            drafter.ingest(output.features, decoder.draft_cache)


def compile_ordered(kind: type[AnOrder], launch: Callable[[AnOrder], None]) -> None:
    """Compiles what ``launch`` launches for the order that is read from stdin, by as many processes as there are
    cores: all of a start waits for them. Prints the launches, for starts that find all compiled."""
    from ..kernels.toolchain import compile_ahead as ahead  # needs Triton, which not every machine has

    hashing = read_compiler_beside()  # every process that compiles would do so first
    sys.modules.setdefault("torch._dynamo", NoCompiler("torch._dynamo"))
    import_module("torch.fx.experimental.symbolic_shapes")  # operations on meta tensors will
    hashing.join()
    moments = [STARTED, monotonic()]
    message = sys.stdin.read()
    if not message:
        return  # there is nothing to compile
    moments.append(monotonic())
    order = kind.read(message)
    ahead.compile_for(order.card)

    def run() -> None:
        launch(order)
        moments.append(monotonic())

    pieces = ahead.compile_all(run, cores())
    moments.append(monotonic())
    phases = zip(("imports", "waiting for the order", "noting", "still compiling"), moments, moments[1:], strict=False)
    timings = ", ".join(f"{what} {end - begun:.1f} s" for what, begun, end in phases)
    print(*pieces, sep="\n")
    print(f"{len(pieces)} pieces of machine code: {timings}", file=sys.stderr)


if __name__ == "__main__":
    compile_ordered(Order, launch_all)
