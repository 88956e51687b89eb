"""Kernels that were compiled ahead are found by whoever launches them later."""

from __future__ import annotations

import json
import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from engine.kernels.toolchain.jit import HAS_TRITON


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


@pytest.mark.ci  # compiles, as the next one does
@pytest.mark.skipif(not HAS_TRITON or shutil.which("gcc") is None, reason="needs Triton and a C compiler")
def test_launches_find_what_was_compiled_ahead(tmp_path: Path) -> None:
    write_libcuda(tmp_path)
    folder = str(tmp_path)
    said = python(
        "tests.proofs.kernels.offline_ahead",
        TRITON_CACHE_DIR=str(tmp_path / "cache"),
        TRITON_LIBCUDA_PATH=folder,
        LD_LIBRARY_PATH=folder,
    )
    assert json.loads(said) == {"noted": 4, "again": 4, "found": 4, "missed": 0, "added": 0, "failed": "_project"}


@pytest.mark.ci
@pytest.mark.skipif(not HAS_TRITON, reason="needs Triton")
def test_a_kernel_has_one_key_in_whatever_order_kernels_are_compiled() -> None:
    keys, others = json.loads(python("tests.proofs.kernels.offline_keys"))
    assert len(keys) > 50 and others == keys
