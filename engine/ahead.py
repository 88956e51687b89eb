"""A pair's kernels compiled beside loading its weights: ``python -m engine.ahead`` is the process that does it.

The pair is built on the ``meta`` device and does there, once, all that decoding does. Nothing is listed by hand, so
what is compiled is what will be launched.
"""

from __future__ import annotations

import hashlib
import json
import logging
import os
import signal
import subprocess
import sys
from contextlib import AbstractContextManager, nullcontext
from dataclasses import asdict, dataclass
from pathlib import Path
from tempfile import TemporaryFile
from time import monotonic

import torch

from .checkpoint import compute_dtype, drafter_shape, read_drafter_config, read_target_config, target_shape
from .commands import AttentionBackend
from .decoder import Decoder
from .device_rounds import DeviceRounds
from .fingerprint import fingerprint_of_code
from .hub.pairs import PairFolders
from .kernels.jit import MAX_ROWS
from .kernels.quantised import QuantisedWeight
from .plan import META, MemoryPlan

log = logging.getLogger(__name__)

CUDA = torch.device("cuda")
"""What is compiled for. No tensor is ever put there."""
WORTHWHILE = 4_000_000_000
"""Bytes of weights from which on reading them takes about as long as the process takes to start."""
PATIENCE = 60.0
"""Seconds after which nobody waits for it any more."""
PROMPT_ROWS = 2 * MAX_ROWS
"""Rows of the prompts that are tried out. Prompts of every length run the same machine code."""


@dataclass(frozen=True, slots=True)
class Order:
    """What is to be compiled. Must say what the runner will do: anything else is compiled in vain."""

    target: str
    drafter: str | None
    """Folders."""
    context: int
    drafts_in_8_bits: bool
    draft_attention: AttentionBackend
    capability: int
    """Of the GPU: 90 is Hopper."""

    @property
    def mark(self) -> Path:
        """A file in Triton's cache that says all of this was compiled before. It goes when the cache goes."""
        from triton import __version__, knobs

        configs = [
            (Path(folder) / "config.json").read_text("utf-8") for folder in (self.target, self.drafter) if folder
        ]
        said = json.dumps([asdict(self), configs, __version__, torch.__version__, fingerprint_of_code()])
        return Path(knobs.cache.dir) / f"dflash-chat-{hashlib.sha256(said.encode()).hexdigest()[:16]}"

    def launch_all(self) -> None:
        """Everything that a turn may launch, on tensors without memory."""
        config = read_target_config(Path(self.target))
        target = target_shape(config, CUDA).to(compute_dtype(CUDA))
        target.prepare()
        drafter = None
        if self.drafter is not None:
            draft_config = read_drafter_config(Path(self.drafter), config)
            drafter = drafter_shape(draft_config, CUDA, self.draft_attention).to(compute_dtype(CUDA))
            drafter.prepare()
        decoder = Decoder(target, drafter, self.context)
        copy = QuantisedWeight.allocate(config.vocab_size, config.hidden_size, META)
        DeviceRounds(decoder, copy if self.drafts_in_8_bits else None).rehearse()
        rehearse_prompt(decoder)


@torch.inference_mode()
def rehearse_prompt(decoder: Decoder) -> None:
    """Two pieces of a prompt, as ``decoder.Turn`` runs them: with a drafter that is told of them, and without."""
    drafter = decoder.drafter
    for start, taps in ((0, ()), (PROMPT_ROWS, () if drafter is None else drafter.config.target_layer_ids)):
        ids = torch.zeros(PROMPT_ROWS, dtype=torch.int64, device=decoder.device)
        output = decoder.read(ids, start, decoder.cache, taps)
        decoder.cache.commit(start + PROMPT_ROWS)
        if drafter is not None and decoder.draft_cache is not None and output.features is not None:
            drafter.ingest(output.features, decoder.draft_cache)


class Compiling:
    """The process, as its parent sees it. Leaving the block ends it, done or not: it is never needed, only faster."""

    def __init__(self, order: Order):
        self._deadline = monotonic() + PATIENCE
        self._said = TemporaryFile()  # noqa: SIM115 (open while the process runs)
        self._process = subprocess.Popen(
            [sys.executable, "-m", __spec__.name, json.dumps(asdict(order))],
            stdin=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL,
            stderr=self._said,
            env=os.environ | {"PYTHONPATH": os.pathsep.join(filter(None, sys.path)), "CUDA_VISIBLE_DEVICES": ""},
            start_new_session=True,  # so that its own processes can be ended with it
        )

    def __enter__(self) -> Compiling:
        return self

    def __exit__(self, *_error: object) -> None:
        if self._process.poll() is None:
            os.killpg(self._process.pid, signal.SIGKILL)
            self._process.wait()
        self._said.close()

    def finished(self, seconds: float) -> bool:
        """Waits so long at most, and says whether waiting is over."""
        try:
            code = self._process.wait(seconds)
        except subprocess.TimeoutExpired:
            return monotonic() > self._deadline
        if code:
            self._said.seek(0)
            log.warning("kernels were not compiled ahead: %s", self._said.read().decode(errors="replace")[-2000:])
        return True


def compiling_beside(
    folders: PairFolders, plan: MemoryPlan, draft_attention: AttentionBackend
) -> AbstractContextManager[Compiling | None]:
    """Begins to compile what this pair will launch; None where it isn't worth a process, or was done before."""
    if not plan.device_rounds or plan.weights < WORTHWHILE:
        return nullcontext()
    drafter = None if folders.drafter is None else str(folders.drafter)
    major, minor = torch.cuda.get_device_capability(plan.device)
    order = Order(
        str(folders.target), drafter, plan.context, plan.drafts_in_8_bits, draft_attention, 10 * major + minor
    )
    return nullcontext() if order.mark.exists() else Compiling(order)


def main() -> None:
    from .kernels import ahead  # needs Triton, which not every machine has

    order = Order(**json.loads(sys.argv[1]))
    ahead.compile_for(order.capability)
    ahead.compile_all(ahead.noted_launches(order.launch_all), num_processes())
    order.mark.touch()


def num_processes() -> int:
    """Half the cores: the others read the weights meanwhile."""
    return max(1, len(os.sched_getaffinity(0)) // 2)


if __name__ == "__main__":
    main()
