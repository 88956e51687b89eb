"""A kernel's source is the one that Python's tokenizer finds: half of one would be compiled without a complaint."""

from __future__ import annotations

import inspect
from importlib import import_module
from pkgutil import walk_packages

import pytest

from engine import kernels
from engine.kernels.toolchain.jit import HAS_TRITON
from engine.kernels.toolchain.sources import lines_of


@pytest.mark.skipif(not HAS_TRITON, reason="needs Triton")
def test_functions_end_where_they_end() -> None:
    modules = [import_module(each.name) for each in walk_packages(kernels.__path__, f"{kernels.__name__}.")]
    found = [
        value.fn
        for module in modules
        for value in vars(module).values()
        if hasattr(value, "fn") and value.fn.__module__ == module.__name__
    ]
    assert len(found) > 200
    for function in found:
        assert lines_of(function) == inspect.getsourcelines(function)
