"""Decides who runs the prompts and rounds of a loaded pair: kernels, where they run on this card and compute what the
modules do. A kernel that fails is reported, and the next way is tried: other tiles, then PyTorch's modules."""

from __future__ import annotations

import hashlib
import sys
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from time import perf_counter

import torch

from ..commands import GenerationSettings
from ..decoding.decoder import Decoder, Prompt
from ..decoding.device_rounds import DeviceRounds
from ..decoding.pass_check import passes_depart, products_depart, prompts_depart, wide_rows_depart
from ..decoding.round_launches import RoundLaunches
from ..kernels.decode.tiling.target_tiles import target_tiles
from ..kernels.decode.tiling.tiles import DraftTiles, TargetTiles, draft_tiles, with_least_memory
from ..kernels.toolchain.card import card_of
from ..kernels.toolchain.jit import MAX_ROWS, KernelFailure
from ..kernels.weights.int8 import Int8Weight
from ..kernels.weights.kinds import format_of
from ..measured.store import store, stored
from ..measured.tiles import SECONDS, Progress, Timed, as_data, read_data, tune
from ..models.packed import format_of_target, packed_weights

Say = Callable[[str], None]
Tiling = tuple[TargetTiles, DraftTiles]

NO_WIDE_ROUNDS = f"Copies are written in rounds of {MAX_ROWS} rows."
ROUNDS = 24
"""Tokens of the answer with which rounds are tried out: a few rounds, whatever is accepted."""


class WrongResult(Exception):
    """Raised when kernels ran and computed something else than they should."""


def choose_rounds(decoder: Decoder, prompt: Prompt, head: Int8Weight | None, ways: Sequence[Tiling], say: Say) -> None:
    """Lets kernels do what they can, which is tried out on a prompt. ``ways``: tiles for the rounds, best first; none
    where the host is to run them. ``head``: an 8-bit copy of the target's, to draft in 8 bits."""
    if decoder.device.type == "cuda" and (failed := _failure(lambda: _try_products(decoder))):
        say(f"{failed} Weights are unpacked before they multiply a prompt, more slowly.")
        decoder.disable_fused_unpacking()
    if decoder.read is not decoder.target and (failed := _failure(lambda: _read_prompt(decoder, prompt))):
        say(f"{failed} Prompts are read by PyTorch's modules instead, more slowly.")
        decoder.read_by_modules()
    host = decoder.rounds
    for number, (tiles, for_drafter) in enumerate(ways, start=1):
        launches = RoundLaunches(decoder, head, tiles, for_drafter)
        failed = _failure(lambda launches=launches, tiles=tiles: _run_rounds(decoder, prompt, launches, tiles))  # type: ignore[misc]
        if failed is None:
            _try_wide_pass(decoder, prompt, launches, say)
            return
        decoder.use_rounds(host)
        more = "Other tiles are tried" if number < len(ways) else "Rounds are run by PyTorch's modules, more slowly"
        say(f"{failed} {more}.")
    _answer(decoder, prompt, ROUNDS)


def ways_with(tiles: TargetTiles, for_drafter: DraftTiles) -> list[Tiling]:
    """Ways to try: these tiles, and the same with least shared memory, where that makes a difference."""
    least = with_least_memory(tiles), with_least_memory(for_drafter)
    return [(tiles, for_drafter), *([least] if least != (tiles, for_drafter) else [])]


def derived_tiles(decoder: Decoder, head_in_8_bits: bool) -> Tiling:
    """The tiles in the source, as they fit the card; the drafter's are for 8 bits if the head or the drafter is held in
    8 bits."""
    card, drafter = card_of(decoder.device), decoder.drafter
    in_8_bits = head_in_8_bits or (drafter is not None and drafter.in_8_bits)
    config, packed = decoder.target.config, format_of_target(decoder.target)
    sizes = None if drafter is None else drafter.config.sizes
    return target_tiles(config.moe, card, packed, config.sizes), draft_tiles(in_8_bits, card, sizes)


def kept_tiles(decoder: Decoder, head_in_8_bits: bool) -> Tiling | None:
    """The tiles that an earlier start timed on this card, for models of these shapes and formats; None where none were,
    and on cards that the source's tiles were measured on."""
    if card_of(decoder.device).was_measured:
        return None
    derived = derived_tiles(decoder, head_in_8_bits)
    return stored("tiles", identity_of(decoder, head_in_8_bits), lambda data: read_data(data, *derived))


@torch.inference_mode()
def time_tiles(decoder: Decoder, prompt: Prompt, say: Say, progress: Progress = lambda done, total: None) -> TimedTiles:
    """Times tiles for rounds that the device runs on a card that nobody measured, uses what is better, and keeps it on
    disk."""
    rounds, card, started = decoder.rounds, card_of(decoder.device), perf_counter()
    assert isinstance(rounds, DeviceRounds)
    launches, deadline = rounds.launches, started + SECONDS
    of_target = launches.target.trials()
    of_drafter = {} if launches.drafter is None else launches.drafter.trials()
    total = len(of_target) + len(of_drafter)
    tuned = tune(
        launches.target.tiles, of_target, card, decoder.device, deadline, lambda done, _all: progress(done, total)
    )
    before = launches.target.tiles, derived_tiles(decoder, launches.head is not None)[1]
    way, timed, complete = (tuned.tiles, before[1]), tuned.timed, tuned.complete
    if launches.drafter is not None:
        before, done = (before[0], launches.drafter.tiles), len(of_target)
        drafts = tune(
            launches.drafter.tiles, of_drafter, card, decoder.device, deadline,
            lambda more, _all: progress(done + more, total),
        )  # fmt: skip
        way, timed, complete = (way[0], drafts.tiles), [*timed, *drafts.timed], complete and drafts.complete
    if way != before:
        choose_rounds(decoder, prompt, launches.head, [way, before], say)
    if isinstance(decoder.rounds, DeviceRounds):
        in_use = decoder.rounds.launches
        draft_choices = None if in_use.drafter is None else in_use.drafter.tiles
        store("tiles", identity_of(decoder, in_use.head is not None), as_data(in_use.target.tiles, draft_choices))
    return TimedTiles(timed, perf_counter() - started, complete)


@dataclass(frozen=True, slots=True)
class TimedTiles:
    """The trials of other tiles for a pair's kernels, and whether there was time for all of them."""

    timed: list[Timed]
    seconds: float
    complete: bool

    def describe(self) -> str:
        """What was found, in a sentence."""
        changed = sum(each.now != each.before for each in self.timed)
        ended = "" if self.complete else ", until time was up"
        return f"Tiles of {len(self.timed)} kernels were timed in {self.seconds:.0f} s{ended}: {changed} changed."


def identity_of(decoder: Decoder, head_in_8_bits: bool) -> tuple[str, ...]:
    """All that the best tiles depend on: the card, shapes and formats of the weights, the compiler."""
    models = [decoder.target, *([] if decoder.drafter is None else [decoder.drafter])]
    shapes = [
        f"{name} {tuple(parameter.shape)} {parameter.dtype}"
        for model in models
        for name, parameter in model.named_parameters()
    ]
    digest = hashlib.sha256("\n".join(shapes).encode()).hexdigest()
    return (repr(card_of(decoder.device)), digest, f"drafts by {8 if head_in_8_bits else 16} bits", torch.__version__)


def _failure(work: Callable[[], None]) -> str | None:
    """Does ``work``; returns a sentence about the kernel that failed, or None."""
    try:
        work()
    except KernelFailure as failure:
        return f"A kernel fails on this GPU: {failure}."
    except WrongResult as failure:
        return f"Kernels don't work on this GPU: {failure}."
    return None


def _try_products(decoder: Decoder) -> None:
    """Tries a prompt's products out, unless an earlier start did so on this card with weights of these shapes."""
    weights = {f"{format_of(weight)} {tuple(weight.shape)}" for weight in packed_weights(decoder.target)}
    compiler = getattr(sys.modules.get("triton"), "__version__", "")
    activation = decoder.target.config.activation  # a gated product's own machine code
    identity = (repr(card_of(decoder.device)), *sorted(weights), activation, torch.__version__, compiler)
    if stored("unpacking", identity, lambda data: data["holds"] is True):
        return
    _refuse(products_depart(decoder.target))
    store("unpacking", identity, {"holds": True})


def _read_prompt(decoder: Decoder, prompt: Prompt) -> None:
    _answer(decoder, prompt, 1)
    if not card_of(decoder.device).was_measured:
        _refuse(prompts_depart(decoder, prompt.ids))


def _run_rounds(decoder: Decoder, prompt: Prompt, launches: RoundLaunches, tiles: TargetTiles) -> None:
    launches.prepare(wide=not card_of(decoder.device).was_measured)
    decoder.use_rounds(DeviceRounds(launches))
    _answer(decoder, prompt, ROUNDS)
    if not card_of(decoder.device).was_measured:
        _refuse(passes_depart(decoder, prompt.ids, tiles))


def _try_wide_pass(decoder: Decoder, prompt: Prompt, launches: RoundLaunches, say: Say) -> None:
    """Tries the wide pass out where nobody has seen one run. If it fails, copies go without it."""
    if launches.wide is None or card_of(decoder.device).was_measured:
        return
    if failed := _failure(lambda: _refuse(wide_rows_depart(launches, prompt.ids))):
        say(f"{failed} {NO_WIDE_ROUNDS}")
        launches.leave_wide_rounds_out()


def record_wide_rounds(decoder: Decoder) -> Iterator[str | None]:
    """Captures, piece by piece, what wide rounds need and ``choose_rounds`` left out. It must be over before the first
    answer begins, which would wait for a piece in its middle. Yields None after each piece; a sentence if one fails:
    copies then go without."""
    if not isinstance(decoder.rounds, DeviceRounds):
        return
    launches = decoder.rounds.launches
    try:
        for piece in launches.wide_pieces():
            launches.of(piece)
            yield None
    except Exception as error:  # whatever it is, narrower rounds are left
        launches.leave_wide_rounds_out()
        yield f"Wide rounds can't be recorded: {str(error).rstrip('.')}. {NO_WIDE_ROUNDS}"


def _refuse(why: str | None) -> None:
    if why is not None:
        raise WrongResult(why)


def _answer(decoder: Decoder, prompt: Prompt, tokens: int) -> None:
    """Answers a prompt, so that the first question doesn't pay for first-time set-up."""
    settings = GenerationSettings(max_new_tokens=tokens)
    try:
        for _ in decoder.decode(prompt, lambda: settings):
            pass
    finally:
        decoder.clear()
