"""What tests need that compile on a machine without a GPU."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path


def write_libcuda(folder: Path) -> None:
    """A library with the names of the driver's functions, to build and load against; none of them is called."""
    from triton.backends import nvidia

    sources = Path(nvidia.__path__[0])
    names = re.findall(r"\bcu[A-Z]\w+", "".join((sources / name).read_text() for name in ("driver.c", "driver.py")))
    (folder / "empty.c").write_text("".join(f"void {name}(void) {{}}\n" for name in sorted(set(names))))
    subprocess.run(["gcc", "-shared", "-fPIC", "-o", folder / "libcuda.so.1", folder / "empty.c"], check=True)


def python(module: str, *arguments: str, seconds: float = 170, **variables: str) -> str:
    """What a module prints in a process of its own: in this one the interpreter stands in for the compiler."""
    environment = {key: value for key, value in os.environ.items() if key != "TRITON_INTERPRET"} | variables
    command = [sys.executable, "-m", module, *arguments]
    done = subprocess.run(command, capture_output=True, text=True, env=environment, timeout=seconds)
    assert done.returncode == 0, done.stderr
    return done.stdout
