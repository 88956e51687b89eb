"""``python -m tests.proofs.kernels.offline_values [CASE ...]`` carries out products of packed weights as they are
compiled for Hopper, and prints (JSON) by case and kernel how far they are from their definitions: the largest
difference that rounding a result to its type doesn't explain, as a part of the largest result. Without a case:
all of them.

Fails where a row has other bits alone than among others, where a row that doesn't count is written, and where memory
is read that is no argument's; except for ``short``, which says what is then said. Shapes cross edges: the last tile is
half a one, and the last step of a depth not a whole one.
"""

from __future__ import annotations

import json
import sys
from collections.abc import Callable
from dataclasses import replace
from functools import partial

import torch
from torch import Tensor

from engine.kernels.decode.dense import gate_up, project, reference_project
from engine.kernels.decode.experts import DenseDown, expert_down_rows, expert_gate_up_rows
from engine.kernels.decode.router import Assignment, RouterRows, SplitScratch, gate_up_and_route, reference_assignment
from engine.kernels.decode.tiles import Tiles
from engine.kernels.reference.moe import gated
from engine.kernels.toolchain.card import HOPPER
from engine.kernels.weights.fp8 import Fp8Weight
from engine.kernels.weights.int4 import Int4Weight
from engine.kernels.weights.mxfp4 import Mxfp4Weight
from engine.kernels.weights.plain import PlainWeight
from engine.kernels.weights.weight import Weight
from engine.layer_config import Activation
from tests.kernels.tensors import CPU, noise
from tests.proofs.kernels.offline import Launch, record
from tests.proofs.kernels.ptx_machine import run

EXPERTS, TOP_K, INTER, OUTPUTS = 7, 2, 48, 80
DEPTH, HIDDEN = 1504, 480
UNTOUCHED = 7.0
ALL, FIRST = slice(None), slice(1)
Make = Callable[[Tensor], Weight]
Errors = dict[str, float]


def rows_of(depth: int, rows: int = 16) -> Tensor:
    return noise(rows, depth, seed=1).bfloat16()


def untouched(*shape: int, dtype: torch.dtype = torch.float32) -> Tensor:
    return torch.full(shape, UNTOUCHED, dtype=dtype)


def int4_with(scales: torch.dtype, group: int, weight: Tensor) -> Int4Weight:
    """Scales that bf16 doesn't hold."""
    copy = Int4Weight.of(weight, group)
    assert copy.scales is not None
    return Int4Weight(copy.values, (copy.scales.float() * 1.01).to(scales))


def launched(call: Callable[[], None]) -> Launch:
    """The one launch that a wrapper makes."""
    with record(HOPPER) as launches:
        call()
    (launch,) = launches
    return launch


def error(found: Tensor, expected: Tensor) -> float:
    rounding = 2**-8 * expected.abs() if found.dtype == torch.bfloat16 else 0
    return float(((found.float() - expected).abs() - rounding).max().clamp(min=0) / expected.abs().max())


def assert_alone(alone: Tensor, among: Tensor, *part: slice) -> None:
    """The part that is one row's has the same bits as among others, and no more is written."""
    expected = torch.full_like(alone, UNTOUCHED)
    expected[part] = among[part]
    assert torch.equal(alone, expected), "a row alone"


def project_errors(make: Make, stages: int, depth: int = DEPTH, bias: bool = False) -> Errors:
    """Two splits of three steps; the last one is short."""
    tiles, x, weight = Tiles(32, 256, splits=2, stages=stages), rows_of(depth), make(noise(OUTPUTS, depth) / 8)
    added = noise(OUTPUTS).bfloat16() if bias else None
    among, alone = untouched(2, 16, OUTPUTS), untouched(2, 16, OUTPUTS)
    run(launched(lambda: project(x, weight, among, tiles, bias=added)))
    run(launched(lambda: project(x, weight, alone, tiles, 1, added)))
    assert_alone(alone, among, ALL, FIRST)
    expected = reference_project(x, weight)
    return {f"project, {stages} stages": error(among.sum(0), expected if added is None else expected + added)}


def expert_errors(make: Make, activation: Activation, hidden: int = HIDDEN, in_eights: bool = False) -> Errors:
    """Both products of five experts for 1 to 12 rows, the first one beside a dense product. A program has several
    experts."""
    scores = noise(16, EXPERTS, seed=3) - torch.arange(EXPERTS) ** 2 / 20
    scores[:, 4] = -100
    many, one = reference_assignment(scores, TOP_K), reference_assignment(scores[:1], TOP_K)
    x, inner, beside = rows_of(hidden), rows_of(hidden, 16 * TOP_K), make(noise(INTER, hidden, seed=4) / 8)
    both, down = (make(noise(EXPERTS, columns, hidden) / 8) for columns in (2 * INTER, OUTPUTS))
    clamped = activation == "clamped_silu"
    added, more = (noise(EXPERTS, columns).bfloat16() if clamped else None for columns in (2 * INTER, OUTPUTS))
    tiles, down_tiles = Tiles(16, 256, stages=2, programs=6, turned=True), Tiles(32, 256, stages=2, programs=6)

    def outputs(assignment: Assignment, rows: int) -> tuple[Tensor, Tensor, Tensor]:
        act, out, sums = untouched(16 * TOP_K, INTER).bfloat16(), untouched(16, TOP_K, OUTPUTS), untouched(2, 16, INTER)
        dense = DenseDown(x, beside, sums, Tiles(16, 256, splits=2))
        run(launched(lambda: expert_gate_up_rows(x, both, assignment, act, tiles, dense, rows, activation, added)))
        run(launched(lambda: expert_down_rows(inner, down, assignment, out, down_tiles, rows, more)))
        return act, out, sums

    (act, out, sums), alone = outputs(many, 16), outputs(one, 1)
    assert_alone(alone[0], act, slice(TOP_K))
    assert_alone(alone[1], out, FIRST)
    assert_alone(alone[2], sums, ALL, FIRST)
    if in_eights:
        of_eight = reference_assignment(scores, TOP_K, most=8)
        assert of_eight.experts[0] == of_eight.experts[1], "the first expert has two"
        other_act, other_out, _ = outputs(of_eight, 16)
        assert torch.equal(other_act, act) and torch.equal(other_out, out), "in entries of eight"
    acts, outs = torch.empty(16 * TOP_K, INTER), torch.empty(16 * TOP_K, OUTPUTS)
    for expert, pairs in zip(many.experts.tolist(), many.pairs, strict=True):
        for pair in pairs[pairs >= 0].tolist():
            products = reference_project(x[pair // TOP_K], _of(both, expert))
            acts[pair] = gated(products if added is None else products + added[expert], activation)
            products = reference_project(inner[pair], _of(down, expert))
            outs[pair] = products if more is None else products + more[expert]
    return {
        "expert gate and up": error(act, acts),
        "dense beside": error(sums.sum(0), reference_project(x, beside)),
        "expert down": error(out, outs.view(16, TOP_K, OUTPUTS) * many.weights[..., None]),
    }


def _of(weight: Weight, expert: int) -> Weight:
    assert weight.scales is not None
    return type(weight)(weight.values[expert], weight.scales[expert])


def dense_errors(make: Make) -> Errors:
    """Gate and up of a dense product, alone and beside the router, whose product is one of bf16."""
    x, weight, tiles = rows_of(HIDDEN), make(noise(2 * INTER, HIDDEN) / 8), Tiles(32, 256, stages=2)
    routes, found = noise(8, HIDDEN, seed=5).bfloat16(), Assignment.allocate(8, TOP_K, CPU)
    alone, beside = (untouched(16, INTER).bfloat16() for _ in range(2))
    count = torch.full((1,), 16, dtype=torch.int32)
    router = RouterRows(x, routes, None, None, count, found, Tiles(16, 256, splits=2))
    scratch = SplitScratch.allocate(router.tiles, 8, CPU)
    run(launched(lambda: gate_up(x, weight, alone, "silu", tiles)))
    run(launched(lambda: gate_up_and_route(x, weight, beside, tiles, router, scratch)))
    scores, products = scratch.scores.sum(0), reference_project(x, weight)
    chosen = reference_assignment(scores, TOP_K)
    assert torch.equal(found.experts, chosen.experts) and not scratch.arrived.any()
    return {
        "gate and up": error(alone, gated(products, "silu")),
        "gate and up beside the router": error(beside, gated(products, "gelu_tanh")),
        "scores": error(scores, reference_project(x, PlainWeight(routes))),
        "what experts count": error(found.weights, chosen.weights),
    }


def said_of_a_short_weight() -> str:
    """Where it ends a panel too early."""
    x, weight, out = rows_of(DEPTH), Fp8Weight.of(noise(OUTPUTS, DEPTH)), untouched(2, 16, OUTPUTS)
    launch = launched(lambda: project(x, weight, out, Tiles(32, 256, splits=2, stages=3)))
    try:
        run(replace(launch, arguments=launch.arguments | {"weight": weight.values[:-1]}))
    except AssertionError as said:
        return str(said)
    return "nothing"


def _fp8() -> Errors:
    return project_errors(Fp8Weight.of, 3) | expert_errors(Fp8Weight.of, "gelu_tanh")


def _int4() -> Errors:
    return project_errors(Int4Weight.of, 3) | expert_errors(Int4Weight.of, "silu", in_eights=True)


def _mxfp4() -> Errors:
    return project_errors(Mxfp4Weight.of, 2, bias=True) | expert_errors(Mxfp4Weight.of, "clamped_silu")


def _other_scales() -> Errors:
    """In groups of 128, which depths must be made of, and in fp16."""
    wide = partial(int4_with, torch.float32, 128)
    return project_errors(partial(int4_with, torch.float16, 32), 2) | project_errors(wide, 3, depth=1408)


def _shallow() -> Errors:
    """Of a model as small as the bundled one: a product is one step."""
    return expert_errors(Int4Weight.of, "silu", hidden=256)


CASES: dict[str, Callable[[], Errors | str]] = {
    **{"fp8": _fp8, "int4": _int4, "mxfp4": _mxfp4, "other scales": _other_scales},
    **{"fp8 dense": partial(dense_errors, Fp8Weight.of), "int4 dense": partial(dense_errors, Int4Weight.of)},
    **{"mxfp4 dense": partial(dense_errors, Mxfp4Weight.of), "shallow": _shallow, "short": said_of_a_short_weight},
}


if __name__ == "__main__":
    print(json.dumps({case: CASES[case]() for case in sys.argv[1:] or CASES}))
