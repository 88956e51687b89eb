"""Corrects Triton's interpreter to compute what a GPU does. The tests make it six times as fast, too."""

from __future__ import annotations

from typing import Any

import numpy as np
import torch
import triton.language as tl
from triton.language.semantic import TritonSemantic
from triton.runtime import interpreter


def round_as_gpus_do() -> None:
    """Makes Triton's interpreter round to bf16 to nearest, ties to even, instead of truncating. To be called once,
    before the first kernel."""
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


def let_constants_meet_tensors() -> None:
    """Takes the product of a constant and a scalar for the tensor that it is; Triton 3.7.1 refuses the constant that it
    wraps it in. Once per process, before the first kernel."""
    convert = TritonSemantic.to_tensor

    def converted(semantic: Any, value: Any, check_type: bool = True) -> Any:
        held = value.value if isinstance(value, tl.constexpr) else value
        return held if isinstance(held, tl.tensor) else convert(semantic, value, check_type)

    TritonSemantic.to_tensor = converted
