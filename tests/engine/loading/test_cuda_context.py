"""The driver is asked for a context of the first GPU, by a thread that nobody has to wait for."""

from __future__ import annotations

import ctypes
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from engine.loading import cuda_context as waking

DRIVER = """
static int retained = -1;
int cuInit(unsigned flags) { return %d; }
int cuDeviceGet(int *device, int number) { *device = 40 + number; return 0; }
int cuDevicePrimaryCtxRetain(void **context, int device) { *context = 0; retained = device; return 0; }
int retained_device(void) { return retained; }
"""


@pytest.mark.skipif(shutil.which("gcc") is None, reason="needs a C compiler")
@pytest.mark.parametrize(("error", "retained"), [(0, 40), (100, -1)])
def test_the_first_gpu_gets_a_context_if_there_is_one(
    error: int, retained: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    library = tmp_path / "driver.so"
    (tmp_path / "driver.c").write_text(DRIVER % error)
    subprocess.run(["gcc", "-shared", "-fPIC", "-o", library, tmp_path / "driver.c"], check=True)
    monkeypatch.setenv("CUDA_MODULE_LOADING", "LAZY")
    monkeypatch.setattr(waking, "DRIVER", str(library))
    monkeypatch.setattr(waking, "DRIVERS_FILES", (library,))
    thread = waking.wake_gpu()
    assert thread is not None
    thread.join(60)
    assert ctypes.CDLL(str(library)).retained_device() == retained


def test_a_driver_that_cannot_be_loaded_is_left_to_torch(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("CUDA_MODULE_LOADING", "LAZY")
    monkeypatch.setattr(waking, "DRIVER", str(tmp_path / "missing.so"))
    monkeypatch.setattr(waking, "DRIVERS_FILES", (tmp_path,))
    thread = waking.wake_gpu()
    assert thread is not None
    thread.join(60)
    assert not thread.is_alive()


def test_without_a_driver_nothing_is_begun(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(waking, "DRIVERS_FILES", (tmp_path / "missing",))
    assert not waking.has_driver() and waking.wake_gpu() is None


@pytest.mark.skipif(not Path("/proc/self/maps").exists(), reason="only Linux says what is linked")
def test_torchs_libraries_are_linked_before_it_is_imported() -> None:
    code = (
        "import sys; from engine.loading.cuda_context import _link_torch; _link_torch(); print('torch' in sys.modules)"
    )
    done = subprocess.run([sys.executable, "-c", f"{code}; print(open('/proc/self/maps').read())"], capture_output=True)
    assert done.stdout.startswith(b"False") and b"libtorch_cpu" in done.stdout
