"""Triton's interpreter describes each type once: it made them anew for every tensor, and compared them by parts."""

from __future__ import annotations

from collections.abc import Callable
from functools import cached_property
from typing import Any

import triton.language as tl
from triton.language import core
from triton.runtime import interpreter


def describe_types_once() -> None:
    """Once per process, before the first kernel."""
    _describe_shapes_once()
    _describe_blocks_once()
    _describe_tensors_once()
    _compare_types_by_identity()


def _describe_shapes_once() -> None:
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
            known[key].sizes = key[1]
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
