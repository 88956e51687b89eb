"""Who reads the prompts of a loaded pair and runs its rounds: kernels, where they run on this card and compute what the
modules do. Of a kernel that fails people are told, and the next way is tried: other tiles, then PyTorch's modules."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from ..commands import GenerationSettings
from ..decoding.decoder import Decoder, Prompt
from ..decoding.device_rounds import DeviceRounds
from ..decoding.pass_check import passes_depart, prompts_depart
from ..decoding.round_launches import RoundLaunches
from ..kernels.decode.tiles import DraftTiles, TargetTiles, with_least_memory
from ..kernels.toolchain.card import card_of
from ..kernels.toolchain.jit import KernelFailure
from ..kernels.weights.int8 import Int8Weight

Say = Callable[[str], None]
Way = tuple[TargetTiles, DraftTiles]

ROUNDS = 24
"""Tokens of the answer that is tried out: a few rounds, whatever is accepted."""


class WrongResult(Exception):
    """Kernels ran, and computed something else than they should."""


def choose_rounds(decoder: Decoder, prompt: Prompt, head: Int8Weight | None, ways: Sequence[Way], say: Say) -> None:
    """Lets kernels do what they can, tried out on a prompt. ``ways``: tiles for the rounds, best first; none where the
    host is to run them. ``head``: an 8-bit copy of the target's, to draft in 8 bits."""
    if decoder.read is not decoder.target and (failed := _failure(lambda: _read_prompt(decoder, prompt))):
        say(f"{failed} Prompts are read by PyTorch's modules instead, more slowly.")
        decoder.read_by_modules()
    host = decoder.rounds
    for number, (tiles, draft_tiles) in enumerate(ways, start=1):
        launches = RoundLaunches(decoder, head, tiles, draft_tiles)
        failed = _failure(lambda launches=launches, tiles=tiles: _run_rounds(decoder, prompt, launches, tiles))  # type: ignore[misc]
        if failed is None:
            return
        decoder.use_rounds(host)
        more = "Other tiles are tried" if number < len(ways) else "Rounds are run by PyTorch's modules, more slowly"
        say(f"{failed} {more}.")
    _answer(decoder, prompt, ROUNDS)


def ways_with(tiles: TargetTiles, draft_tiles: DraftTiles) -> list[Way]:
    """These tiles, and the same with least shared memory where those are others."""
    least = with_least_memory(tiles), with_least_memory(draft_tiles)
    return [(tiles, draft_tiles), *([least] if least != (tiles, draft_tiles) else [])]


def _failure(work: Callable[[], None]) -> str | None:
    """A sentence about the kernel that failed, or None."""
    try:
        work()
    except KernelFailure as failure:
        return f"A kernel fails on this GPU: {failure}."
    except WrongResult as failure:
        return f"Kernels don't work on this GPU: {failure}."
    return None


def _read_prompt(decoder: Decoder, prompt: Prompt) -> None:
    _answer(decoder, prompt, 1)
    if not card_of(decoder.device).was_measured:
        _refuse(prompts_depart(decoder, prompt.ids))


def _run_rounds(decoder: Decoder, prompt: Prompt, launches: RoundLaunches, tiles: TargetTiles) -> None:
    launches.prepare()
    decoder.use_rounds(DeviceRounds(launches))
    _answer(decoder, prompt, ROUNDS)
    if not card_of(decoder.device).was_measured:
        _refuse(passes_depart(decoder, prompt.ids, tiles))


def _refuse(why: str | None) -> None:
    if why is not None:
        raise WrongResult(why)


def _answer(decoder: Decoder, prompt: Prompt, tokens: int) -> None:
    """So that the first question doesn't pay for first-time set-up either."""
    settings = GenerationSettings(max_new_tokens=tokens)
    try:
        for _ in decoder.decode(prompt, lambda: settings):
            pass
    finally:
        decoder.clear()
