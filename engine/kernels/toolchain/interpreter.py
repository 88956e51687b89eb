"""Corrections to Triton's interpreter, so that kernels compute there what they compute on a GPU."""

from __future__ import annotations

from functools import cached_property
from typing import Any

import numpy as np
import torch
import triton.language as tl
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
