"""Triton's interpreter, corrected to compute what a GPU does, and three times as fast: what it worked out anew for each
operation is remembered. Results and refusals (overflow, types and shapes that don't match) stay the same."""

from __future__ import annotations

from collections.abc import Callable
from functools import cached_property
from types import SimpleNamespace
from typing import Any

import numpy as np
import torch
import triton.language as tl
from triton.language import core
from triton.language.semantic import TritonSemantic
from triton.runtime import interpreter


def round_as_gpus_do() -> None:
    """Rounds to bf16 to nearest, ties to even, not truncating. Once, before the first kernel."""
    convert = interpreter._convert_float

    def converted(values: Any, source: Any, target: Any, rounding: Any) -> Any:
        if (source, target) == (tl.float32, tl.bfloat16):
            numbers = torch.from_numpy(np.ascontiguousarray(values, dtype=np.float32))
            return numbers.to(torch.bfloat16).view(torch.uint16).numpy()
        if (source, target) == (tl.bfloat16, tl.float32):
            bits = torch.from_numpy(np.ascontiguousarray(values).view(np.uint16))
            return bits.view(torch.bfloat16).float().numpy().view(np.uint32)
        return convert(values, source, target, rounding)

    interpreter._convert_float = converted


def allow_computed_loop_bounds() -> None:
    """Lets loops run between computed bounds, which newer numpy refuses. Once per process, before the first kernel."""
    patch = interpreter._patch_lang_tensor

    def patched(tensor: Any, scope: Any) -> None:
        patch(tensor, scope)
        scope.set_attr(tensor, "__index__", lambda self: int(self.handle.data.item()))

    interpreter._patch_lang_tensor = patched


def describe_types_once() -> None:
    """Nearly halves the interpreter's time: types are described once. Once per process, before the first kernel."""
    create, as_numpy = tl.tuple.__init__, interpreter._get_np_dtype
    as_numpy_by_name: dict[str, Any] = {}

    def created(self: Any, args: Any, type: Any = None) -> None:
        if type is None:
            self.values = list(args)  # every tensor's shape is one of these
        else:
            create(self, args, type)

    def as_numpy_once(type: Any) -> Any:
        name = type.scalar.name
        if name not in as_numpy_by_name:
            as_numpy_by_name[name] = as_numpy(type)
        return as_numpy_by_name[name]

    described = cached_property(lambda self: tl.core._type_for_tuple_values(self.values))
    described.__set_name__(tl.tuple, "type")
    tl.tuple.type = described
    tl.tuple.__init__ = created
    interpreter._get_np_dtype = as_numpy_once


def remember() -> None:
    """Once per process, before the first kernel runs."""
    _describe_blocks_once()
    _describe_tensors_once()
    _compare_types_by_identity()
    _promote_once()
    _look_for_overflow_at_once()
    _patch_once()
    _calculate_at_once()


def _describe_blocks_once() -> None:
    """A block's type exists once, so that comparing two is comparing identities."""
    create = tl.block_type.__init__
    known: dict[tuple[str, tuple[Any, ...]], Any] = {}
    with_elements: dict[tuple[str, str], Any] = {}

    def existing(kind: Any, element: Any, shape: Any) -> Any:
        key = (element.name, tuple([core._unwrap_if_constexpr(size) for size in shape]))
        if key not in known:
            known[key] = object.__new__(kind)
            create(known[key], element, shape)
        return known[key]

    def with_element(self: Any, element: Any) -> Any:
        key = (self.name, element.name)
        if key not in with_elements:
            with_elements[key] = tl.block_type(element, self.shape)
        return with_elements[key]

    tl.block_type.__new__ = existing
    tl.block_type.__init__ = lambda self, element, shape: None
    tl.block_type.with_element_ty = with_element


def _describe_tensors_once() -> None:
    create = tl.tensor.__init__

    def created(self: Any, handle: Any, type: Any) -> None:
        fields = type.__dict__.get("_of_tensors")
        if fields is None:
            create(self, handle, type)
            type._of_tensors = {name: getattr(self, name) for name in ("shape", "numel", "type", "dtype")}
        else:
            self.__dict__.update(fields)
            self.handle = handle

    tl.tensor.__init__ = created


def _compare_types_by_identity() -> None:
    unwrap = core._unwrap_if_constexpr

    plain = frozenset((int, float, bool, tl.dtype, tl.block_type, tl.pointer_type, tl.tensor))

    def unwrapped(value: Any) -> Any:
        return value if type(value) in plain else unwrap(value)

    def identical_or(equals: Callable[[Any, Any], bool]) -> Callable[[Any, Any], bool]:
        return lambda self, other: self is other or equals(self, other)

    for kind in (tl.dtype, tl.pointer_type, tl.block_type):
        digest = kind.__hash__
        kind.__eq__ = identical_or(kind.__eq__)
        kind.__hash__ = digest
    core._unwrap_if_constexpr = unwrapped


def _promote_once() -> None:
    check, promote = TritonSemantic.binary_op_type_checking_impl, TritonSemantic.computation_type_impl
    promoted: dict[tuple[Any, ...], Any] = {}

    def checked(self: Any, left: Any, right: Any, *args: Any, **kwargs: Any) -> Any:
        if isinstance(left, tl.tensor) and isinstance(right, tl.tensor) and left.type == right.type:
            scalar = left.type.scalar
            if not scalar.is_ptr() and (scalar.name in ("int32", "int1", "int64") or scalar.is_fp32()):
                return left, right
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


_NUMBERS = {"int32": (np.int32, frozenset((int,))), "fp32": (np.float32, frozenset((int, float)))}
"""Types whose operators take the short way, as numpy has them, and the numbers that become one of them."""


def _calculate_at_once() -> None:
    """Operators between tensors of one type, of one shape or with a number among them, go to numpy directly."""
    arithmetic = {"add": np.add, "sub": np.subtract, "mul": np.multiply}
    comparison = {"lt": np.less, "le": np.less_equal, "gt": np.greater, "ge": np.greater_equal, "eq": np.equal}
    for name, operation in (arithmetic | comparison).items():
        names = (f"__{name}__", f"__r{name}__") if name in ("add", "mul") else (f"__{name}__",)
        for operator in names:
            slowly = getattr(tl.tensor, operator)
            setattr(tl.tensor, operator, _operator(operation, slowly, name in comparison))


def _operator(operation: Any, slowly: Callable[..., Any], compares: bool) -> Callable[[Any, Any], Any]:
    def calculated(self: Any, other: Any) -> Any:
        scalar = self.dtype
        known = _NUMBERS.get(scalar.name)
        if known is None:
            return slowly(self, other)
        if isinstance(other, tl.tensor):
            if other.dtype.name != scalar.name:
                return slowly(self, other)
            values = other.handle.data
            if self.type is other.type or not other.type.is_block():
                kind = self.type
            elif not self.type.is_block():
                kind = other.type
            else:
                return slowly(self, other)
        else:
            number = core._unwrap_if_constexpr(other)
            if type(number) not in known[1] or (known[0] is np.int32 and not -(2**31) <= number < 2**31):
                return slowly(self, other)
            values, kind = np.array([number], known[0]), self.type
        if compares:
            data, kind = operation(self.handle.data, values), kind.with_element_ty(tl.int1)
        elif known[0] is np.int32:
            data = _without_overflow(operation, self.handle.data, values)
        else:
            data = operation(self.handle.data, values)
        return tl.tensor(interpreter.TensorHandle(data, scalar), kind)

    return calculated


def _without_overflow(operation: Any, left: Any, right: Any) -> Any:
    wide = operation(left, right, dtype=np.int64)
    sums = wide.astype(np.int32)
    assert (sums == wide).all(), f"int32 overflow detected for {operation.__name__}"
    return sums
