"""Checks on this machine that passes of kernels compute what the modules do, layer by layer, for cards on which nobody
has seen them run. It finds a kernel that is wrong, not one that rounds differently."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from functools import partial

import torch
from torch import Tensor

from ..kernels.decode.tiling.tiles import TargetTiles
from ..kernels.prefill.gate import gated_product, reference_gated
from ..kernels.prefill.products import product
from ..kernels.toolchain.jit import MAX_ROWS
from ..kernels.weights.kinds import format_of
from ..kernels.weights.weight import Weight
from ..models.packed import packed_weights
from ..models.target import DecodePass, TargetModel, WidePass
from ..speculation.trees import WIDE_ROWS
from .decoder import Decoder
from .round_launches import RoundLaunches

FAR = 0.25
"""Relative difference of a layer's output from which on a pass is wrong. In bf16 the two ways are about 0.01 apart,
some more where they choose other experts; a wrong kernel is off by as much as the output itself."""
NEAR = 2.0**-6
"""Relative difference that a product may have; two ways are about 0.003 apart."""
MANY_ROWS, SOME_EXPERTS, TIMES = 285, 16, 4
"""Rows of a product that is tried (for each expert: whole tiles, and a part of one), experts that are tried, and
repetitions, since a race is wrong only now and then."""


@torch.inference_mode()
def prompts_depart(decoder: Decoder, text: Sequence[int]) -> str | None:
    """Runs a prompt by the prefill pass and by the modules; returns in words where they differ, None where they agree.
    Forgets the conversation."""
    every, ids = range(len(decoder.target.config.layers)), torch.tensor(text, device=decoder.device)
    wanted = decoder.target(ids, 0, decoder.cache, every).features
    by_kernels = decoder.read(ids, 0, decoder.cache, every).features
    decoder.clear()
    where = _first_far(decoder, by_kernels, wanted)
    return None if where is None else f"kernels read a prompt otherwise than PyTorch, from {where} on"


@torch.inference_mode()
def passes_depart(decoder: Decoder, text: Sequence[int], tiles: TargetTiles | None) -> str | None:
    """Runs 16 rows by the decode pass and by the modules, and one row alone. Returns in words where values differ, or
    where the row alone has other bits than among sixteen; None where all is well. Forgets the conversation."""
    target, cache = decoder.target, decoder.cache
    every = range(len(target.config.layers))
    cursor, rows = (torch.zeros(1, dtype=torch.int32, device=decoder.device) for _ in range(2))
    by_kernels = target.decode_pass(cache, cursor, rows, every, tiles)
    ids = torch.tensor((list(text) * MAX_ROWS)[:MAX_ROWS], device=decoder.device)
    wanted = target(ids, 0, cache, every).features
    by_kernels.ids.copy_(ids)
    rows.fill_(MAX_ROWS)
    by_kernels.forward()
    features = by_kernels.features[:MAX_ROWS].clone()
    logits = None if by_kernels.out.logits is None else by_kernels.out.logits.clone()
    where = _first_far(decoder, features, wanted)
    alike = True
    for row in (0, MAX_ROWS - 1):
        cursor.fill_(row)
        rows.fill_(1)
        by_kernels.ids[0] = ids[row]
        by_kernels.forward(1)
        alike &= torch.equal(by_kernels.features[0], features[row])
        alike &= logits is None or by_kernels.out.logits is None or torch.equal(by_kernels.out.logits[0], logits[row])
    decoder.clear()
    if where is not None:
        return f"kernels compute a pass otherwise than PyTorch, from {where} on"
    return None if alike else "a row alone has other bits than among sixteen"


@torch.inference_mode()
def wide_rows_depart(launches: RoundLaunches, text: Sequence[int]) -> str | None:
    """Compares the bits of a row in a wide pass with those among sixteen; returns a difference in words, or None.
    Forgets the conversation."""
    narrow, wide, state, decoder = launches.target, launches.wide, launches.state, launches.decoder
    assert wide is not None
    ids = torch.tensor((list(text) * launches.widest)[: launches.widest], device=decoder.device)
    fitting = [rows for rows in WIDE_ROWS if rows <= min(launches.widest, decoder.max_context)]

    def ran(launch: Callable[[], None], pass_: DecodePass | WidePass, first: int, rows: int) -> list[Tensor]:
        state.cursor.fill_(first)
        state.width.fill_(rows)
        launches.ids[:rows] = ids[first : first + rows]
        launch()
        logits = pass_.out.token if pass_.out.logits is None else pass_.out.logits
        return [pass_.features[:rows].clone(), logits[:rows].clone()]

    firsts = range(0, max(fitting, default=0), MAX_ROWS)
    each_sixteen = [ran(narrow.forward, narrow, first, MAX_ROWS) for first in firsts]
    wanted = [torch.cat(parts) for parts in zip(*each_sixteen, strict=True)]
    alike = True
    for rows in fitting:
        by_kernels = ran(partial(wide.forward, rows), wide, 0, rows)
        alike &= all(torch.equal(ours, theirs[:rows]) for ours, theirs in zip(by_kernels, wanted, strict=True))
    state.width.zero_()
    decoder.clear()
    return None if alike else "a row has other bits in a pass of more than sixteen"


@torch.inference_mode()
def products_depart(target: TargetModel) -> str | None:
    """Multiplies many rows by the target's packed weights, one of each shape, and by the same weights unpacked. Returns
    a difference between the two, or between repetitions, in words; None where there is none."""
    for weight in _one_of_each_shape(target):
        if not _multiplies_well(weight, target):
            return (
                f"a prompt's products with {format_of(weight).upper()} weights of shape {list(weight.shape)} are wrong"
            )
    return None


@torch.inference_mode()
def launch_products(target: TargetModel) -> None:
    """Launches the kernels of ``products_depart``, to compile them ahead."""
    for weight in _one_of_each_shape(target):
        _try(weight, target, *_rows_for(weight, target.dtype))


def _one_of_each_shape(target: TargetModel) -> Iterator[Weight]:
    """The first packed weight of each shape."""
    found: dict[tuple[int, ...], Weight] = {}
    for weight in packed_weights(target):
        found.setdefault(tuple(weight.shape), weight)
    return iter(found.values())


def _rows_for(weight: Weight, dtype: torch.dtype) -> tuple[Tensor, Tensor | None]:
    """Rows to multiply by a weight, and the row at which each expert's end (None without experts): only the first few
    experts have rows, so that what multiplies is a prompt's own machine code."""
    *experts, _, depth = weight.shape
    device, some = weight.values.device, min([SOME_EXPERTS, *experts]) if experts else 1
    x = torch.randn(MANY_ROWS * some, depth, device=device, dtype=dtype)
    if not experts:
        return x, None
    return x, torch.arange(1, experts[0] + 1, device=device, dtype=torch.int32).clamp(max=some) * MANY_ROWS


def _try(weight: Weight, target: TargetModel, x: Tensor, ends: Tensor | None) -> Tensor:
    """A prompt's product: of experts' gates and ups, which read hidden states, what passes the gate."""
    if _is_gated(weight, target):
        return gated_product(x, weight, ends, target.config.activation)
    return product(x, weight, ends)


def _is_gated(weight: Weight, target: TargetModel) -> bool:
    return len(weight.shape) == 3 and weight.shape[-1] == target.config.hidden_size


def _multiplies_well(weight: Weight, target: TargetModel) -> bool:
    x, ends = _rows_for(weight, target.dtype)
    products = [_try(weight, target, x, ends) for _ in range(TIMES)]
    if ends is None:
        wanted = x @ weight.restored().to(x.dtype).T
    else:
        parts = torch.split(x, MANY_ROWS)
        scales = None if weight.scales is None else weight.scales[: len(parts)]
        whole = type(weight)(weight.values[: len(parts)], scales).restored().to(x.dtype)
        wanted = torch.cat([rows @ each.T for rows, each in zip(parts, whole, strict=True)])
    if _is_gated(weight, target):
        wanted = reference_gated(wanted, target.config.activation)
    error = (products[0].float() - wanted.float()).norm() / wanted.float().norm()
    return bool(error <= NEAR) and all(torch.equal(products[0], again) for again in products[1:])


def _first_far(decoder: Decoder, given: Tensor | None, wanted: Tensor | None) -> str | None:
    """Says which layer is the first whose outputs differ by more than ``FAR``, if any. ``given`` and ``wanted``:
    features of all layers side by side."""
    assert given is not None and wanted is not None
    layers = decoder.target.config.layers
    shape = (len(given), len(layers), -1)
    error = (given.float() - wanted.float()).view(shape).norm(dim=(0, 2)) / wanted.float().view(shape).norm(dim=(0, 2))
    for index, (layer, far) in enumerate(zip(layers, error.tolist(), strict=True)):
        if not far <= FAR:  # true for NaN, too
            return f"layer {index} ({getattr(layer, 'kind', type(layer).__name__)})"
    return None
