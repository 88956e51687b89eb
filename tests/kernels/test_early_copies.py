"""A weight's first tiles are asked for before a product waits for its rows, and nothing else changes place."""

from __future__ import annotations

import re

import pytest

from engine.kernels.toolchain.early_copies import asked_before_waiting

BEGIN = ".entry k(\n\tld.param.b64 \t%rd1, [k_param_0];\n\tld.param.b64 \t%rd2, [k_param_1];\n"
WAIT = "\tgriddepcontrol.wait; // behind copies %r9\n"
COMMIT = "\tcp.async.commit_group;\n"
END = "\tbra.uni \t$L__BB0_1;\n$L__BB0_1:\n\tcp.async.wait_group \t2;\n\tld.global.b32 %r8, [%rd1];\n\tret;\n"


def copy(step: int, of: int) -> str:
    """A copy of a step's tile: of the rows, 1, or of the weight, 2."""
    target, source = f"%r{10 * step + of}", f"%rd{10 * step + of}"
    asked = f"\tcp.async.cg.shared.global [ {target} + 0 ], [ {source} + 0 ], 0x10, %r7;\n"
    return f"\tadd.s64 \t{source}, %rd{of}, {step};\n{asked}{COMMIT}"


def steps(count: int) -> str:
    return "".join(copy(step, of) for step in range(1, count + 1) for of in (2, 1))


@pytest.mark.parametrize("count", [1, 2, 4])
def test_the_weight_is_asked_for_before_the_wait_and_rows_behind_it(count: int) -> None:
    ptx = asked_before_waiting(BEGIN + WAIT + steps(count) + END)
    before, behind = ptx.split(WAIT)
    assert re.findall(r"cp\.async\.cg.*\[ (%rd\d+)", before) == [f"%rd{10 * step + 2}" for step in range(1, count + 1)]
    assert re.findall(r"cp\.async\.cg.*\[ (%rd\d+)", behind) == [f"%rd{10 * step + 1}" for step in range(2, count + 1)]
    assert before.count(COMMIT) == 2 and ptx.count(COMMIT) == 2 * count, "the loop counts groups"
    assert behind.index("ld.global.cg.v4.b32 {%first0, %first1, %first2, %first3}, [%rd11];") < behind.index(
        "st.shared"
    )
    assert ptx.startswith(BEGIN) and ptx.endswith(END)


@pytest.mark.parametrize(
    "ptx",
    [
        BEGIN + "\tgriddepcontrol.wait;\n" + steps(2) + END,
        BEGIN + WAIT + "\tld.global.b32 %r5, [%rd2];\n" + steps(2) + END,
        BEGIN + WAIT + "\tgriddepcontrol.launch_dependents;\n" + steps(2) + END,
        BEGIN + WAIT + copy(1, 1) + copy(1, 2) + END,
        BEGIN + WAIT + steps(1) + copy(2, 2) + END,
        BEGIN + WAIT + steps(2).replace(".cg", ".ca") + END,
        BEGIN + WAIT + END,
    ],
    ids=["not wanted", "another load", "next let go", "rows first", "rows missing", "other copies", "no copies"],
)
def test_what_is_not_as_expected_stays_as_it_is(ptx: str) -> None:
    assert asked_before_waiting(ptx) == ptx
