"""Tensors through staging buffers: the same bytes, whatever the pieces; a GPU only changes where they arrive."""

from __future__ import annotations

import threading
from pathlib import Path

import pytest
import torch
from safetensors.torch import load_file, save_file
from torch import Tensor

from engine.errors import WeightsFailure
from engine.files import pinned_reader as staging
from engine.files.headers import read_file_headers
from engine.files.pinned_reader import BUFFERS, StoredTensor, read_staged, stored_tensors
from engine.files.tensors import read_tensors
from tests.engine.conftest import CPU


@pytest.fixture
def stored(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> tuple[Path, dict[str, Tensor]]:
    """A file of many sizes and dtypes, read in pieces of 1000 bytes: most tensors span several."""
    monkeypatch.setattr(staging, "PIECE_BYTES", 1000)
    monkeypatch.setattr(staging, "BYTES_AHEAD", 8000)
    generator = torch.Generator().manual_seed(0)
    dtypes = (torch.bfloat16, torch.float32, torch.float16)
    tensors = {
        f"layer.{index}": torch.randn(index * 37, 5, generator=generator).to(dtypes[index % 3]) for index in range(40)
    }
    save_file(tensors, tmp_path / "model.safetensors", metadata={"format": "pt"})
    return tmp_path / "model.safetensors", load_file(tmp_path / "model.safetensors")


def found_in(path: Path) -> list[StoredTensor]:
    return stored_tensors(read_file_headers(path))


def test_every_tensor_arrives_whole(stored: tuple[Path, dict[str, Tensor]]) -> None:
    path, tensors = stored
    arrived = dict(read_staged(found_in(path), CPU))
    assert arrived.keys() == tensors.keys()
    for name, tensor in tensors.items():
        assert arrived[name].dtype is tensor.dtype and torch.equal(arrived[name], tensor), name


def test_tensors_come_in_the_order_of_the_file(stored: tuple[Path, dict[str, Tensor]]) -> None:
    """So that a disk reads forward."""
    path, _ = stored
    found = found_in(path)
    assert [tensor.offset for tensor in found] == sorted(tensor.offset for tensor in found)
    assert [name for name, _ in read_staged(found, CPU)] == [tensor.name for tensor in found]


def test_who_loads_may_be_in_inference_mode(stored: tuple[Path, dict[str, Tensor]]) -> None:
    """The readers are threads, and the mode is a thread's own."""
    path, tensors = stored
    with torch.inference_mode():
        arrived = dict(read_staged(found_in(path), CPU))
    assert all(torch.equal(arrived[name], tensor) for name, tensor in tensors.items())


def test_the_host_holds_only_the_buffers(
    stored: tuple[Path, dict[str, Tensor]], monkeypatch: pytest.MonkeyPatch
) -> None:
    path, _ = stored
    made = []
    monkeypatch.setattr(staging, "Buffer", lambda device, make=staging.Buffer: made.append(1) or make(device))
    for _ in read_staged(found_in(path), CPU):
        pass
    assert len(made) == BUFFERS


def test_a_file_that_shrinks_is_reported(stored: tuple[Path, dict[str, Tensor]]) -> None:
    path, _ = stored
    found = found_in(path)
    with path.open("r+b") as file:
        file.truncate(path.stat().st_size - 10)
    with pytest.raises(WeightsFailure, match="ends too early"):
        list(read_staged(found, CPU))
    assert not _readers()


def test_whoever_stops_listening_stops_the_readers(stored: tuple[Path, dict[str, Tensor]]) -> None:
    path, _ = stored
    reading = read_staged(found_in(path), CPU)
    next(reading)
    reading.close()  # type: ignore[attr-defined]
    assert not _readers()


def _readers() -> list[threading.Thread]:
    return [thread for thread in threading.enumerate() if thread.name.startswith("weights")]


@pytest.mark.gpu
def test_a_gpu_gets_the_same_bytes(stored: tuple[Path, dict[str, Tensor]]) -> None:
    path, tensors = stored
    for name, tensor in read_tensors(read_file_headers(path), torch.device("cuda", 0)):
        assert torch.equal(tensor.cpu(), tensors[name]), name
