"""A pair's passes as rounds launch them, with any tiles: timed whole, as captured graphs over all layers. So every
product has cold weights, stands between its neighbours and starts early, and what is found is what a pass gains."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial
from statistics import median
from typing import Any

import torch
from torch import Tensor

from ..decoding.cuda_graphs import captured
from ..decoding.decoder import Decoder
from ..kernels.decode.tiles import DraftTiles, TargetTiles
from ..kernels.decode.trials import Launch, Trial
from ..kernels.round.choices import Choices
from ..kernels.toolchain.card import Card, card_of
from ..kernels.toolchain.jit import MAX_ROWS, KernelFailure
from ..kernels.weights.int8 import Int8Weight
from ..kernels.weights.weight import Weight
from ..models.drafter import DraftPass, RoundRows
from ..models.packed import format_of_target
from ..models.target import DecodePass
from ..tuning.timing import time_calls, time_launches
from .pass_tiles import ROUTER, Kind, Knob, PassTiles

REPLAYS = 9
DRAFTED = MAX_ROWS - 1
INGESTED = 8
"""Rows that a draft takes in before it drafts."""
LAUNCH_US = 2.0
"""What a launch that reads little is thought to cost a pass: where there is nothing to time it by."""
FARTHEST = 0.15
"""How far logits may be from those of other tiles, as a share of their norm: bf16 rounds those of random weights by
0.007 to 0.046 (MEASUREMENTS.md)."""


@dataclass(frozen=True, slots=True)
class Room:
    """What a choice could save at most."""

    knob: Knob
    us: float
    """In a pass."""
    floor_us: float


class WholePasses:
    """Of one decoder, its caches filled by somebody else."""

    def __init__(self, decoder: Decoder, copy: Int8Weight | None, contexts: Sequence[int] = (128, 2048)):
        """``copy``: of the target's head in 8 bits, if it drafts in 8 bits. ``contexts``: what stands before the rows,
        of the first for products, of all for attention."""
        self.decoder, self.device, self._copy = decoder, decoder.device, copy
        self.contexts = tuple(contexts)
        self._cursor, self._rows, self._start, self._count = (
            torch.zeros(1, dtype=torch.int32, device=self.device) for _ in range(4)
        )
        vocab = decoder.target.config.vocab_size
        self._ids = torch.arange(1, MAX_ROWS + 1, device=self.device) * 97 % vocab
        self._logits: Tensor | None = None
        """Of the first row, with the tiles that were checked first."""

    @property
    def card(self) -> Card:
        return card_of(self.device)

    def target(self, tiles: PassTiles) -> DecodePass:
        tiles.take_effect(self.decoder.target.config.attention)
        taps = () if self.decoder.drafter is None else self.decoder.drafter.config.target_layer_ids
        made = self.decoder.target.decode_pass(self.decoder.cache, self._cursor, self._rows, taps, tiles.target)
        made.ids = self._ids
        return made

    def drafter(self, tiles: PassTiles) -> DraftPass:
        drafter, cache, target = self.decoder.drafter, self.decoder.draft_cache, self.decoder.target
        assert drafter is not None and cache is not None
        tiles.take_effect(target.config.attention)
        taps = len(drafter.config.target_layer_ids) * target.config.hidden_size
        features = torch.zeros(MAX_ROWS, taps, dtype=target.dtype, device=self.device)
        tokens = torch.zeros(MAX_ROWS, dtype=torch.int64, device=self.device)
        rows = RoundRows(self._cursor, self._rows, self._start, self._count)
        grows = target.config.moe is None and target.verifies_trees and not drafter.chained
        choices = Choices.allocate(self.device) if grows else None
        return drafter.draft_pass(target, cache, features, tokens, rows, tiles.drafter, self._copy, choices)

    def launch(self, kind: Kind, tiles: PassTiles) -> Launch:
        """A whole pass."""
        if kind == "draft":
            made = self.drafter(tiles)

            def draft() -> None:
                made.ingest()
                made.draft(DRAFTED)

            return draft
        return partial(self.target(tiles).forward, 1 if kind == "one" else MAX_ROWS)

    def times(self, kinds: Sequence[Kind], tiles: PassTiles, contexts: int = 1, replays: int = REPLAYS) -> list[float]:
        """Milliseconds of each kind behind each of the first ``contexts``. ``KernelFailure``: such tiles don't run;
        ``RuntimeError``: nothing does any more."""
        found = []
        for kind in kinds:
            self.pose(kind, self.contexts[0])
            launch = self.launch(kind, tiles)  # which holds what the graph writes
            try:
                replay = captured(launch, self.device, kind)
            except KernelFailure:
                if self.device.type == "cuda":
                    torch.cuda.synchronize(self.device)
                raise
            for context in self.contexts[:contexts]:
                self.pose(kind, context)
                time_calls(replay, 2, self.device)
                found.append(median(time_calls(replay, replays, self.device)))
        return found

    def pose(self, kind: Kind, context: int) -> None:
        self._cursor.fill_(context)
        self._rows.fill_(1 if kind == "one" else MAX_ROWS)
        self._start.fill_(context - INGESTED)
        self._count.fill_(INGESTED)

    def what_is_wrong(self, tiles: PassTiles) -> str | None:
        """With tiles of the target's: whether a row alone has other bits than among sixteen, or logits that are far
        from those of the tiles that were asked about first."""
        passes, found = self.target(tiles), []
        for context in self.contexts:
            alike = []
            for kind, most in (("sixteen", MAX_ROWS), ("one", 1)):
                self.pose("one" if kind == "one" else "sixteen", context)
                passes.forward(most)
                assert passes.out.logits is not None
                alike.append(passes.out.logits[0].clone())
            if not torch.equal(*alike):
                return "a row alone has other bits than among sixteen"
            found.append(alike[0])
        logits = torch.cat(found)
        if self._logits is None:
            self._logits = logits
        distance = (logits - self._logits).norm() / self._logits.norm()
        return None if float(distance) < FARTHEST else f"logits are {float(distance):.3f} away"

    def rooms(self, tiles: PassTiles, bandwidth: float) -> list[Room]:
        """All choices, with what each costs a pass alone and what its weights' bytes do, at so many of them a second:
        those first that could gain most."""
        config, drafter = self.decoder.target.config, self.decoder.drafter
        layers = len(config.layers)
        target = self.target(tiles)
        found = [self._room(Knob("target", n, t), t, tiles.target, bandwidth) for n, t in target.trials().items()]
        others = [(Knob("target", "rows", None), 2 * layers)]
        if config.moe is not None and config.intermediate_size == 0:
            others.append((Knob("target", "router", ROUTER), layers))
        elif config.moe is not None:  # beside gate and up, whose steps it shares, and experts' gate and up
            packed = format_of_target(self.decoder.target) != "bf16"
            others.append((Knob("target", "down", Trial(_nothing, packed=packed, splits=True, depth=False)), layers))
        windows = sum(layer.window is not None for layer in config.attention)
        others += [(Knob("", "window", None), windows), (Knob("", "full", None), 2 * (layers - windows))]
        found += [Room(knob, count * LAUNCH_US, 0.0) for knob, count in others if count]
        if drafter is not None and tiles.drafter is not None:
            trials = self.drafter(tiles).trials()
            found += [self._room(Knob("drafter", n, t), t, tiles.drafter, bandwidth) for n, t in trials.items()]
        return sorted(found, key=lambda room: room.floor_us - room.us)

    def _room(self, knob: Knob, trial: Trial[Any], tiles: TargetTiles | DraftTiles, bandwidth: float) -> Room:
        launches = trial.launches(tiles)
        us = time_launches(launches, self.device, REPLAYS)
        return Room(knob, us * len(launches), sum(map(self._bytes, launches)) / bandwidth * 1e6)

    def _bytes(self, launch: Callable[[], None]) -> float:
        """Of the weights that a product is bound to; of experts, those that sixteen rows choose at random, or one."""
        moe, given = self.decoder.target.config.moe, getattr(launch, "args", ())
        whole = sum(each.nbytes for each in given if isinstance(each, Weight))
        if moe is None or not any(isinstance(each, Weight) and len(each.shape) == 3 for each in given):
            return whole
        rows = 1 if 1 in [each for each in given if isinstance(each, int)] else MAX_ROWS
        return whole * (1 - (1 - moe.top_k / moe.num_experts) ** rows)


def _nothing(_tiles: object) -> list[Launch]:
    return []
