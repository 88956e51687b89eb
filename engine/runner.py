"""What the engine thread runs: loading a pair, and answering a question as a stream of events."""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from time import perf_counter

import torch

from .commands import AUTO, Adjust, Ask, EngineOptions, GenerationSettings, Message
from .decoding.decoder import Decoder, Prompt, Round
from .decoding.device_rounds import DeviceRounds
from .decoding.readings import FEWEST, look_at_guesses
from .errors import Option, UsageFailure
from .events import Event, LoadProgress, Notice, PrefillDone, TurnStarted
from .files.pinned_reader import make_buffers_beside
from .hub.fetching import FetchCancelled
from .hub.published_drafters import REPORTED, Reported
from .kernels.toolchain.card import card_of
from .kernels.toolchain.disk_cache import read_compiler_beside
from .limits import ANYTHING, ONCE_MORE, Limit, Limits, goes_in_circles
from .loading import checkpoint
from .loading.choose_rounds import (
    Tiling,
    choose_rounds,
    derived_tiles,
    kept_tiles,
    record_wide_rounds,
    time_tiles,
    ways_with,
)
from .loading.memory_plan import MemoryPlan
from .loading.pair_loader import Emit, LoadCancelled, PairLoader, thread_choice, use_fitting_threads
from .loading.precompile import Compiling
from .measured.costs import time_rounds, timed_passes
from .measured.store import known_costs
from .speculation.auto import Auto
from .speculation.costs import CostTable
from .speculation.live_costs import LiveCosts
from .tokenization.tokenizer import ChatTokenizer
from .turn_events import TurnEvents

VARIED = (
    "Read 120 measurements from a file, line by line; print the mean of every column, then say why it differs. "
    "My grandmother's garden had roses, tall old pear trees and one stone bench where we sat each summer evening; "
    "import numpy as np, while 3 > 2 else return (x + 7) * 4 / 9, und dann gehen wir schnell nach Hause!"
)
"""Costs are timed on the tokens of this text: they differ enough to choose experts as other texts do."""

LESS_ALIKE = "At a temperature above 0 it says other things: /temp 0.7"
"""What to do about an answer that goes round in circles."""

FAR_FEWER = 0.6
"""The share of the tokens that a drafter's makers report below which a chat says so: texts differ by less."""
OTHERWISE_TRAINED = "It may have been trained for another revision of the target, or another template: see selftest."

IDLE_MS, IDLE_ROWS = 50.0, 16
"""What a piece of work takes, at most, while nobody waits; and rows of the target that must fit into it."""

log = logging.getLogger(__name__)

Drain = Callable[[], list[Adjust] | None]
"""Returns the adjustments that arrived since it was last asked; None to end the answer."""


class Runner:
    """A loaded pair that answers one question at a time."""

    def __init__(
        self,
        decoder: Decoder,
        tokenizer: ChatTokenizer,
        fingerprints: tuple[str, str] = ("", ""),
        packed: tuple[str, ...] = (),
        limits: Limits = ANYTHING,
    ):
        """``fingerprints`` of target and drafter, and what is ``packed``, identify the pair whose costs are kept on
        disk."""
        self.decoder = decoder
        self.tokenizer = tokenizer
        self._fingerprints, self._packed, self._limits = fingerprints, packed, limits
        self._limits_told: set[Limit] = set()
        """Limits that have been told already."""
        self._timed = False
        """Whether costs were timed already, or nobody could time them."""
        self._threads = thread_choice(decoder.target) if decoder.device.type == "cpu" else None
        self._recording = (None if failed is None else Notice(failed) for failed in record_wide_rounds(decoder))
        """What is left to record before the first answer."""
        self.while_idle: Iterator[Notice | None] = self._recording
        """What can be done while nobody waits, in pieces of some ``IDLE_MS``: taking the next does one. It records wide
        rounds, and looks at the drafter's first guesses once there is a long text."""
        self._looked = decoder.drafter is None
        self.reported: Reported | None = None
        """What the drafter's makers say of it, where that is known."""
        self._num_threads = torch.get_num_threads()
        """Threads of this pair's rounds where nothing chooses them; PyTorch has one number for all pairs."""
        self.costs: CostTable | None = None
        """What rounds cost here; None where that isn't known, or not yet (``learn_costs``)."""

    @property
    def max_block_size(self) -> int:
        """Rows of the drafter's block, anchor included; 1 without a drafter."""
        drafter = self.decoder.drafter
        return drafter.config.block_size if drafter is not None else 1

    @classmethod
    def load(
        cls, options: EngineOptions, emit: Emit, cancelled: Callable[[], bool], compiler: Compiling | None = None
    ) -> Runner | None:
        """Loads and warms a pair, emitting progress; None when cancelled. ``compiler``: a process that stands by to
        compile kernels."""
        started = perf_counter()
        device = checkpoint.pick_device(options.device)
        if device.type == "cuda":
            read_compiler_beside()
            make_buffers_beside(device)
        use_fitting_threads(device)
        try:
            loaded = PairLoader(options, device, emit, cancelled).load(compiler)
        except (FetchCancelled, LoadCancelled):
            return None
        runner = cls(loaded.decoder, loaded.tokenizer, loaded.fingerprints, loaded.packed, loaded.folders.limits)
        runner.reported = REPORTED.get(loaded.folders.drafter_name or "")
        emit(LoadProgress("warming up", 0, 0))
        runner.prepare_rounds(loaded.plan, emit)
        if options.time_rounds:
            runner.learn_costs()
        ready = loaded.ready(runner.max_block_size, perf_counter() - started)
        emit(ready if runner.costs is None else replace(ready, pass_ms=timed_passes(runner.costs)))
        return runner

    def answer(self, ask: Ask, drain: Drain) -> Iterator[Event]:
        """Answers a question: yields ``TurnStarted`` to ``TurnFinished``, and asks ``drain`` before each round. A
        ``Notice`` of what the model says it does badly comes before all of it, once of each kind. Raises
        ``UsageFailure`` before any event of the answer."""
        yield from filter(None, self._recording)  # what is left of getting ready
        started = perf_counter()
        prompt = self._prompt(ask)
        settings: GenerationSettings = ask.settings
        if settings.block_size == AUTO and settings.speculation:
            self.learn_costs()
        under_system = any(message.role == "system" for message in ask.messages)
        for limit in (*(self._limits.of_systems if under_system else ()), *self._limits.met_by(*_asked(ask))):
            if limit not in self._limits_told:
                self._limits_told.add(limit)
                yield Notice(limit.says, limit.instead, ahead=True)

        def poll() -> GenerationSettings | None:
            nonlocal settings
            changes = drain()
            if changes is None:
                return None
            for change in changes:
                settings = settings.with_changes(change)
            return replace(settings, max_new_tokens=min(settings.max_new_tokens, end)) if end else settings

        fresh, rate = len(prompt.ids), 0.0  # tokens of the prompt that had to run, and how many a millisecond
        token_ids: list[int] = []
        end = 0  # tokens, of an answer that goes round in circles
        turn = TurnEvents(ask, prompt, started, self.tokenizer, self.decoder.drafter)
        self._take_threads()
        for progress in self.decoder.decode(prompt, poll, ask.compares, ask.turn):
            if isinstance(progress, Round):
                if self._threads is not None:
                    self._threads.observe_times(progress.total_ms, progress.verify_width)
                for token in () if end else progress.emitted:
                    token_ids.append(token)
                    if goes_in_circles(token_ids):
                        end = len(token_ids) + ONCE_MORE
                        break
                yield turn.step(progress)
            else:
                if isinstance(progress, TurnStarted):
                    fresh -= progress.num_reused_tokens
                elif isinstance(progress, PrefillDone):
                    rate = fresh / max(progress.milliseconds, 1e-3)
                yield turn.begun(progress) if isinstance(progress, TurnStarted) else progress
            self._take_threads()
        finished = turn.finished()
        if end and end <= finished.statistics.num_tokens < settings.max_new_tokens:
            finished = replace(finished, reason="stop")
            yield Notice("It went round in circles, and was stopped.", self._limits.circles or LESS_ALIKE)
        elif wrong := self._limits.broken_promise(finished.text, _said(ask)):
            yield Notice(wrong, self._limits.anew(_said(ask)))
        if not self._looked and len(prompt.ids) + len(token_ids) >= FEWEST and rate * IDLE_MS >= IDLE_ROWS:
            kept = finished.statistics.mean_acceptance_length
            text = [*prompt.ids, *token_ids]
            self._looked, self.while_idle = True, self._look_at_guesses(text, int(rate * IDLE_MS), kept)
        yield finished

    def _look_at_guesses(self, text: Sequence[int], rows: int, kept: float) -> Iterator[Notice | None]:
        """Yields None after each piece of work, and a notice where the drafter's config is read otherwise than it was
        trained, or where it ``kept`` far fewer tokens a round than its makers report. It must cost nobody anything, so
        it fails in silence."""
        assert self.decoder.drafter is not None
        if self.reported is not None and 0 < kept < FAR_FEWER * self.reported.tokens:
            yield Notice(
                f"The drafter guesses worse than was published. {self.reported.beside(kept)}", OTHERWISE_TRAINED
            )
        try:
            for remark in look_at_guesses(self.decoder.target, self.decoder.drafter, text, rows):
                yield None if remark is None else Notice(remark.says, "Take its config.json as its makers publish it.")
        except Exception:
            log.warning("first guesses could not be compared", exc_info=True)

    def _take_threads(self) -> None:
        """Gives a CPU's rounds the threads of this pair: another one may have run with its own since."""
        wanted = self._num_threads if self._threads is None else self._threads.current
        if self.decoder.device.type == "cpu" and torch.get_num_threads() != wanted:
            torch.set_num_threads(wanted)

    def forget(self) -> None:
        """Empties the caches, after an error that may have left them half written."""
        self.decoder.clear()

    def _prompt(self, ask: Ask) -> Prompt:
        if ask.prompt:
            prompt = self.tokenizer.raw_prompt(ask.prompt)
            size = self.decoder.target.config.vocab_size
            if (wrong := next((each for each in prompt.ids if not 0 <= each < size), None)) is not None:
                raise UsageFailure(f"No token has the id {wrong}.", f"Ids go from 0 to {size - 1}.")
        elif ask.messages:
            if (refusal := self._limits.refusal(*_asked(ask))) is not None:
                raise UsageFailure(*refusal)
            prompt = self.tokenizer.asked(ask)
        else:
            raise UsageFailure("Nothing was asked.", "Type a question.")
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

    def prepare_rounds(self, plan: MemoryPlan, emit: Emit) -> None:
        """Lets the GPU run the rounds by itself where it can, and draft in 8 bits where there is memory. Runs a few
        rounds, so that the first question doesn't pay for first-time set-up."""
        target, drafting = self.decoder.target, plan.drafting
        prompt = self.tokenizer.prompt([Message("user", "Hi")], thinking=False)
        ways: list[Tiling] = []
        head, from_file = None, None
        if plan.device_rounds:
            from_file = kept_tiles(self.decoder, drafting.head_in_8_bits)
            derived = derived_tiles(self.decoder, drafting.head_in_8_bits)
            ways = [*([from_file] if from_file else []), *ways_with(*derived)]
            drafter = self.decoder.drafter
            head = drafter.head_in_8_bits(target) if drafter is not None and drafting.head_in_8_bits else None
        choose_rounds(self.decoder, prompt, head, ways, lambda what: emit(LoadProgress(what, 0, 0, remark=True)))
        if ways and from_file is None and self.runs_on_device and not card_of(self.decoder.device).was_measured:
            self._time_tiles(emit)

    @property
    def runs_on_device(self) -> bool:
        """Whether kernels run the rounds."""
        return isinstance(self.decoder.rounds, DeviceRounds)

    def _time_tiles(self, emit: Emit) -> None:
        """Chooses the kernels' tiles by timing, where ``runs_on_device``: at the first start on a card that nobody
        measured."""
        prompt = self.tokenizer.prompt([Message("user", "Hi")], thinking=False)
        tiles = time_tiles(
            self.decoder, prompt, lambda what: emit(LoadProgress(what, 0, 0, remark=True)),
            lambda done, total: emit(LoadProgress("choosing tiles by timing", done, total)),
        )  # fmt: skip
        emit(LoadProgress(tiles.describe(), 0, 0, remark=True))

    def learn_costs(self) -> None:
        """Learns what rounds cost here and lets the verify width follow; times them at most once, which empties the
        caches. A GPU's times are kept on disk, a busy CPU's are not. Rounds that the host runs on a GPU cost the same
        at any width, so there is nothing to choose."""
        decoder = self.decoder
        if not self._timed:
            self._timed = True
            if isinstance(decoder.rounds, DeviceRounds):
                card = torch.cuda.get_device_name(decoder.device) if decoder.device.type == "cuda" else "cpu"
                bits = f"drafts in {8 if decoder.rounds.launches.drafts_in_8_bits else 16} bits"
                tiles = str(decoder.rounds.launches.target.tiles)
                others = (str(decoder.max_context), bits, tiles, torch.__version__)
                identity = (card, *self._fingerprints, *others, *self._packed)
                self.costs = known_costs(identity, self._time_rounds)
            elif decoder.device.type == "cpu":
                self.costs = self._time_rounds()
            if self.costs is not None:
                decoder.use_policy(Auto(self.costs, fuses=decoder.rounds.fuses, live=LiveCosts()))

    def _time_rounds(self) -> CostTable | None:
        ids = self.tokenizer.prompt([Message("user", VARIED)], thinking=False).ids
        return time_rounds(self.decoder, list(dict.fromkeys(ids)))


def _asked(ask: Ask) -> tuple[str, list[str]]:
    """The question of a conversation, and what was said before it, the newest last."""
    *earlier, question = _said(ask) or [""]
    return question, earlier


def _said(ask: Ask) -> list[str]:
    """Questions and answers of a conversation, without its system prompt."""
    return [message.content for message in ask.messages if message.role != "system"]
