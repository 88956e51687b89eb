"""Loads of which each thread knows what is its own: some neighbours at an address of its own, in registers, as a tuple
of tensors with one value for each address.

Triton would find out by itself how threads had best share a load, for which it looks, load by load, at all that hangs
together with it: of a product without loops that is everything, and three quarters of what compiling one took. So
these are instructions of the machine (PTX), and a tensor that no load of Triton's shapes lies in threads by its last
dimensions: of [..., 8, 4] those of a warp, of the dimension in front its warps, of those before each thread's
registers."""

from __future__ import annotations

from ...toolchain.jit import SIMULATED, constexpr_function, jit, tl


@constexpr_function
def _code(count: int, once: bool, conditional: bool, bits: int = 32) -> str:
    """A load of ``count`` neighbours; ``once``: the first cache keeps none of it. ``conditional``: zeros otherwise."""
    registers = [f"${n}" for n in range(count)]
    into = registers[0] if count == 1 else "{" + ", ".join(registers) + "}"
    vector = "" if count == 1 else f".v{count}"
    load = f"ld.global{'.L1::no_allocate' if once else ''}{vector}.b{bits} {into}, [${count}];"
    if not conditional:
        return load
    zeros = " ".join(f"mov.b{bits} {each}, 0;" for each in registers)
    return "{ .reg .pred p; setp.ne.b32 p, $" + f"{count + 1}, 0; {zeros} @p {load} }}"


@constexpr_function
def _operands(count: int, conditional: bool) -> str:
    return ",".join(["=&r"] * count + ["l", "r"] if conditional else ["=r"] * count + ["l"])


@jit
def neighbours(at: tl.tensor, there: tl.tensor, COUNT: tl.constexpr, ONCE: tl.constexpr) -> tuple[tl.tensor, ...]:
    """COUNT numbers of 32 bits, or pairs of bf16, from each of the addresses ``at`` that are ``there``, zeros from the
    others, for ``joined``. ONCE: they aren't read again."""
    dtype: tl.constexpr = at.dtype.element_ty
    if SIMULATED or (dtype != tl.int32 and dtype != tl.bfloat16):
        places = at[:, :, :, :, None] + tl.arange(0, COUNT)[None, None, None, None, :]
        exist = (tl.zeros(at.shape, tl.int32) == 0) & there
        return (tl.load(places, mask=exist[:, :, :, :, None], other=0),)
    else:
        return _registers(at.to(tl.int64), there, COUNT, ONCE)  # type: ignore[no-any-return]


@jit
def _registers(at: tl.tensor, there: tl.tensor, COUNT: tl.constexpr, ONCE: tl.constexpr) -> tuple[tl.tensor, ...]:
    if there is True:
        registers = tl.inline_asm_elementwise(
            _code(COUNT, ONCE, False), _operands(COUNT, False), [at], (tl.int32,) * COUNT, False, 1
        )
    else:
        registers = tl.inline_asm_elementwise(
            _code(COUNT, ONCE, True), _operands(COUNT, True), [at, there.to(tl.int32)], (tl.int32,) * COUNT, False, 1
        )
    return registers  # type: ignore[no-any-return]


@jit
def joined(registers: tl.tensor) -> tl.tensor:
    """[..., COUNT] of what ``neighbours`` found."""
    if len(registers) == 4:
        both = tl.join(tl.join(registers[0], registers[2]), tl.join(registers[1], registers[3]))
        return tl.reshape(both, [both.shape[0], both.shape[1], both.shape[2], both.shape[3], 4])
    elif len(registers) == 2:
        return tl.join(registers[0], registers[1])
    elif len(registers[0].shape) == 4:
        return tl.expand_dims(registers[0], 4)
    else:
        return registers[0]


@jit
def two_scales(at: tl.tensor, there: tl.tensor) -> tl.tensor:
    """Two scales that stand side by side, from each of the addresses ``at`` if they are ``there``. Those of one or two
    bytes come as one register with both, to be taken apart when they are needed: to do it here would wait for the
    memory. Those of four bytes come as two numbers [..., 2]."""
    dtype: tl.constexpr = at.dtype.element_ty
    if SIMULATED or dtype == tl.float32:
        return tl.load(at[:, :, :, :, None] + tl.arange(0, 2)[None, None, None, None, :], mask=there)
    elif there is True:
        if dtype == tl.uint8:
            return tl.inline_asm_elementwise(_code(1, True, False, 16), "=h,l", [at.to(tl.int64)], tl.uint16, False, 1)
        else:
            return tl.inline_asm_elementwise(_code(1, True, False), "=r,l", [at.to(tl.int64)], tl.int32, False, 1)
    else:
        sources = [at.to(tl.int64), there.to(tl.int32)]
        if dtype == tl.uint8:
            return tl.inline_asm_elementwise(_code(1, True, True, 16), "=&h,l,r", sources, tl.uint16, False, 1)
        else:
            return tl.inline_asm_elementwise(_code(1, True, True), "=&r,l,r", sources, tl.int32, False, 1)
