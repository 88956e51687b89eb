"""Compiles a pair's kernels while its weights load, in a child process (``precompiler.py``): a faster first start."""

from __future__ import annotations

import hashlib
import json
import logging
import os
import subprocess
import sys
from contextlib import AbstractContextManager, nullcontext, suppress
from dataclasses import asdict, dataclass
from importlib.util import find_spec
from pathlib import Path
from tempfile import TemporaryFile
from time import monotonic
from typing import IO, TYPE_CHECKING, Self

from ..commands import AttentionBackend, EngineOptions, WeightFormat
from ..files.fingerprint import fingerprint_of_code
from ..kernels.toolchain.card import Card, card_of
from ..kernels.toolchain.disk_cache import loading_beside
from ..machine import end
from .cuda_context import has_driver

if TYPE_CHECKING:
    from ..hub.pairs import PairFolders
    from .memory_plan import MemoryPlan

log = logging.getLogger(__name__)

WORTHWHILE = 4_000_000_000
"""Bytes of weights from which on reading them takes about as long as the process takes to start."""
PATIENCE = 60.0
"""Seconds after which the process is no longer waited for."""


@dataclass(frozen=True, slots=True)
class Order:
    """What is to be compiled. It must say what the runner will do: anything else is compiled in vain."""

    target: str
    drafter: str | None
    """The drafter's folder; None without one."""
    context: int
    drafts_in_8_bits: bool
    attention: AttentionBackend
    card: Card
    """The card for which kernels are compiled."""
    weights: WeightFormat = "bf16"
    """The format in which the target's weights are held."""
    packed_drafter: bool = False
    """Whether the drafter's weights are held only in 8 bits."""
    chunk: int | None = None
    """Rows of a prefill pass, where they are not as many as usual."""
    embedding_on_host: bool = False

    @classmethod
    def read(cls, text: str) -> Self:
        fields = json.loads(text)
        return cls(**fields | {"card": Card(**fields["card"])})

    @property
    def digest(self) -> str:
        """16 hexadecimal digits, different for another pair in the same folders."""
        import torch
        import triton

        configs = [
            (Path(folder) / "config.json").read_text("utf-8") for folder in (self.target, self.drafter) if folder
        ]
        return digest_of(asdict(self), configs, torch.__version__, triton.__version__)


class Compiling:
    """The process, as its parent sees it. It stands by for an order; leaving the ``with`` block ends it, done or
    not."""

    def __init__(self, module: str = f"{__package__}.precompiler") -> None:
        """``module``: what reads the order and compiles, as ``precompiler.compile_ordered`` does."""
        self._order: Order | None = None
        self._mark = Path()
        self._deadline = 0.0
        self._output = TemporaryFile()  # noqa: SIM115 (open while the process runs)
        self._launches = TemporaryFile()  # noqa: SIM115
        self._process = subprocess.Popen(
            [sys.executable, "-m", module],
            stdin=subprocess.PIPE,
            stdout=self._launches,
            stderr=self._output,
            env=os.environ | {"PYTHONPATH": os.pathsep.join(filter(None, sys.path)), "CUDA_VISIBLE_DEVICES": ""},
            text=True,
            start_new_session=True,
        )

    def __enter__(self) -> Compiling:
        return self

    def __exit__(self, *_error: object) -> None:
        self.end()

    def end(self) -> None:
        """Ends the process, done or not; further calls have no effect."""
        if self._process.poll() is None:
            end(self._process)
            self._process.wait()
        self._tell("")
        self._output.close()
        self._launches.close()

    def begin(self, order: Order, mark: Path) -> None:
        """Lets it compile; the file ``mark`` will say that it did."""
        self._order, self._mark, self._deadline = order, mark, monotonic() + PATIENCE
        self._tell(json.dumps(asdict(order)))

    def finished(self, seconds: float) -> bool:
        """Waits at most ``seconds``; returns whether waiting is over."""
        assert self._order is not None, "it waits for an order itself"
        try:
            code = self._process.wait(seconds)
        except subprocess.TimeoutExpired:
            return monotonic() > self._deadline
        output, launches = (_written(file) for file in (self._output, self._launches))
        output = output[-2000:]
        if code:
            log.warning("kernels were not compiled ahead: %s", output)
        else:
            log.debug("kernels were compiled ahead: %s", output)
            _write(self._mark, f"{self._order.digest}\n{launches}")
        return True

    def _tell(self, what: str) -> None:
        """Sends the only message that the process gets."""
        assert self._process.stdin is not None
        with suppress(BrokenPipeError, ValueError):  # it may have ended, or got its message before
            self._process.stdin.write(what)
            self._process.stdin.close()


def precompiler_process(options: EngineOptions) -> AbstractContextManager[Compiling | None]:
    """Starts the process before it is known what to compile; None where nothing will be, as far as that is known
    without torch."""
    possible = options.target is not None and options.device != "cpu" and has_driver()
    if not possible or find_spec("triton") is None or mark_of(options).exists():
        return nullcontext()
    return Compiling()


def compiling_beside(
    options: EngineOptions, folders: PairFolders, plan: MemoryPlan, process: Compiling | None = None
) -> AbstractContextManager[Compiling | None]:
    """Compiles what this pair will launch, in a process; None where it isn't worth it, or was done before: then
    what was compiled is brought to the GPU meanwhile."""
    order = _order(folders, plan, options) if plan.device_rounds and plan.target_bytes >= WORTHWHILE else None
    if order is None and process is None:
        return nullcontext()
    mark = mark_of(options)
    digest, *launches = _read(mark).splitlines() or [""]
    if order is None or digest == order.digest:
        if process is not None:
            process.end()
            _write(mark, "nothing" if order is None else "\n".join([digest, *launches]))
        return nullcontext() if order is None else loading_beside(launches, plan.device)
    process = process or Compiling()
    process.begin(order, mark)
    return process


def mark_of(options: EngineOptions) -> Path:
    """The file in Triton's cache that says what was compiled for such a start. It goes when the cache goes."""
    return mark_for(options.target, options.drafter, options.max_context, options.attention_backend, options.weights)


def mark_for(*identity: object) -> Path:
    """The mark of a start that is told by ``identity``."""
    home = os.environ.get("TRITON_HOME") or Path.home()
    folder = os.environ.get("TRITON_CACHE_DIR") or Path(home) / ".triton" / "cache"
    return Path(folder) / f"dflash-chat-{digest_of(*identity, fingerprint_of_code())}"


def _order(folders: PairFolders, plan: MemoryPlan, options: EngineOptions) -> Order:
    drafter = None if folders.drafter is None else str(folders.drafter)
    return Order(
        str(folders.target),
        drafter,
        plan.context,
        plan.drafting.head_in_8_bits,
        options.attention_backend,
        card_of(plan.device),
        plan.weights,
        plan.drafting.packed,
        plan.chunk,
        plan.on_host > 0,
    )


def digest_of(*values: object) -> str:
    """16 hexadecimal digits of what JSON can say."""
    return hashlib.sha256(json.dumps(values).encode()).hexdigest()[:16]


def _written(file: IO[bytes]) -> str:
    file.seek(0)
    return file.read().decode(errors="replace")


def _read(path: Path) -> str:
    with suppress(OSError):
        return path.read_text("utf-8")
    return ""


def _write(path: Path, text: str) -> None:
    """Writes a file if it can. Otherwise the next start compiles again, or finds that there is nothing to compile."""
    with suppress(OSError):
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text, "utf-8")
