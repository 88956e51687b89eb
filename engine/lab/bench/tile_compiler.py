"""Compiles what passes launch with other tiles, in processes beside the one that times them on the GPU. Each has the
pair on ``meta``, notes what its passes would launch, and puts what is new into Triton's cache on disk."""

from __future__ import annotations

import os
from collections.abc import Sequence
from concurrent.futures import Future, ProcessPoolExecutor
from dataclasses import dataclass, replace
from multiprocessing import get_context

from ...commands import WeightFormat
from ...kernels.toolchain.card import Card
from .pass_tiles import Kind, PassTiles

CORES_LEFT = 2
"""For the process that launches, and its driver's threads."""


@dataclass(frozen=True, slots=True)
class Order:
    """For whom is compiled."""

    shape: str
    weights: WeightFormat
    card: Card
    context: int
    """That there is room for."""


def compilers(order: Order) -> tuple[ProcessPoolExecutor, int]:
    """Processes that compile, and how many: they take ``compile_tiles``. Ends with ``end``."""
    count = max(1, len(os.sched_getaffinity(0)) - CORES_LEFT)
    return ProcessPoolExecutor(count, get_context("spawn"), _get_ready, (order,)), count


def end(pool: ProcessPoolExecutor) -> None:
    """At once: nobody waits for what is being compiled."""
    processes = list((pool._processes or {}).values())
    pool.shutdown(wait=False, cancel_futures=True)
    for process in processes:
        process.kill()


def wanted(pool: ProcessPoolExecutor, kinds: Sequence[Kind], tiles: PassTiles) -> Future[int]:
    """Of how many pieces of machine code it compiled; raises what the compiler says against such tiles."""
    return pool.submit(compile_tiles, tuple(kinds), tiles)


def wanted_at_once(pool: ProcessPoolExecutor, count: int, kinds: Sequence[Kind], tiles: PassTiles) -> list[Future[int]]:
    """All that passes launch, in so many shares."""
    return [pool.submit(compile_tiles, tuple(kinds), tiles, number, count) for number in range(count)]


_compiler: _Compiler | None = None


def _get_ready(order: Order) -> None:
    global _compiler
    os.environ["CUDA_VISIBLE_DEVICES"] = ""
    _compiler = _Compiler(order)


def compile_tiles(kinds: tuple[Kind, ...], tiles: PassTiles, number: int = 0, of: int = 1) -> int:
    assert _compiler is not None
    return _compiler.compile(kinds, tiles, number, of)


class _Compiler:
    def __init__(self, order: Order):
        import torch

        from ...decoding.decoder import Decoder
        from ...kernels.toolchain import compile_ahead
        from ...kernels.weights.int8 import Int8Weight
        from ...models.attention_backends import TRITON
        from ...models.packed import META, shape_of
        from .routing import force_routing, forced_scores
        from .shapes import read_shape
        from .whole_passes import WholePasses

        self._ahead = compile_ahead
        self._done: set[str] = set()
        compile_ahead.compile_for(order.card)
        shape = read_shape(order.shape)
        # Layers of a kind launch alike: those up to the first of every kind are enough.
        last = max(shape.target.layers.index(layer) for layer in set(shape.target.layers))
        config = replace(shape.target, layers=shape.target.layers[: last + 2])
        target = shape_of(config, torch.bfloat16, order.weights)
        target.use_attention([TRITON] * len(config.attention))
        target.prepare()
        if config.moe is not None:  # as when it is timed
            force_routing(target, forced_scores("uniform", len(config.layers), config.moe.num_experts, META))
        drafter = None
        if shape.drafter is not None:
            with META:
                drafter = shape.drafter.build().to(torch.bfloat16)
            drafter.use_attention([TRITON] * len(shape.drafter.layers))
            drafter.prepare()
        copy = Int8Weight.allocate(config.vocab_size, config.hidden_size, device=META)
        self._passes = WholePasses(Decoder(target, drafter, order.context), copy)

    def compile(self, kinds: tuple[Kind, ...], tiles: PassTiles, number: int, of: int) -> int:
        """What is new; of many shares one, whose others somebody else has."""

        def launch() -> None:
            for kind in kinds:
                self._passes.launch(kind, tiles)()

        noted = self._ahead.noted_launches(launch)
        mine = noted[number::of] if of > 1 else [each for each in noted if each not in self._done]
        for each in mine:
            self._ahead.compile_one(each)
        self._done.update(noted)
        return len(mine)
