"""Compiles kernels for any card on a machine without one, exactly as their launches would.

``record`` swaps Triton's launcher for a note-taker: the real wrappers run on ``meta`` tensors of the real shapes, and
every launch is kept with its types, constants and options. ``compile_launch`` then turns one into machine code. Needs a
process without ``TRITON_INTERPRET``.
"""

from __future__ import annotations

import re
import subprocess
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import torch
import triton
from triton.backends.compiler import GPUTarget
from triton.compiler import ASTSource, CompiledKernel, make_backend
from triton.runtime.driver import driver
from triton.runtime.jit import JITFunction

from engine.kernels.toolchain.card import Card
from engine.kernels.toolchain.compile_ahead import WARP_SIZE, compile_for

TYPES = {
    torch.bfloat16: "bf16",
    torch.float16: "fp16",
    torch.float32: "fp32",
    torch.float64: "fp64",
    torch.int8: "i8",
    torch.int32: "i32",
    torch.int64: "i64",
    torch.uint8: "u8",
    torch.uint16: "u16",
    torch.uint32: "u32",
    torch.uint64: "u64",
    torch.bool: "i1",
}
SAME_PTX = {80: 86, 89: 86}
"""Cards for which Triton writes what it writes for another."""
WITNESSES = {"_multiply_many", "_attend_one_row"}
"""Kernels whose first launch is compiled for these, too, to see that: one unpacks and multiplies, one attends."""
OPTIONS = ("num_warps", "num_stages", "num_ctas", "maxnreg", "launch_pdl", "enable_fp_fusion")
NEVER_WAITS = "does not wait"

_known: dict[tuple[int, str], CompiledKernel] = {}
_witnesses: set[str] = set()


@dataclass(frozen=True)
class Launch:
    """One launch as a wrapper made it."""

    kernel: Any
    grid: tuple[int, ...]
    arguments: dict[str, Any]
    options: dict[str, int]

    @property
    def name(self) -> str:
        return str(self.kernel.fn.__name__)

    @property
    def key(self) -> str:
        """Equal for launches that share machine code."""
        return repr((self.name, signature_of(self), self.options))


@dataclass(frozen=True)
class Compiled:
    """What the compiler made of a launch."""

    name: str
    grid: tuple[int, ...]
    registers: int
    local: int
    """Bytes of local memory per thread: spilled registers, and tables of sines and cosines."""
    shared: int
    """Bytes per program."""
    warps: int
    reads_early: frozenset[str]
    """Arguments read before it waits for the kernel in front of it."""
    waits: bool
    """Whether every program of it waits, and writes nothing before."""
    fades_fused: int
    """Sums with a power of two in which the compiler fused the other product than the source says."""
    warps_side_by_side: bool
    """Whether its warps share the columns of products, not their rows: then a row's sums are the same in any tile."""
    in_tensor_memory: bool
    """Whether it multiplies as Blackwell alone can."""
    code: bytes
    """Of the machine."""
    ptx: str
    options: dict[str, int]

    def assembled_for(self, capability: int) -> Compiled:
        """The same for a card that runs the same PTX."""
        backend = make_backend(target := GPUTarget("cuda", capability, WARP_SIZE))
        code = backend.make_cubin(_for(capability, self.ptx), {}, backend.parse_options(self.options), target.arch)
        registers, local = _resources(code)
        return replace(self, code=code, registers=registers, local=local)


@contextmanager
def record(card: Card) -> Iterator[list[Launch]]:
    """Collects launches instead of running them, as a card would get them; what is compiled then is for this card."""
    compile_for(card)
    launches: list[Launch] = []

    def run(self: Any, *args: Any, grid: Any, warmup: bool, **kwargs: Any) -> None:
        arguments = dict(zip(self.arg_names, args, strict=False)) | {
            name: value for name, value in kwargs.items() if name not in OPTIONS
        }
        options = {name: value for name, value in kwargs.items() if name in OPTIONS}
        launches.append(Launch(self, tuple(grid), {name: arguments[name] for name in self.arg_names}, options))

    original = JITFunction.run
    JITFunction.run = run
    try:
        yield launches
    finally:
        JITFunction.run = original


def distinct(launches: list[Launch]) -> list[Launch]:
    """One launch for each piece of machine code."""
    return list({launch.key: launch for launch in launches}.values())


def compile_launch(launch: Launch) -> Compiled:
    """For the card of the latest ``record``."""
    signature, _, _ = signature_of(launch)
    target = driver.active.get_current_target()
    built = build(launch, target.arch)
    ptx, cubin = built.asm["ptx"], built.asm["cubin"]
    if launch.name in WITNESSES - _witnesses:
        _witnesses.add(launch.name)
        for other in (each for each, same in SAME_PTX.items() if same == target.arch):
            assert _code(ptx) == _code(build(launch, other).asm["ptx"]), f"sm_{other} has code of its own"
    registers, local = _resources(cubin)
    return Compiled(
        name=launch.name,
        grid=launch.grid,
        registers=registers,
        local=local,
        shared=built.metadata.shared,
        warps=built.metadata.num_warps,
        reads_early=_read_before_waiting(ptx, {n: k for n, k in signature.items() if k != "constexpr"}),
        waits=_waits(ptx),
        warps_side_by_side=all(
            rows == "1" for rows in re.findall(r"nvidia_mma<.*warpsPerCTA = \[(\d+),", built.asm["ttgir"])
        ),
        in_tensor_memory="tc_gen5_mma" in built.asm["ttgir"],
        fades_fused=_fades_fused(ptx),
        code=cubin,
        ptx=ptx,
        options=dict(launch.options),
    )


def build(launch: Launch, capability: int) -> CompiledKernel:
    """What Triton makes of a launch, once. Its source is for the card of the latest ``record``."""
    key = capability, launch.key
    if key not in _known:
        _known[key] = _compiled(launch, capability)
    return _known[key]


def _compiled(launch: Launch, capability: int) -> CompiledKernel:
    signature, constants, attributes = signature_of(launch)
    source = ASTSource(fn=launch.kernel, signature=signature, constexprs=constants, attrs=attributes)
    return triton.compile(source, target=GPUTarget("cuda", capability, WARP_SIZE), options=dict(launch.options))


def _for(capability: int, ptx: str) -> str:
    """The same for another card."""
    return re.sub(r"^\.target sm_\d+", f".target sm_{capability}", ptx, flags=re.MULTILINE)


def _code(ptx: str) -> str:
    """The same whatever the card, and without where source files are: Triton's cache may have it from other folders."""
    return _for(0, ptx).partition("\t.file\t")[0]


def signature_of(launch: Launch) -> tuple[dict[str, str], dict[tuple[int], Any], dict[tuple[int], Any]]:
    """Types, constants and alignment of the arguments, as Triton's own launcher would see them."""
    signature: dict[str, str] = {}
    constants: dict[tuple[int], Any] = {}
    attributes: dict[tuple[int], Any] = {}
    aligned = [["tt.divisibility", 16]]
    for index, parameter in enumerate(launch.kernel.params):
        value = launch.arguments[parameter.name]
        plain = parameter.do_not_specialize
        if parameter.is_constexpr or value is None or (isinstance(value, int) and value == 1 and not plain):
            signature[parameter.name], constants[(index,)] = "constexpr", value
        elif isinstance(value, torch.Tensor):
            signature[parameter.name], attributes[(index,)] = f"*{TYPES[value.dtype]}", aligned
        elif isinstance(value, float):
            signature[parameter.name] = "fp32"
        else:
            signature[parameter.name] = "i32" if abs(value) < 2**31 else "i64"
            if value % 16 == 0 and not plain:
                attributes[(index,)] = aligned
    return signature, constants, attributes


def _read_before_waiting(ptx: str, kinds: dict[str, str]) -> frozenset[str]:
    """Arguments whose memory is read before the wait: every register is followed back to the pointers it was made of,
    also where it was one's place among the arguments that was chosen, as Triton 3.7 does.

    ``kinds`` are the types of the arguments that the machine code has, in their order.
    """
    names = [{name} if kind.startswith("*") else set() for name, kind in kinds.items()]
    origins: dict[str, set[str]] = {}
    read: set[str] = set()
    for line in _before_waiting(ptx).splitlines():
        registers = re.findall(r"%\w+", line)
        if argument := re.search(r"(?:ld\.param|mov\.b64|cvta\.param).*\b\w+_param_(\d+)\b", line):
            number = int(argument[1])
            origins[registers[0]] = names[number] if number < len(names) else {"Triton's own"}
        elif re.search(r"\bld\.global|cp\.async\.c[ag]\.shared", line):
            address = re.findall(r"\[\s*(%\w+)", line)[-1]
            read |= origins.get(address) or {"unknown"}
        elif registers:
            made_of = set().union(*(origins.get(register, set()) for register in registers[1:]))
            origins[registers[0]] = origins.get(registers[0], set()) | made_of
    return frozenset(read)


def _waits(ptx: str) -> bool:
    before = _before_waiting(ptx)
    sooner = re.search(r"\b(?:brx|ret|exit|(?:st|red|atom)\.global)\b", before)
    astray = [label for label in re.findall(r"\bbra\S*\s+(\$\w+)", before) if f"{label}:" not in before]
    return "griddepcontrol.wait" in ptx and sooner is None and not astray


def _before_waiting(ptx: str) -> str:
    body, _, _ = ptx[ptx.index(".entry") :].partition("griddepcontrol.wait")
    return re.sub(r"//.*", "", body)


def _fades_fused(ptx: str) -> int:
    """Fused products to which the factor that fades earlier splits is added, as if they had weighed 1."""
    powers = set(re.findall(r"\bex2\.approx[.\w]*\s+(%\w+)", ptx))
    return sum(addend in powers for addend in re.findall(r"\bfma\.rn\.f32\s+%\w+, %\w+, [%\w]+, (%\w+);", ptx))


def _resources(cubin: bytes) -> tuple[int, int]:
    """Registers and bytes of local memory per thread."""
    tool = Path(triton.__file__).parent / "backends" / "nvidia" / "bin" / "cuobjdump"
    with tempfile.NamedTemporaryFile(suffix=".cubin") as file:
        file.write(cubin)
        file.flush()
        usage = subprocess.run([tool, "-res-usage", file.name], capture_output=True, text=True, check=True)
    found = re.search(r"REG:(\d+) STACK:(\d+)", usage.stdout + usage.stderr)
    assert found is not None, usage.stdout
    return int(found[1]), int(found[2])


def table(compiled: list[Compiled]) -> str:
    """Markdown."""
    lines = [
        "| kernel | grid | warps | registers | local | shared | reads before it waits |",
        "|--|--|--|--|--|--|--|",
    ]
    for one in compiled:
        grid = "x".join(map(str, one.grid))
        early = ", ".join(sorted(one.reads_early)) or "-"
        lines.append(
            f"| {one.name} | {grid} | {one.warps} | {one.registers} | {one.local} | {one.shared} "
            f"| {early if one.waits else NEVER_WAITS} |"
        )
    return "\n".join(lines)
