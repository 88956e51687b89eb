"""Changes in PTX that ask for the first tiles of a product's weight before the kernel waits for its rows.

A product's loop copies tiles of its weight, and of its rows, into shared memory a few steps ahead. Triton asks for the
first of both where the loop begins, which is behind the wait; of these only the rows need it. A wait of
``early_launch.wait_behind_copies`` is moved behind all of the weight's, in kernels whose first argument are the rows.

A loop waits for its copies by their groups, which come in order: so the second step's group holds what is left of the
weight, and the first step's rows, which come last and are needed first, travel through registers instead."""

from __future__ import annotations

import re

COMMIT = "cp.async.commit_group;"
WAIT = re.compile(r".*griddepcontrol\.wait; // behind copies.*\n")
ROWS = re.compile(r"ld\.param\.b64\s+(%\w+), \[\w+_param_0\];")
END = re.compile(r"^\$L__BB|\bbra\b|\bret;|\bcp\.async\.wait_group", re.MULTILINE)
COPY = re.compile(r"\s*cp\.async\.cg\.shared\.global \[ (%\w+) \+ 0 \], \[ (%\w+) \+ 0 \], 0x10(?:, (%\w+))?;\n")
OTHERS = re.compile(
    r"\b(?:cp\.async\.(?!commit_group)|ld\.(?!param)|st\.|atom\.|red\.|prefetch|mbarrier|griddepcontrol)"
)


def asked_before_waiting(ptx: str) -> str:
    """The PTX, in which such a wait stands behind the weight's copies. Where they aren't found as they are expected it
    stays where it is, which is slower and as right."""
    wait, rows = WAIT.search(ptx), ROWS.search(ptx)
    if wait is None or rows is None or (end := END.search(ptx, wait.end())) is None:
        return ptx
    of_rows = {rows[1]}
    for line in ptx[rows.end() : end.start()].splitlines():
        written, *read = re.findall(r"%\w+", line.partition("//")[0]) or [""]
        if not of_rows.isdisjoint(read):
            of_rows.add(written)
    begun = end.start() if end[0].startswith("$") else ptx.rindex("\n", 0, end.start()) + 1
    lines = ptx[wait.end() : begun].splitlines(keepends=True)
    groups: list[list[re.Match[str]]] = [[]]
    kept: list[str] = []
    for line in lines:
        copy = COPY.match(line)
        if copy is not None:
            groups[-1].append(copy)
        elif COMMIT in line:
            groups.append([])
        elif OTHERS.search(line):
            return ptx
        if (copy is None or copy[2] not in of_rows) and (COMMIT not in line or len(groups) <= 3):
            kept.append(line)
    *groups, behind = groups
    if behind or not groups or len(groups) % 2 or not all(groups):
        return ptx
    if any((copy[2] in of_rows) != bool(number % 2) for number, group in enumerate(groups) for copy in group):
        return ptx
    later = "".join("".join(copy[0] for copy in group) + 2 * f"\t{COMMIT}\n" for group in groups[3::2])
    return ptx[: wait.start()] + "".join(kept) + wait[0] + _through_registers(groups[1], later) + ptx[begun:]


def _through_registers(copies: list[re.Match[str]], meanwhile: str) -> str:
    """Does copies by loads and stores, and something else while they are under way. Of rows that don't count nothing is
    read; they are zero."""
    registers = [", ".join(f"%first{4 * number + word}" for word in range(4)) for number in range(len(copies))]
    loads, stores = "", ""
    for (target, source, size), four in zip((copy.groups() for copy in copies), registers, strict=True):
        if size is not None:
            loads += "".join(f"\tmov.b32 {each}, 0;\n" for each in four.split(", "))
            loads += f"\tsetp.ne.b32 %counts, {size}, 0;\n"
        loads += f"\t{'' if size is None else '@%counts '}ld.global.cg.v4.b32 {{{four}}}, [{source}];\n"
        stores += f"\tst.shared.v4.b32 [{target}], {{{four}}};\n"
    declared = f"\t.reg .pred %counts;\n\t.reg .b32 %first<{4 * len(copies)}>;\n"
    return f"\t{{\n{declared}{loads}{meanwhile}{stores}\t}}\n"
