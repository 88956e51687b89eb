"""Reads tensors from files to a GPU at the disk's speed: a few threads read large pieces ahead into page-locked
buffers, from which the GPU copies meanwhile. Memory-mapped files would arrive page by page on one thread."""

from __future__ import annotations

import sys
from collections import deque
from collections.abc import Iterable, Iterator, Mapping
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import AbstractContextManager, nullcontext, suppress
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from queue import SimpleQueue

import torch
from torch import Tensor

from ..errors import WeightsFailure
from ..machine import cores
from ..threads import begun
from .headers import TensorHeader

READERS = max(4, min(8, cores() // 2))
"""Threads that read: each copies some 3.4 GB/s out of the page cache, and a GPU takes 55."""
PIECE_BYTES = 16 << 20
BUFFERS = 2 * READERS
BYTES_AHEAD = BUFFERS * PIECE_BYTES
"""Bytes that may be under way behind the tensor that is waited for: enough to keep every reader busy."""
HANDOVER = 0.0005
"""Seconds after which a thread that runs Python lets a reader go on, which needs the interpreter several times for a
piece. With Python's 5 ms, reading beside a busy thread took 1.4 times as long on two cores, with this 1.1 times."""

DTYPES = {
    "F64": torch.float64,
    "F32": torch.float32,
    "BF16": torch.bfloat16,
    "F16": torch.float16,
    "F8_E4M3": torch.float8_e4m3fn,
    "I32": torch.int32,
    "U8": torch.uint8,
}
"""Dtypes that weights may be stored in, by their names in safetensors headers."""


@dataclass(frozen=True, slots=True)
class StoredTensor:
    """Where a tensor's bytes lie in a file, their dtype and its shape."""

    name: str
    path: Path
    offset: int
    dtype: torch.dtype
    shape: tuple[int, ...]

    @property
    def nbytes(self) -> int:
        return torch.Size(self.shape).numel() * self.dtype.itemsize


def stored_tensors(headers: Mapping[str, TensorHeader]) -> list[StoredTensor]:
    """Tensors by name, in the order in which they are stored; for blocks of a GGUF file, their raw bytes."""
    tensors = [
        StoredTensor(name, each.path, each.offset, DTYPES[each.dtype], each.shape)
        if each.dtype in DTYPES
        else StoredTensor(name, each.path, each.offset, torch.uint8, (each.nbytes,))
        for name, each in headers.items()
    ]
    return sorted(tensors, key=lambda tensor: (tensor.path, tensor.offset))


def read_staged(tensors: Iterable[StoredTensor], device: torch.device) -> Iterator[tuple[str, Tensor]]:
    """Yields each tensor on the device, in its stored dtype and the given order, through ``BUFFERS`` host buffers of
    ``PIECE_BYTES``. Small ones that lie behind one another share memory. ``WeightsFailure`` for a short file; stopping
    the iteration stops the readers."""
    stage = _Stage(device)
    waiting: deque[_Arriving] = deque()
    ahead = 0
    pool = ThreadPoolExecutor(READERS, thread_name_prefix="weights")
    interval = sys.getswitchinterval()
    sys.setswitchinterval(min(interval, HANDOVER))
    try:
        for run in _runs(tensors):
            waiting.append(stage.begin(run, pool))
            ahead += run.nbytes
            while waiting and ahead - waiting[0].run.nbytes >= BYTES_AHEAD:
                ahead -= waiting[0].run.nbytes
                yield from stage.finish(waiting.popleft())
        while waiting:
            yield from stage.finish(waiting.popleft())
    finally:
        sys.setswitchinterval(interval)
        pool.shutdown(cancel_futures=True)


@dataclass(frozen=True, slots=True)
class _Run:
    """Tensors that lie behind one another in a file and are read together: thousands of small ones would be slow one by
    one."""

    tensors: list[StoredTensor]

    @property
    def path(self) -> Path:
        return self.tensors[0].path

    @property
    def offset(self) -> int:
        return self.tensors[0].offset

    @property
    def nbytes(self) -> int:
        return self.tensors[-1].offset + self.tensors[-1].nbytes - self.offset


def _runs(tensors: Iterable[StoredTensor]) -> Iterator[_Run]:
    """Groups tensors into runs: a tensor by itself, or as many as fit in a piece."""
    run: list[StoredTensor] = []
    for tensor in tensors:
        if run:
            behind = (tensor.path, tensor.offset) == (run[0].path, run[0].offset + _Run(run).nbytes)
            if not behind or _Run(run).nbytes + tensor.nbytes > PIECE_BYTES:
                yield _Run(run)
                run = []
        run.append(tensor)
    if run:
        yield _Run(run)


@dataclass(frozen=True, slots=True)
class _Arriving:
    """Tensors whose bytes are being read."""

    run: _Run
    destination: Tensor
    """uint8 [nbytes] on the device: where the bytes go."""
    pieces: list[Future[torch.cuda.Event | None]]
    """What a GPU's stream has to wait for before it reads a piece."""


class Buffer:
    """Host memory for one piece; page-locked when it feeds a GPU."""

    def __init__(self, device: torch.device):
        on_gpu = device.type == "cuda"
        self.tensor = torch.empty(PIECE_BYTES, dtype=torch.uint8, pin_memory=on_gpu)
        self.memory = self.tensor.numpy().data
        self.copied = torch.cuda.Event() if on_gpu else None  # type: ignore[no-untyped-call]

    def wait(self) -> None:
        """Waits until the GPU has fetched what the buffer held before."""
        if self.copied is not None:
            self.copied.synchronize()


_making: list[Future[None]] = []
"""Done when the buffers that are made ahead are; empty where none are."""


def make_buffers_beside(device: torch.device) -> None:
    """Begins to lock pages for the buffers of a GPU's next weights, which takes the system 0.2 s, while these are
    planned for. PyTorch keeps locked pages that nobody holds any more, so the next to ask gets them."""
    if device.type == "cuda":
        _making.append(begun(partial(_make_buffers, device), "buffers"))


def _make_buffers(device: torch.device) -> None:
    with suppress(Exception), torch.cuda.device(device):  # who reads will say what is wrong
        _new_buffers(device)


def _buffers(device: torch.device) -> list[Buffer]:
    while _making:
        _making.pop().result()
    return _new_buffers(device)


def _new_buffers(device: torch.device) -> list[Buffer]:
    return [Buffer(device) for _ in range(BUFFERS)]


class _Stage:
    """The buffers between the readers and the device, and the stream that copies out of them."""

    def __init__(self, device: torch.device):
        self._device = device
        self._stream = torch.cuda.Stream(device) if device.type == "cuda" else None  # type: ignore[no-untyped-call]
        self._free: SimpleQueue[Buffer] = SimpleQueue()
        for buffer in _buffers(device):
            self._free.put(buffer)

    def begin(self, run: _Run, pool: ThreadPoolExecutor) -> _Arriving:
        """Allocates a run's memory on the device and hands its pieces to the readers."""
        destination = torch.empty(run.nbytes, dtype=torch.uint8, device=self._device)
        if self._stream is not None:
            # The memory may be that of a tensor which the main stream has just finished with.
            self._stream.wait_stream(torch.cuda.current_stream(self._device))
            destination.record_stream(self._stream)
        pieces = [
            pool.submit(self._read, run.path, run.offset + start, destination[start : start + PIECE_BYTES])
            for start in range(0, run.nbytes, PIECE_BYTES)
        ]
        return _Arriving(run, destination, pieces)

    def finish(self, arriving: _Arriving) -> Iterator[tuple[str, Tensor]]:
        """Waits for the readers, makes the main stream wait for these copies, not for those under way behind them, and
        yields the tensors."""
        for piece in arriving.pieces:
            if (copied := piece.result()) is not None:
                torch.cuda.current_stream(self._device).wait_event(copied)
        for tensor in arriving.run.tensors:
            start = tensor.offset - arriving.run.offset
            values = arriving.destination[start : start + tensor.nbytes]
            if start % tensor.dtype.itemsize:
                values = values.clone()  # a view must begin where its dtype allows
            yield tensor.name, values.view(tensor.dtype).view(tensor.shape)

    def _read(self, path: Path, offset: int, destination: Tensor) -> torch.cuda.Event | None:
        """Reads bytes of a file into a buffer and copies them on to ``destination``. Runs on a reader's thread."""
        count = destination.numel()
        buffer = self._free.get()
        try:
            buffer.wait()
            _read_exactly(path, offset, buffer.memory[:count])
            # Inference mode is set for each thread, and memory that was allocated in it can only be written in it.
            with torch.inference_mode(), self._copying():
                destination.copy_(buffer.tensor[:count], non_blocking=True)
                if buffer.copied is not None:
                    buffer.copied.record()
            return buffer.copied
        finally:
            self._free.put(buffer)

    def _copying(self) -> AbstractContextManager[object]:
        return nullcontext() if self._stream is None else torch.cuda.stream(self._stream)


def _read_exactly(path: Path, offset: int, memory: memoryview) -> None:
    with path.open("rb", buffering=0) as file:
        file.seek(offset)
        done = 0
        while done < len(memory):
            count = file.readinto(memory[done:])
            if not count:
                raise WeightsFailure(
                    f"{path.name} ends too early.", f"Delete {path} and download the checkpoint again."
                )
            done += count
