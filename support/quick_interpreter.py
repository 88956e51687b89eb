"""Triton's interpreter six times as fast: what it worked out anew for each operation is remembered, and what kernels do
most goes to numpy directly. Results and refusals (overflow, types and shapes that don't match) stay the same: what a
short way doesn't know takes the long one."""

from __future__ import annotations

from collections.abc import Callable
from functools import cache
from types import SimpleNamespace
from typing import Any

import numpy as np
import triton.language as tl
from triton.language import core
from triton.language.semantic import TritonSemantic
from triton.runtime import interpreter

from support.quick_types import describe_types_once


@cache
def hurry() -> None:
    """Before the first launch; it changes Triton for the rest of the process."""
    describe_types_once()
    _broadcast_at_once()
    _promote_once()
    _look_for_overflow_at_once()
    _patch_once()
    _calculate_at_once()
    _point_at_once()
    _add_dimensions_at_once()
    _cast_at_once()
    _load_and_store_at_once()


_common: dict[tuple[int, int], Any] = {}
"""Types of blocks by identity; each exists once, and for ever."""


def _broadcast(left: Any, right: Any) -> Any:
    """The type of what two values give together, with the left's elements; None where the interpreter has to say."""
    if left is right or not right.is_block():
        return left
    if not left.is_block():
        return right.with_element_ty(left)
    key = (id(left), id(right))
    if key not in _common:
        pairs = [*zip(left.sizes, right.sizes, strict=False)]
        fit = len(left.sizes) == len(right.sizes) and all(a == b or 1 in (a, b) for a, b in pairs)
        _common[key] = tl.block_type(left.element_ty, [max(pair) for pair in pairs]) if fit else None
    return _common[key]


def _made(data: Any, scalar: Any, kind: Any) -> Any:
    """A tensor of numbers that are known to be of this type."""
    handle = object.__new__(interpreter.TensorHandle)
    handle.data, handle.dtype, handle.attr = data, scalar, {}
    return tl.tensor(handle, kind)


def _spread(data: Any, sizes: tuple[int, ...]) -> Any:
    """``np.broadcast_to``, whose checks take longer than what they look at."""
    if data.shape == sizes:
        return data
    if len(data.shape) != len(sizes) or not data.flags.c_contiguous:
        return np.broadcast_to(data, sizes)
    steps = [0 if one == 1 else step for one, step in zip(data.shape, data.strides, strict=True)]
    return np.ndarray(sizes, data.dtype, data, 0, steps)


def _broadcast_at_once() -> None:
    """Without copies, and with nothing to compare where types are the same."""
    slowly, convert = TritonSemantic.broadcast_impl_value, TritonSemantic.to_tensor

    def as_large(value: Any, kind: Any) -> Any:
        if value.type is kind:
            return value
        return _made(_spread(value.handle.data, kind.sizes), value.handle.dtype.scalar, kind)

    def broadcast(self: Any, left: Any, right: Any) -> Any:
        kind = _broadcast(left.type, right.type)
        if kind is None:
            return slowly(self, left, right)
        if not kind.is_block():
            return left, right
        return as_large(left, kind), as_large(right, kind.with_element_ty(right.type.scalar))

    TritonSemantic.broadcast_impl_value = broadcast
    TritonSemantic.to_tensor = lambda self, x, check_type=True: (
        x if type(x) is tl.tensor else convert(self, x, check_type)
    )


def _promote_once() -> None:
    check, promote = TritonSemantic.binary_op_type_checking_impl, TritonSemantic.computation_type_impl
    promoted: dict[tuple[Any, ...], Any] = {}

    def checked(self: Any, left: Any, right: Any, *args: Any, **kwargs: Any) -> Any:
        if not isinstance(right, tl.tensor):
            right = _number(right, left)
        elif not isinstance(left, tl.tensor):
            left = _number(left, right)
        if isinstance(left, tl.tensor) and isinstance(right, tl.tensor):
            name = left.type.scalar.name
            if name == right.type.scalar.name and name in ("int32", "int1", "int64", "uint32", "fp32"):
                return self.broadcast_impl_value(left, right)
        return check(self, left, right, *args, **kwargs)

    def promoted_once(self: Any, left: Any, left_is_number: bool, right: Any, right_is_number: bool, div: bool) -> Any:
        key = (left.name, left_is_number, right.name, right_is_number, div)
        if key not in promoted:
            promoted[key] = promote(self, left, left_is_number, right, right_is_number, div)
        return promoted[key]

    TritonSemantic.binary_op_type_checking_impl = checked
    TritonSemantic.computation_type_impl = promoted_once


def _look_for_overflow_at_once() -> None:
    """In numpy; the interpreter ran eight operations of its own for each sum and product of integers."""
    operations = {"add": np.add, "sub": np.subtract, "mul": np.multiply}

    def looked(self: Any, left: Any, right: Any, operation: Any) -> None:
        scalar = left.type.scalar
        if scalar.int_bitwidth >= 64:
            return
        name = operation.__name__
        wide = operations[name](left.handle.data.astype(np.int64), right.handle.data.astype(np.int64))
        low, high = scalar.get_int_min_value(), scalar.get_int_max_value()
        assert wide.min() >= low and wide.max() <= high, f"int{scalar.int_bitwidth} overflow detected for {name}"

    TritonSemantic.binary_op_sanitize_overflow_impl = looked


def _patch_once() -> None:
    """The language is the interpreter's from the first launch to the end of the process."""
    prepare = interpreter._patch_lang
    scope = interpreter._LangPatchScope()
    semantic = interpreter.interpreter_semantic

    def patched(owner: Any, name: str, member: Any, builder: Any, scope: Any) -> None:
        inner = getattr(member, "__wrapped__", member)

        def called(*args: Any, **kwargs: Any) -> Any:
            kwargs["_semantic"] = semantic
            return inner(*args, **kwargs)

        scope.set_attr(owner, name, called)

    interpreter._patch_attr = patched
    prepare(SimpleNamespace(__globals__={"tl": tl, "core": core}))
    interpreter._patch_lang = lambda function: scope  # with nothing to take back


_NUMBERS = {
    "int32": (np.int32, frozenset((int,)), -(2**31), 2**31),
    "int64": (np.int64, frozenset((int,)), -(2**63), 2**63),
    "uint32": (np.uint32, frozenset((int,)), 0, 2**32),
    "fp32": (np.float32, frozenset((int, float)), None, None),
}
"""Types whose operators take the short way, as numpy has them; the numbers that become one of them, from and to."""


def _number(number: Any, beside: Any) -> Any:
    """A number as a tensor of the type beside it; itself where the interpreter has to say what it becomes."""
    if isinstance(beside, tl.tensor) and (known := _NUMBERS.get(beside.dtype.name)) is not None:
        numpy_type, kinds, low, high = known
        if type(number) in kinds and (low is None or low <= number < high):
            return _made(np.array([number], numpy_type), beside.dtype, beside.dtype)
    return number


def _calculate_at_once() -> None:
    """Operators between tensors of one type, or with a number among them, go to numpy directly."""
    of_wholes, of_fractions = ("int32", "int64", "uint32"), ("fp32",)
    of_all = (*of_wholes, *of_fractions)
    _operators({"add": np.add, "sub": np.subtract, "mul": np.multiply}, of_all)
    _operators({"lt": np.less, "le": np.less_equal, "gt": np.greater, "ge": np.greater_equal}, of_all, compares=True)
    _operators({"eq": np.equal, "ne": np.not_equal}, of_all, compares=True)
    _operators({"and": np.bitwise_and, "or": np.bitwise_or}, ("int1", *of_wholes))
    _operators({"lshift": np.left_shift, "rshift": np.right_shift}, ("int32", "uint32"))
    _operators({"floordiv": _divided, "mod": np.fmod}, ("int32", "int64"))
    _operators({"truediv": np.divide}, of_fractions)


def _operators(operations: dict[str, Any], names: tuple[str, ...], compares: bool = False) -> None:
    for name, operation in operations.items():
        for operator in (f"__{name}__", f"__r{name}__") if name in ("add", "mul") else (f"__{name}__",):
            slowly = getattr(tl.tensor, operator)
            setattr(tl.tensor, operator, _operator(operation, slowly, frozenset(names), compares))


def _operator(
    operation: Any, slowly: Callable[..., Any], names: frozenset[str], compares: bool
) -> Callable[[Any, Any], Any]:
    overflows = operation in (np.add, np.subtract, np.multiply)

    def calculated(self: Any, other: Any) -> Any:
        scalar = self.dtype
        name = scalar.name
        value = other if isinstance(other, tl.tensor) else _number(core._unwrap_if_constexpr(other), self)
        if name not in names or not isinstance(value, tl.tensor) or value.dtype.name != name:
            return slowly(self, other)
        kind = _broadcast(self.type, value.type)
        if kind is None:
            return slowly(self, other)
        left, right = self.handle.data, value.handle.data
        checked = overflows and name in ("int32", "uint32")
        data = _without_overflow(operation, left, right) if checked else operation(left, right)
        if compares:
            scalar = tl.int1
            kind = kind.with_element_ty(scalar) if kind.is_block() else scalar
        return _made(data, scalar, kind)

    return calculated


def _divided(left: Any, right: Any) -> Any:
    """Towards zero, as GPUs do."""
    return (left - np.fmod(left, right)) // right


def _without_overflow(operation: Any, left: Any, right: Any) -> Any:
    wide = operation(left, right, dtype=np.int64)
    sums = wide.astype(left.dtype)
    assert (sums == wide).all(), f"{left.dtype} overflow detected for {operation.__name__}"
    return sums


def _point_at_once() -> None:
    """Sums of pointers and signed offsets."""
    add = tl.tensor.__add__

    def added(self: Any, other: Any) -> Any:
        scalar = self.dtype
        if not scalar.is_ptr() or scalar.element_ty.is_block():
            return add(self, other)
        offset = core._unwrap_if_constexpr(other)
        if type(offset) is int and -(2**31) <= offset < 2**31:
            elements, kind = np.array([offset], np.int64), self.type
        elif isinstance(offset, tl.tensor) and offset.dtype.name in ("int32", "int64"):
            elements, kind = offset.handle.data, _broadcast(self.type, offset.type)
        else:
            return add(self, other)
        if kind is None:
            return add(self, other)
        size = max(1, scalar.element_ty.primitive_bitwidth // 8)
        return _made(self.handle.data + size * elements.astype(np.uint64), scalar, kind)

    tl.tensor.__add__ = added


def _add_dimensions_at_once() -> None:
    """Rows and columns made of a block of one dimension, and any other new dimension."""
    take, expand = tl.tensor.__getitem__, TritonSemantic.expand_dims
    whole, semantic = slice(None), interpreter.interpreter_semantic
    wider: dict[tuple[int, int], Any] = {}

    def taken(self: Any, parts: Any) -> Any:
        if type(parts) is tuple and len(parts) == 2 and len(self.shape) == 1 and whole in parts and None in parts:
            return expanded(semantic, self, parts.index(None))
        return take(self, parts)

    def expanded(self: Any, block: Any, axis: int) -> Any:
        kind = block.type
        if not kind.is_block() or axis < 0:
            return expand(self, block, axis)
        key = id(kind), axis
        if key not in wider:
            wider[key] = tl.block_type(kind.element_ty, [*kind.sizes[:axis], 1, *kind.sizes[axis:]])
        return _made(block.handle.data.reshape(wider[key].sizes), block.handle.dtype.scalar, wider[key])

    tl.tensor.__getitem__ = taken
    TritonSemantic.expand_dims = expanded


def _cast_at_once() -> None:
    """Between whole numbers, from them to fp32, and between fp32 and bf16."""
    cast, as_numpy = TritonSemantic.cast, interpreter._get_np_dtype
    wholes = frozenset(("int1", "int8", "uint8", "int16", "uint16", "int32", "uint32", "int64"))
    known = {(one, other) for one in wholes for other in (*(wholes - {"int1"}), "fp32")}
    known |= {("fp32", "bf16"), ("bf16", "fp32")}

    def converted(self: Any, value: Any, kind: Any, rounding: Any = None) -> Any:
        source, target = value.type.scalar, kind.scalar
        if source is target:
            return value
        if rounding is not None or (source.name, target.name) not in known:
            return cast(self, value, kind, rounding)
        data, dtype = value.handle.data, as_numpy(target)
        if "bf16" in (source.name, target.name):
            data = interpreter._convert_float(data, source, target, None).view(dtype)
        else:
            data = data.astype(dtype)
        return _made(data, target, value.type.with_element_ty(target) if value.type.is_block() else target)

    TritonSemantic.cast = converted


@cache
def _filled(sizes: tuple[int, ...], dtype: Any, number: int) -> Any:
    """Which nobody writes to."""
    return np.full(sizes, number, dtype)


def _load_and_store_at_once() -> None:
    """Through pointers to numbers, where the mask is one and what stands in for the rest is nought."""
    load, store = TritonSemantic.load, TritonSemantic.store
    as_numpy, memory = interpreter._get_np_dtype, interpreter._interpreter

    def reached(pointer: Any, mask: Any) -> Any:
        """The type of pointers under their mask; None where the interpreter has to say."""
        scalar = pointer.dtype
        if not scalar.is_ptr() or scalar.element_ty.is_block() or scalar.element_ty.name == "int1":
            return None
        if mask is None:
            return pointer.type
        plain = mask.dtype.name == "int1" and (pointer.type.is_block() or not mask.type.is_block())
        return _broadcast(pointer.type, mask.type) if plain else None

    def spread(pointer: Any, mask: Any, kind: Any) -> tuple[Any, Any]:
        addresses = pointer.handle.data
        if kind is not pointer.type:
            addresses = _spread(addresses, kind.sizes)
        if mask is None:
            return addresses, _filled(addresses.shape, np.bool_, 1)
        return addresses, _spread(mask.handle.data, addresses.shape)

    def loaded(self: Any, pointer: Any, mask: Any, other: Any, boundary: Any, padding: Any, *hints: Any) -> Any:
        kind = reached(pointer, mask)
        others = other is not None and (mask is None or other.type.is_block() or other.handle.data.view("u1").any())
        if kind is None or others or boundary or padding:
            return load(self, pointer, mask, other, boundary, padding, *hints)
        addresses, live = spread(pointer, mask, kind)
        element = pointer.dtype.element_ty
        dtype = as_numpy(element)
        data = memory.load(addresses, live, _filled(addresses.shape, dtype, 0), dtype)
        return _made(data, element, kind.with_element_ty(element) if kind.is_block() else element)

    def stored(self: Any, pointer: Any, value: Any, mask: Any, boundary: Any, *hints: Any) -> Any:
        kind = reached(pointer, mask)
        fits = kind is pointer.type and _broadcast(pointer.type, value.type) is kind
        if not fits or boundary or pointer.dtype.is_const():
            return store(self, pointer, value, mask, boundary, *hints)
        addresses, live = spread(pointer, mask, kind)
        numbers = self.cast(value, pointer.dtype.element_ty).handle.data
        memory.store(addresses, _spread(numbers, addresses.shape), live)
        return self.tensor(None, tl.void)

    TritonSemantic.load, TritonSemantic.store = loaded, stored
