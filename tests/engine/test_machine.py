"""What the machine has, where containers and systems tell it in their own ways, and what is said when it runs out."""

from __future__ import annotations

import os
from pathlib import Path

import pytest
import torch

from engine import machine
from engine.errors import DeviceFailure, EngineFailure, failure_of
from engine.loading.pair_loader import use_fitting_threads


@pytest.mark.parametrize(
    ("said", "usable"),
    [
        ("50000 100000", 1),
        ("250000 100000", 3),
        *((each, 8) for each in ("max 100000", "9900000 100000", "-1 0", "nan 1")),
    ],
)
@pytest.mark.parametrize("group", [".", "a", "a/b"])
def test_a_container_gets_a_part_of_the_cores(
    said: str, usable: int, group: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "cpu").mkdir()
    (tmp_path / "cpu" / "cpu.cfs_quota_us").write_text("-1\n")
    (tmp_path / group).mkdir(parents=True, exist_ok=True)
    (tmp_path / group / "cpu.max").write_text(f"{said}\n")
    (tmp_path / "own").write_text("1:cpu,cpuacct:/x\n0::/a/b\n")
    monkeypatch.setattr(machine, "GROUP", tmp_path)
    monkeypatch.setattr(machine, "OWN_GROUP", tmp_path / "own")
    monkeypatch.setattr(os, "sched_getaffinity", lambda _: set(range(8)))
    assert machine.cores() == usable
    monkeypatch.delattr(os, "sched_getaffinity")  # macOS and Windows
    monkeypatch.setattr(os, "cpu_count", lambda: 8)
    assert machine.cores() == usable


@pytest.mark.parametrize(("said", "threads"), [(None, 1), ("64", 1), ("1", 1)])
def test_half_a_core_gets_one_thread(
    said: str | None, threads: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "cpu.max").write_text("50000 100000\n")
    monkeypatch.setattr(machine, "GROUP", tmp_path)
    monkeypatch.delenv("OMP_NUM_THREADS") if said is None else monkeypatch.setenv("OMP_NUM_THREADS", said)
    before = torch.get_num_threads()
    try:
        torch.set_num_threads(int(said or 4))
        use_fitting_threads(torch.device("cpu"))
        assert torch.get_num_threads() == threads
    finally:
        torch.set_num_threads(before)


@pytest.mark.parametrize(
    ("limits", "left"),
    [
        ({}, 64 << 30),
        ({"memory.max": "max"}, 64 << 30),
        ({"memory.max": "8589934592"}, 8 << 30),
        ({"memory.max": "max", "a/memory.max": "4294967296", "a/b/memory.max": "max"}, 4 << 30),
        ({"memory/memory.limit_in_bytes": "2147483648"}, 2 << 30),
        ({"memory/memory.limit_in_bytes": "9223372036854771712"}, 64 << 30),
        ({"memory/x/memory.limit_in_bytes": "1073741824", "memory/memory.limit_in_bytes": "-1"}, 1 << 30),
        ({"memory/x/y/memory.limit_in_bytes": "1073741824", "x/memory.max": "1073741824"}, 64 << 30),  # of others
        ({"a/memory.high": "3221225472", "a/memory.max": "max"}, 3 << 30),
        ({"memory.max": "?", "a/b/memory.max": ""}, 64 << 30),
    ],
)
def test_a_container_gets_a_part_of_the_memory(
    limits: dict[str, str], left: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name, said in limits.items():
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).write_text(f"{said}\n")
    (tmp_path / "own").write_text("4:memory:/x\n1:cpu:/y\n0::/a/b\n")
    monkeypatch.setattr(machine, "GROUP", tmp_path)
    monkeypatch.setattr(machine, "OWN_GROUP", tmp_path / "own")
    monkeypatch.setattr(os, "sysconf", {"SC_PAGE_SIZE": 4096, "SC_PHYS_PAGES": (64 << 30) // 4096}.__getitem__)
    assert machine.memory_bytes() == left


@pytest.mark.parametrize(
    "error",
    [
        MemoryError(),
        RuntimeError("[enforce fail] DefaultCPUAllocator: can't allocate memory: you tried to allocate 9 bytes."),
        ImportError("libtorch_cpu.so: failed to map segment from shared object"),
    ],
)
def test_memory_that_ran_out_is_the_device_s(error: Exception) -> None:
    assert isinstance(failure_of(error), DeviceFailure)
    assert type(failure_of(ImportError("x.so: failed to map segment from shared object: Operation not permitted"))) is (
        EngineFailure
    )
