"""Compiled kernels compute what their definitions say, carried out without a GPU; and the machine that does so notices
what is wrong with instructions."""

from __future__ import annotations

import json

import numpy as np
import pytest

from engine.kernels.toolchain.jit import HAS_TRITON
from tests.proofs.kernels.ptx_code import FAR, Code, Memory, Program, SharedMemory
from tests.proofs.kernels.ptx_operations import Array
from tests.proofs.kernels.test_ahead import python

needs_triton = pytest.mark.skipif(not HAS_TRITON, reason="needs Triton")

FURTHEST = 2e-6
"""Of fp32 sums in another order, as a part of the largest: 4e-7. One step of bf16 in all weights would be 6e-4."""
LANES = np.arange(64, dtype=np.uint32)


def errors(*cases: str) -> dict[str, dict[str, float]]:
    """As ``offline_values`` prints them; all but what it says of a short weight are small."""
    found: dict[str, dict[str, float]] = json.loads(python("tests.proofs.kernels.offline_values", *cases, seconds=580))
    assert set(found) == set(cases)
    for case in set(cases) - {"short"}:
        assert found[case] and all(furthest < FURTHEST for furthest in found[case].values()), found[case]
    return found


@needs_triton
@pytest.mark.ci
@pytest.mark.slow
@pytest.mark.timeout(600)
def test_compiled_products_are_what_is_defined() -> None:
    """Every format has its dense product and those of experts, scales that aren't bf16, groups of 128, and products
    whose gate and up one program has; and one reads a weight that ends too early. Experts so shallow that a product is
    one step, as those of the bundled model, were once more than the compiler could do."""
    rarer = "other scales", "fp8 dense", "int4 dense", "mxfp4 dense"
    found = errors("fp8", "int4", "mxfp4", "shallow", "short", *rarer)
    assert all(len(found[case]) >= 4 for case in ("fp8", "int4", "mxfp4"))
    assert "16 bytes past the end of weight" in str(found["short"])


def carried_out(text: str, argument: Array | None = None) -> dict[str, Array]:
    """What instructions leave in the registers of two warps; %lane is a thread's number, %all where an argument is."""
    start = np.full(64, 1 << FAR, np.uint64)
    memory = Memory({} if argument is None else {1: ("an argument", argument.view(np.uint8))})
    program = Program({"%lane": LANES, "%all": start}, memory, SharedMemory(256))
    Code(text, 64).carry_out(program)
    return program.registers


TO_SHARED = "shl.b32 %at, %lane, 2; st.shared.b32 [%at], %lane; "
OTHERS = "xor.b32 %other, %at, 128; "


@pytest.mark.parametrize(
    ("text", "complaint"),
    [
        (TO_SHARED + OTHERS + "ld.shared.b32 %a, [%other];", "no barrier"),
        (TO_SHARED + "bar.sync 0; " + OTHERS + "ld.shared.b32 %a, [%at]; st.shared.b32 [%other], %a;", "no barrier"),
        (TO_SHARED + "ld.shared.b32 %a, [%at+4];", "4 bytes past the end of shared memory"),
        ("mul.wide.u32 %at, %lane, 4; add.s64 %at, %at, %all; ld.global.b32 %a, [%at];", "4 bytes past the end of an"),
        ("ld.global.b32 %a, [%all+-4];", "4 bytes before the start of an argument"),
        ("ld.global.v2.b32 {%a, %b}, [%all+4];", "unaligned in an argument"),
        ("setp.lt.u32 %p, %lane, 40; @%p bra $end; mov.b32 %a, 0; $end:", "threads part ways"),
        ("add.s32 %a, %lane, %b;", "%b"),
    ],
)
def test_what_is_wrong_is_noticed(text: str, complaint: str) -> None:
    with pytest.raises(AssertionError, match=complaint):
        carried_out(text, np.zeros(63, np.uint32))


def test_threads_that_an_instruction_is_not_for_touch_nothing() -> None:
    argument = np.arange(40, dtype=np.uint32)
    text = """
        setp.lt.u32 %p, %lane, 40; mul.wide.u32 %at, %lane, 4; add.s64 %at, %at, %all; mov.b32 %a, 7;
        @%p ld.global.b32 { %a }, [ %at + 0 ];
        add.s32 %b, %a, 1; @%p st.global.b32 [ %at + 0 ], { %b };
    """
    assert np.array_equal(carried_out(text, argument)["%a"], np.where(LANES < 40, LANES, 7))
    assert np.array_equal(argument, np.arange(40) + 1)


def test_warps_exchange_in_shared_memory_behind_a_barrier() -> None:
    found = carried_out(TO_SHARED + OTHERS + "bar.sync 0; ld.shared.b32 %a, [%other];")
    assert np.array_equal(found["%a"], LANES ^ 32)


def test_an_unknown_instruction_is_none() -> None:
    with pytest.raises(NotImplementedError, match=r"sin\.approx\.f32"):
        Code("sin.approx.f32 %a, %b;", 32)


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("cvt.rn.bf16x2.f32 %a, 0f3F808000, 0f3F818000;", 0x3F803F82),  # ties go to what is even
        ("cvt.rn.bf16x2.f32 %a, 0f3F808001, 0f00018000;", 0x3F810002),  # below the normal numbers, too
        ("prmt.b32 %a, 0x03828100, 0x07060504, 0x7A90U;", 0x07FFFF00),
        ("mul.hi.s32 %a, -5, 7;", 0xFFFFFFFF),
        ("mul.hi.u32 %a, -5, 7;", 6),
        ("bfe.s32 %a, 0x00000070, 4, 3;", 0xFFFFFFFF),
        ("bfe.u32 %a, 0x00000070, 5, 8;", 3),
        ("rem.s32 %a, -7, 3;", 0xFFFFFFFF),
        ("shl.b32 %a, 1, 32;", 0),
        ("shr.s32 %a, -8, 40;", 0xFFFFFFFF),
        ("fma.rn.bf16x2 %a, 0x40003F80, 0x40403F81, 0x80003F80;", 0x40C04000),
        ("mov.b64 %w, {7, 9}; mov.b64 {_, %a}, %w;", 9),
    ],
)
def test_operations(text: str, expected: int) -> None:
    assert set(carried_out(text)["%a"].tolist()) == {expected}


@pytest.mark.parametrize(
    ("text", "source"),
    [
        ("bfly.b32 %a, %lane, 5, 31", LANES ^ 5),
        ("up.b32 %a, %lane, 3, 0", np.where(LANES % 32 >= 3, LANES - 3, LANES)),
        ("down.b32 %a, %lane, 3, 31", np.where(LANES % 32 < 29, LANES + 3, LANES)),
        ("idx.b32 %a, %lane, 2, 0x1C1F", LANES // 4 * 4 + 2),
    ],
)
def test_threads_of_a_warp_exchange(text: str, source: Array) -> None:
    assert np.array_equal(carried_out(f"shfl.sync.{text}, -1;")["%a"], source)
