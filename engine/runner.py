"""What the engine thread runs: loading a pair, and answering a question as a stream of events."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from time import perf_counter

import torch

from .commands import AUTO, Adjust, Ask, EngineOptions, GenerationSettings, Message, WeightFormat
from .decoding.decoder import Decoder, PrefillStarted, Prompt, Round
from .decoding.device_rounds import DeviceRounds
from .errors import Option, UsageFailure
from .events import (
    EngineReady,
    Event,
    LoadProgress,
    PrefillDone,
)
from .files.fingerprint import fingerprint
from .hub.fetching import FetchCancelled, Fetching
from .hub.pairs import PairFolders, find_pair, is_here
from .hub.sizes import CONTEXTS, size_of
from .kernels.toolchain.card import card_of
from .kernels.toolchain.disk_cache import read_compiler_beside
from .kernels.weights.int8 import Int8Weight
from .kernels.weights.integers import ByteWeight
from .loading import checkpoint
from .loading.choose_rounds import TimedTiles, Way, choose_rounds, derived_tiles, kept_tiles, time_tiles, ways_with
from .loading.memory_plan import MemoryPlan, available_memory
from .loading.one_block import lay_together
from .loading.precompile import Compiling, compiling_beside
from .loading.weight_choice import choose_weights
from .measured.costs import time_rounds
from .measured.known import known_costs
from .models.dflash.weights import hold_in_8_bits
from .models.packed import hold_in_fewer_bits
from .models.target import TargetModel
from .speculation.costs import CostTable
from .speculation.lately import Lately
from .speculation.verify_width import Auto
from .tokenizer import ChatTokenizer, tokenizer_beside
from .turn_events import TurnEvents

DEFAULT_MAX_CONTEXT = 32_768
"""Tokens that a format must have room for when nobody says how many; memory decides how many more there are."""
TIGHT_CONTEXT = 256
"""In a smaller one a question may have no room: looked at before weights are read."""

PROGRESS_INTERVAL = 0.2
"""Seconds between reports of loading: more would cost the readers the interpreter."""

COMPILING_INTERVAL = 0.1
"""Seconds between two looks at whether somebody wants to stop, while kernels are still being compiled."""

MAX_CPU_THREADS = 4

VARIED = (
    "Read 120 measurements from a file, line by line; print the mean of every column, then say why it differs. "
    "My grandmother's garden had roses, tall old pear trees and one stone bench where we sat each summer evening; "
    "import numpy as np, while 3 > 2 else return (x + 7) * 4 / 9, und dann gehen wir schnell nach Hause!"
)
"""Costs are timed on its tokens: so many different ones that they choose experts as those of other texts do."""

Emit = Callable[[Event], None]
Drain = Callable[[], list[Adjust] | None]


class LoadCancelled(Exception):
    """Somebody asked to stop while weights were being read."""


class Runner:
    """A loaded pair that answers one question at a time."""

    def __init__(self, decoder: Decoder, tokenizer: ChatTokenizer):
        self.decoder = decoder
        self.tokenizer = tokenizer
        self.text_so_far = ""
        """The running or last turn's answer."""
        self.weights: tuple[str, str] = ("", "")
        """Fingerprints of target and drafter."""
        self._packed: tuple[str, ...] = ()
        """What is held in other formats than usual."""
        self.costs_seconds = 0.0
        """What timing the costs took; 0 where they are known from an earlier start."""
        self._timed = False
        self.costs: CostTable | None = None
        """What rounds cost here; None where that is not known, or not yet (``learn_costs``)."""

    @property
    def max_block_size(self) -> int:
        """Rows of the drafter's block, anchor included; 1 without a drafter."""
        drafter = self.decoder.drafter
        return drafter.config.block_size if drafter is not None else 1

    @classmethod
    def load(
        cls, options: EngineOptions, emit: Emit, cancelled: Callable[[], bool], compiler: Compiling | None = None
    ) -> Runner | None:
        """Loads and warms a pair, emitting progress; None when cancelled. ``compiler``: one standing by."""
        try:
            return cls._load(options, emit, cancelled, compiler)
        except (FetchCancelled, LoadCancelled):
            return None

    @classmethod
    def _load(
        cls, options: EngineOptions, emit: Emit, cancelled: Callable[[], bool], compiler: Compiling | None
    ) -> Runner:
        started = perf_counter()
        device = checkpoint.pick_device(options.device)
        if device.type == "cuda":
            read_compiler_beside()
        use_fitting_threads(device)
        context = options.max_context or DEFAULT_MAX_CONTEXT
        folders = find_folders(options, emit, cancelled, fitting_format(options, context, device))
        tokenizer = tokenizer_beside(folders.target)
        chosen = choose_weights(options, folders, context, device)
        plan, named = chosen.plan, options.target is not None
        if options.max_context is None:
            plan = plan.roomier()
        elif options.max_context > plan.longest:
            most = f"the context is {plan.longest:,} tokens long: the model takes no more"
            emit(LoadProgress(most, 0, 0, remark=True))
        if plan.context < TIGHT_CONTEXT:
            tokenizer.result().require_room(plan.context, plan.longest)
        if not chosen.is_plain:
            emit(LoadProgress(chosen.describe(), 0, 0, remark=named))
        emit(LoadProgress(plan.describe(), 0, 0, remark=named))
        reported = 0.0

        def progress(what: str, done: int, total: int) -> None:
            nonlocal reported
            if cancelled():
                raise LoadCancelled
            if done == total or perf_counter() - reported > PROGRESS_INTERVAL:
                reported = perf_counter()
                emit(LoadProgress(f"loading the {what}", done, total, "bytes"))

        with compiling_beside(options, folders, plan, compiler) as compiling:
            target = checkpoint.load_target(folders.target, device, progress, options.attention_backend, plan.weights)
            held_in = hold_in_fewer_bits(target) if chosen.in_fewer_bits else _held_in(target, plan.weights)
            drafter = None
            if folders.drafter is not None:
                drafter = checkpoint.load_drafter(
                    folders.drafter, target, progress, options.draft_attention_backend, options.noise_embed_scale
                )
                if plan.drafting.packed:
                    hold_in_8_bits(drafter, ByteWeight if chosen.in_fewer_bits else Int8Weight)
            if device.type == "cpu":
                lay_together(target, *([] if drafter is None else [drafter]))
            emit(LoadProgress("loading the tokenizer", 0, 0))
            runner = cls(Decoder(target, drafter, plan.context), tokenizer.result())
            if plan.weights != "bf16" or plan.drafting.packed:
                runner._packed = (plan.weights, str(plan.drafting))
            if chosen.in_fewer_bits:
                runner._packed = (held_in,)
            runner.weights = (
                fingerprint(folders.target),
                fingerprint(folders.drafter) if folders.drafter is not None else "",
            )
            if compiling is not None:
                emit(LoadProgress("compiling kernels", 0, 0))
                while not compiling.finished(COMPILING_INTERVAL) and not cancelled():
                    pass
        if cancelled():
            raise LoadCancelled
        emit(LoadProgress("warming up", 0, 0))
        runner._choose_rounds(plan, emit)
        if options.time_rounds:
            runner.learn_costs()
        emit(
            EngineReady(
                target=folders.name,
                drafter=folders.drafter_name if drafter is not None else None,
                device=torch.cuda.get_device_name(device) if device.type == "cuda" else "cpu",
                dtype=held_in,
                max_block_size=runner.max_block_size,
                max_context=plan.context,
                load_seconds=perf_counter() - started,
                banner=folders.banner,
                attention_backend=target.attention_backend,
                draft_attention_backend=drafter.attention_backend if drafter is not None else "",
                target_hash=runner.weights[0],
                drafter_hash=runner.weights[1],
            )
        )
        return runner

    def answer(self, ask: Ask, drain: Drain) -> Iterator[Event]:
        """``TurnStarted`` to ``TurnFinished``, asking ``drain`` before rounds; ``UsageFailure`` before any event."""
        started = perf_counter()
        self.text_so_far = ""
        prompt = self._prompt(ask)
        settings: GenerationSettings = ask.settings
        if settings.block_size == AUTO and settings.speculation:
            self.learn_costs()

        def poll() -> GenerationSettings | None:
            nonlocal settings
            changes = drain()
            if changes is None:
                return None
            for change in changes:
                settings = settings.with_changes(change)
            return settings

        turn = TurnEvents(self, ask, prompt, started)
        for progress in self.decoder.decode(prompt, poll):
            if isinstance(progress, Round):
                yield turn.step(progress)
            elif isinstance(progress, PrefillStarted):
                yield turn.begun(progress.num_reused)
            else:
                yield PrefillDone(ask.turn, progress.milliseconds)
        yield turn.finished()

    def forget(self) -> None:
        """Empties the caches, after an error that may have left them half written."""
        self.decoder.clear()

    def _prompt(self, ask: Ask) -> Prompt:
        if ask.prompt:
            prompt = self.tokenizer.raw_prompt(ask.prompt)
            size = self.decoder.target.config.vocab_size
            if (wrong := next((each for each in prompt.ids if not 0 <= each < size), None)) is not None:
                raise UsageFailure(f"No token has the id {wrong}.", f"Ids go from 0 to {size - 1}.")
        elif ask.messages and ask.messages[-1].content.strip():
            prompt = self.tokenizer.prompt(ask.messages, ask.settings.thinking)
        else:
            raise UsageFailure("The prompt is empty.", "Type a question.")
        limit = self.decoder.max_context
        if len(prompt.ids) >= limit:
            is_longest = limit >= self.decoder.target.config.max_context
            raise UsageFailure(
                f"The conversation has {len(prompt.ids)} tokens, the context holds {limit}.",
                "Start a new chat, or ask something shorter: the model takes no more."
                if is_longest
                else ("Start a new chat, ask something shorter, or make room for more: ", Option("max_context"), "."),
            )
        return prompt

    def _choose_rounds(self, plan: MemoryPlan, emit: Emit) -> None:
        """Lets the GPU run the rounds by itself, where it can; drafting in 8 bits, where that has room. Runs a few, so
        that the first question doesn't pay for first-time set-up."""
        target, drafting = self.decoder.target, plan.drafting
        prompt = self.tokenizer.prompt([Message("user", "Hi")], thinking=False)
        ways: list[Way] = []
        head, from_file = None, None
        if plan.device_rounds:
            from_file = kept_tiles(self.decoder, drafting.head_in_8_bits)
            derived = derived_tiles(self.decoder, drafting.head_in_8_bits)
            ways = [*([from_file] if from_file else []), *ways_with(*derived)]
            head = Int8Weight.of(target.head) if drafting.head_in_8_bits else None
        choose_rounds(self.decoder, prompt, head, ways, lambda what: emit(LoadProgress(what, 0, 0, remark=True)))
        if ways and from_file is None and self.runs_on_device and not card_of(self.decoder.device).was_measured:
            self.time_tiles(emit)

    @property
    def runs_on_device(self) -> bool:
        """Whether kernels run the rounds."""
        return isinstance(self.decoder.rounds, DeviceRounds)

    def time_tiles(self, emit: Emit) -> TimedTiles:
        """Chooses tiles by timing where ``runs_on_device``: at the first start on a card that nobody measured, or when
        somebody asks."""
        prompt = self.tokenizer.prompt([Message("user", "Hi")], thinking=False)
        found = time_tiles(
            self.decoder, prompt, lambda what: emit(LoadProgress(what, 0, 0, remark=True)),
            lambda done, total: emit(LoadProgress("choosing tiles by timing", done, total)),
        )  # fmt: skip
        emit(LoadProgress(found.describe(), 0, 0, remark=True))
        return found

    def learn_costs(self) -> None:
        """Learns what rounds cost here and lets the verify width follow, timing at most once (which empties the
        caches). A GPU's times are kept on disk, a busy CPU's are not. Host rounds on a GPU cost the same at any width:
        nothing to choose."""
        decoder = self.decoder
        if not self._timed:
            self._timed = True
            if isinstance(decoder.rounds, DeviceRounds):
                card = torch.cuda.get_device_name(decoder.device) if decoder.device.type == "cuda" else "cpu"
                bits = f"drafts in {8 if decoder.rounds.launches.drafts_in_8_bits else 16} bits"
                tiles = str(decoder.rounds.launches.target.tiles)
                others = (str(decoder.max_context), bits, tiles, torch.__version__)
                identity = (card, *self.weights, *others, *self._packed)
                self.costs = known_costs(identity, self._time_rounds)
            elif decoder.device.type == "cpu":
                self.costs = self._time_rounds()
            if self.costs is not None:
                decoder.use_policy(Auto(self.costs, fuses=decoder.rounds.fuses, lately=Lately()))

    def _time_rounds(self) -> CostTable | None:
        ids = self.tokenizer.prompt([Message("user", VARIED)], thinking=False).ids
        started = perf_counter()
        costs = time_rounds(self.decoder, list(dict.fromkeys(ids)))
        self.costs_seconds = perf_counter() - started
        return costs


def fitting_format(options: EngineOptions, context: int, device: torch.device) -> WeightFormat | None:
    """The format to find a published target in; None where the choice is made by what its files hold."""
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
    """Finds the pair, downloading what isn't here, its target in a format. Raises ``FetchCancelled`` when cancelled
    meanwhile."""
    emit(LoadProgress("finding the model", 0, 0))

    def progress(done: int, total: int, bytes_per_second: float) -> None:
        emit(LoadProgress("downloading", done, total, "bytes", bytes_per_second))

    fetching = Fetching(options.offline, progress=progress, cancelled=cancelled)
    return find_pair(options.target, options.drafter, fetching, weights)


def _held_in(target: TargetModel, weights: WeightFormat) -> str:
    """What products read, as ``EngineReady`` says it."""
    return str(target.dtype).removeprefix("torch.") if weights == "bf16" else weights


def use_fitting_threads(device: torch.device) -> None:
    """Few threads, one core left for the screen, unless ``OMP_NUM_THREADS`` says: OpenMP's spinning costs a lot."""
    if device.type == "cpu" and "OMP_NUM_THREADS" not in os.environ:
        torch.set_num_threads(max(1, min(MAX_CPU_THREADS, (os.cpu_count() or 2) - 1)))
