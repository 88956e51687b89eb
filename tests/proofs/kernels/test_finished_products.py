"""Loops that must finish their products before they begin anew, and those that are left as they are."""

from __future__ import annotations

import re

import pytest

from engine.kernels.toolchain.jit import HAS_TRITON
from tests.proofs.kernels.compiling import python

pytestmark = pytest.mark.skipif(not HAS_TRITON, reason="needs Triton")

FACTOR = "\twgmma.mma_async.sync.aligned.m64n64k16.f32.bf16.bf16 {%r1,%r2}, {%r3,%r4}, %rd1, %p1, 1, 1, 0;\n"
SHARED = "\twgmma.mma_async.sync.aligned.m64n64k16.f32.bf16.bf16 {%r1,%r2}, %rd2, %rd1, %p1, 1, 1, 0, 0;\n"
LEFT = "\twgmma.wait_group.sync.aligned 3;\n"
DONE = "\twgmma.wait_group.sync.aligned 0;\n"


def loop(label: str, body: str) -> str:
    return f"{label}:\n{body}\t@%p2 bra \t{label};\n"


def test_products_are_finished_before_a_loop_begins_anew() -> None:
    from engine.kernels.toolchain.finished_products import finished_in_loops

    first, second = loop("$L__BB0_1", FACTOR + LEFT), loop("$L__BB0_12", FACTOR + LEFT + SHARED + LEFT)
    found = finished_in_loops(f"\tbra \t$L__BB0_12;\n{first}\tret;\n{second}")
    assert found == (
        f"\tbra \t$L__BB0_12;\n{loop('$L__BB0_1', FACTOR + LEFT + DONE)}\tret;\n"
        f"{loop('$L__BB0_12', FACTOR + LEFT + SHARED + LEFT + DONE)}"
    )


@pytest.mark.parametrize("body", [SHARED + LEFT, FACTOR + DONE, "\tadd.s32 %r1, %r1, 1;\n"])
def test_other_kernels_stay_as_they_are(body: str) -> None:
    from engine.kernels.toolchain.finished_products import finished_in_loops

    assert finished_in_loops(loop("$L__BB0_1", body)) == loop("$L__BB0_1", body)


FENCE, COMMIT = "\twgmma.fence.sync.aligned;\n", "\twgmma.commit_group.sync.aligned;\n"
UNPACK = "\tld.shared.b32 \t%r5, [%r6];\n"
WAIT = "\t// wait for regs: %r1,%r2\n" + DONE


def test_what_a_product_does_not_need_comes_before_its_wait() -> None:
    from engine.kernels.toolchain.finished_products import finished

    product = FENCE + FACTOR + COMMIT
    found = finished(loop("$L__BB0_1", product + WAIT + UNPACK + product))
    late = product + WAIT.removesuffix(DONE) + UNPACK + DONE + product + DONE
    assert found == loop("$L__BB0_1", late)


@pytest.mark.parametrize(
    "between",
    [
        "\tadd.f32 %r5, %r1, %r2;\n",
        "\tbar.sync 0;\n",
        "\tst.shared.b32 [%r6], %r5;\n",
        "\tcp.async.cg.shared.global [%r6], [%rd2], 16;\n",
        "$L__BB0_2:\n",
    ],
)
def test_nothing_is_moved_that_needs_the_sums_or_writes_what_is_read(between: str) -> None:
    from engine.kernels.toolchain.finished_products import waiting_late

    ptx = FENCE + FACTOR + COMMIT + WAIT + between + FENCE + FACTOR + COMMIT
    assert waiting_late(ptx) == ptx


def test_a_product_with_other_sums_is_waited_for_where_it_was() -> None:
    from engine.kernels.toolchain.finished_products import waiting_late

    ptx = FENCE + FACTOR + COMMIT + WAIT + UNPACK + FENCE + FACTOR.replace("{%r1,%r2}", "{%r8,%r9}") + COMMIT
    assert waiting_late(ptx) == ptx


@pytest.mark.slow
def test_what_this_triton_writes_is_recognised() -> None:
    """Copies of a row alone stand before its wait, and loops finish their products: 3.6 and 3.7.1 write both alike."""
    said = re.findall(r"\d+", python("tests.proofs.kernels.offline_changes", seconds=600))
    copies, loops, finished = map(int, said)
    assert copies > 0 and loops == finished > 0
