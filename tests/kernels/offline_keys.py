"""``python -m tests.kernels.offline_keys [--backwards]`` prints (JSON) each kernel's key in Triton's cache.

They are worked out one after the other by their names, or in the opposite order.
"""

from __future__ import annotations

import json
import sys
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


def main() -> None:
    in_order = sorted(kernels().items(), reverse="--backwards" in sys.argv)
    keys = {name: kernel.cache_key for name, kernel in in_order}
    print(json.dumps(keys, sort_keys=True))


if __name__ == "__main__":
    main()
