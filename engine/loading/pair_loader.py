"""Loads a pair: finds its folders, plans its memory, reads its weights, and compiles its kernels meanwhile."""

from __future__ import annotations

import os
from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import partial
from time import perf_counter
from typing import TYPE_CHECKING

import torch

from ..commands import AUTO, EngineOptions, WeightFormat
from ..decoding.decoder import Decoder
from ..events import EngineReady, Event, LoadProgress, Notice
from ..files.fingerprint import fingerprint
from ..files.generation_config import published_sampling
from ..hub.fetching import Fetching
from ..hub.pairs import PairFolders, find_pair, is_here
from ..hub.sizes import CONTEXTS, size_of
from ..kernels.weights.int8 import Int8Weight
from ..kernels.weights.integers import ByteWeight
from ..machine import cores
from ..measured.ceiling import one_row_floor_ms
from ..measured.threads import ThreadChoice
from ..models.dflash.weights import hold_in_8_bits
from ..models.drafter import Drafter
from ..models.host_embedding import hold_embedding_on_host
from ..models.packed import gives_same_bits_by_any_threads, hold_in_fewer_bits
from ..models.target import TargetModel
from ..threads import begun
from ..tokenization.tokenizer import ChatTokenizer
from . import checkpoint
from .left_out import left_out
from .memory_plan import MemoryPlan, available_memory
from .one_block import lay_together
from .precompile import Compiling, compiling_beside
from .weight_choice import WeightPlan, choose_weights

if TYPE_CHECKING:
    from concurrent.futures import Future

DEFAULT_MAX_CONTEXT = 32_768
"""Tokens that a format must have room for when nobody says how many; the context is then as much longer as memory
allows."""
TIGHT_CONTEXT = 256
"""A context below this may have no room for a question, which is checked before weights are read."""

PROGRESS_INTERVAL = 0.2
"""Seconds between reports of loading: more of them would take the interpreter from the threads that read."""
COMPILING_INTERVAL = 0.1
"""Seconds between two looks at whether somebody wants to stop, while kernels are still being compiled."""

MAX_CPU_THREADS = 4

Emit = Callable[[Event], None]


class LoadCancelled(Exception):
    """Raised when somebody asked to stop while weights were being read."""


@dataclass(frozen=True, slots=True)
class LoadedPair:
    """A pair in memory, and what is reported of it."""

    decoder: Decoder
    tokenizer: ChatTokenizer
    folders: PairFolders
    plan: MemoryPlan
    held_in: str
    """The formats in which the target's products read weights, as ``EngineReady.dtype`` says it."""
    packed: tuple[str, ...]
    """What is held in another format than usual, which costs depend on."""
    fingerprints: tuple[str, str]
    """Fingerprints of the target's files and the drafter's, "" without one."""

    def ready(self, max_block_size: int, load_seconds: float) -> EngineReady:
        target, drafter, device = self.decoder.target, self.decoder.drafter, self.decoder.device
        return EngineReady(
            target=self.folders.name,
            drafter=self.folders.drafter_name if drafter is not None else None,
            device=torch.cuda.get_device_name(device) if device.type == "cuda" else "cpu",
            dtype=self.held_in,
            max_block_size=max_block_size,
            max_context=self.plan.context,
            load_seconds=load_seconds,
            banner=self.folders.banner,
            attention_backend=target.attention_backend,
            draft_attention_backend=drafter.attention_backend if drafter is not None else "",
            target_hash=self.fingerprints[0],
            drafter_hash=self.fingerprints[1],
            recurs=len(target.config.attention) < len(target.config.layers),
            calls=self.tokenizer.calls,
            sampling=published_sampling(self.folders.target),
            method=None if drafter is None else drafter.config.method,
            floor_ms=one_row_floor_ms(target, device),
        )


class PairLoader:
    """Goes from options to a pair in memory and reports its progress. ``cancelled`` is asked between pieces and ends it
    with ``LoadCancelled``."""

    def __init__(self, options: EngineOptions, device: torch.device, emit: Emit, cancelled: Callable[[], bool]):
        self.options, self.device = options, device
        self._emit, self._cancelled = emit, cancelled
        self._reported = 0.0
        """When progress was last reported, by ``perf_counter``."""

    def load(self, compiler: Compiling | None) -> LoadedPair:
        """Loads the pair. ``compiler``: a process that stands by to compile kernels. Raises ``FetchCancelled`` or
        ``LoadCancelled`` when cancelled."""
        context = self.options.max_context or DEFAULT_MAX_CONTEXT
        wanted = fitting_format(self.options, context, self.device)
        folders = find_folders(self.options, self._emit, self._cancelled, wanted)
        # Beside planning and reading: large vocabularies take a second, and thousands of samples of the files a tenth.
        tokenizer = begun(partial(ChatTokenizer, folders.target), "tokenizer")
        fingerprints = begun(partial(_fingerprints, folders), "fingerprints")
        chosen = choose_weights(self.options, folders, context, self.device)
        plan = self._settle(chosen, tokenizer)
        if remark := left_out(folders):
            self._say(remark, remark=self.options.target is not None)
        with compiling_beside(self.options, folders, plan, compiler) as compiling:
            loaded = self._read(folders, chosen, plan, tokenizer, fingerprints)
            if compiling is not None:
                self._say("compiling kernels")
                while not compiling.finished(COMPILING_INTERVAL) and not self._cancelled():
                    pass
        if self._cancelled():
            raise LoadCancelled
        return loaded

    def _say(self, what: str, remark: bool = False) -> None:
        self._emit(LoadProgress(what, 0, 0, remark=remark))

    def _settle(self, chosen: WeightPlan, tokenizer: Future[ChatTokenizer]) -> MemoryPlan:
        """Settles the plan's context and reports what was chosen. Raises ``UsageFailure`` for a context without room
        for a question."""
        plan, named = chosen.plan, self.options.target is not None
        if self.options.max_context is None:
            plan = plan.roomier()
        elif self.options.max_context > plan.longest:
            self._emit(Notice(f"The context is {plan.longest:,} tokens long: the model takes no more."))
        if plan.context < TIGHT_CONTEXT or tokenizer.done():  # else once it is loaded: weights needn't wait for it
            tokenizer.result().require_room(plan.context, plan.longest)
        if not chosen.is_plain:
            self._say(chosen.describe(), remark=named)
        self._say(plan.describe(), remark=named)
        return plan

    def _read(
        self,
        folders: PairFolders,
        chosen: WeightPlan,
        plan: MemoryPlan,
        tokenizer: Future[ChatTokenizer],
        fingerprints: Future[tuple[str, str]],
    ) -> LoadedPair:
        backend = self.options.attention_backend
        target = checkpoint.load_target(folders.target, self.device, self._progress, backend, plan.weights)
        held_in = _held_in(target, plan.weights)
        if plan.on_host:
            hold_embedding_on_host(target)
        if chosen.products is not None:
            held_in = hold_in_fewer_bits(target, chosen.products)
        drafter = self._read_drafter(folders, target, plan, chosen.in_fewer_bits)
        if drafter is not None and self.options.drafter is not None:
            self._say(f"{folders.drafter_name}: {drafter.config.describe()}", remark=True)
        if self.device.type == "cpu":
            lay_together(target, *([] if drafter is None else [drafter]))
        self._say("loading the tokenizer")
        tokenizer.result().require_room(plan.context, plan.longest)
        packed: tuple[str, ...] = ()
        if chosen.products is not None:
            packed = (held_in, chosen.products.head)
        elif plan.weights != "bf16" or plan.drafting.packed:
            packed = (plan.weights, str(plan.drafting), *(["embedding on host"] if plan.on_host else []))
        end, stops = tokenizer.result().end_id, target.config.stop_token_ids
        if end is not None and end not in stops and end < target.config.vocab_size:
            target.config = replace(target.config, stop_token_ids=(*stops, end))
        decoder = Decoder(target, drafter, plan.context, plan.chunk)
        return LoadedPair(decoder, tokenizer.result(), folders, plan, held_in, packed, fingerprints.result())

    def _read_drafter(
        self, folders: PairFolders, target: TargetModel, plan: MemoryPlan, in_fewer_bits: bool
    ) -> Drafter | None:
        if folders.drafter is None:
            return None
        drafter = checkpoint.load_drafter(
            folders.drafter, target, self._progress, self.options.attention_backend, self.options.noise_embed_scale
        )
        if plan.drafting.packed:
            hold_in_8_bits(drafter, ByteWeight if in_fewer_bits else Int8Weight)
        return drafter

    def _progress(self, what: str, done: int, total: int) -> None:
        if self._cancelled():
            raise LoadCancelled
        if done == total or perf_counter() - self._reported > PROGRESS_INTERVAL:
            self._reported = perf_counter()
            self._emit(LoadProgress(f"loading the {what}", done, total, "bytes"))


def fitting_format(options: EngineOptions, context: int, device: torch.device) -> WeightFormat | None:
    """The format in which a published target is looked for; None where the choice is made by what its files hold."""
    if options.weights != AUTO:
        return options.weights
    size = None if options.target is None or device.type == "cpu" else size_of(options.target)
    if size is None or is_here(size.target):
        return None
    listed = next((each for each in CONTEXTS if each >= context), CONTEXTS[-1])
    return size.best_format(listed, available_memory(device))


def find_folders(
    options: EngineOptions, emit: Emit, cancelled: Callable[[], bool], weights: WeightFormat | None
) -> PairFolders:
    """Finds the pair's folders, downloading what isn't here. ``weights``: the format of the target. Raises
    ``FetchCancelled`` when cancelled meanwhile."""
    emit(LoadProgress("finding the model", 0, 0))

    def progress(done: int, total: int, bytes_per_second: float) -> None:
        emit(LoadProgress("downloading", done, total, "bytes", bytes_per_second))

    fetching = Fetching(options.offline, progress=progress, cancelled=cancelled)
    return find_pair(options.target, options.drafter, fetching, weights)


def _fingerprints(folders: PairFolders) -> tuple[str, str]:
    return fingerprint(folders.target), "" if folders.drafter is None else fingerprint(folders.drafter)


def _held_in(target: TargetModel, weights: WeightFormat) -> str:
    return str(target.dtype).removeprefix("torch.") if weights == "bf16" else weights


def use_fitting_threads(device: torch.device) -> None:
    """Sets few threads, so that one core is left for the screen, unless ``OMP_NUM_THREADS`` says how many, since
    waiting OpenMP threads spin. Never more than there are cores: they would only wait for one another."""
    if device.type != "cpu":
        return
    if "OMP_NUM_THREADS" not in os.environ:
        torch.set_num_threads(_threads_beside_a_screen())
    elif torch.get_num_threads() > cores():
        torch.set_num_threads(cores())


def thread_choice(target: TargetModel) -> ThreadChoice | None:
    """Decides whether rounds on a CPU may use the screen's core as well, while it is idle. None where
    ``OMP_NUM_THREADS`` says, where there are no more cores, and for a target in floats: with another number of threads
    sums differ in their last bits, and so may texts."""
    fewer, most = _threads_beside_a_screen(), min(MAX_CPU_THREADS, cores())
    if "OMP_NUM_THREADS" in os.environ or fewer == most or not gives_same_bits_by_any_threads(target):
        return None
    return ThreadChoice(fewer, most, torch.set_num_threads)


def _threads_beside_a_screen() -> int:
    return max(1, min(MAX_CPU_THREADS, cores() - 1))
