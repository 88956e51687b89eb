"""``python -m tests.proofs.kernels.offline_keys`` prints (JSON) each kernel's key in Triton's cache, twice: worked out
one after the other by their names, and in the opposite order, each in a process of its own."""

from __future__ import annotations

import json
import multiprocessing
from importlib import import_module
from pkgutil import walk_packages

from triton.runtime.jit import JITFunction

import engine.kernels


def kernels() -> dict[str, JITFunction]:
    """All of the engine's, and the functions they call, by module and name."""
    found = walk_packages(engine.kernels.__path__, "engine.kernels.")
    modules = [import_module(module.name) for module in found if "interpreter" not in module.name]
    values = [value for module in modules for value in vars(module).values()]
    return {f"{value.__module__}.{value.__name__}": value for value in values if isinstance(value, JITFunction)}


def keys(backwards: bool) -> dict[str, str]:
    return {name: kernel.cache_key for name, kernel in sorted(kernels().items(), reverse=backwards)}


def main() -> None:
    with multiprocessing.get_context("fork").Pool(2, maxtasksperchild=1) as pool:
        print(json.dumps(pool.map(keys, (False, True), chunksize=1)))


if __name__ == "__main__":
    main()
