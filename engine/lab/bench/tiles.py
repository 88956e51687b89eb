"""``python -m engine.lab.bench tiles``: looks for tiles that make a shape's passes faster. Every choice is tried in
whole passes, captured as rounds capture them; what it finds is in ``--out`` from the first gain on. Processes beside
compile what comes next."""

from __future__ import annotations

import argparse
import gc
import json
from collections.abc import Callable, Sequence
from concurrent.futures import FIRST_COMPLETED, Future, ProcessPoolExecutor, wait
from concurrent.futures.process import BrokenProcessPool
from dataclasses import asdict, dataclass, field
from pathlib import Path
from time import perf_counter
from typing import Any

import torch

from ...decoding.decoder import Decoder
from ...errors import EngineFailure
from ...kernels.decode.tiles import draft_tiles, target_tiles
from ...kernels.toolchain.card import Card, card_of
from ...kernels.toolchain.jit import HAS_TRITON, INTERPRETED, KernelFailure
from ...kernels.weights.int8 import Int8Weight
from ...kernels.weights.kinds import MAKERS
from ...loading.checkpoint import pick_device
from .ceiling import measure_ceiling
from .floor import floor_of
from .measure import Bench
from .pass_tiles import AnyTiles, Kind, Knob, PassTiles, as_data, read_tiles, source_lines, with_attention
from .report import table
from .shapes import SHAPES, TINY, Shape, read_shape
from .tile_compiler import Order, compilers, end, wanted, wanted_at_once
from .weights import random_pair
from .whole_passes import Room, WholePasses

PROG = "python -m engine.lab.bench tiles"
SECONDS = 100.0
BETTER = 0.997
"""A choice must take less than so much of the passes' time, twice: times of one choice differ by a thousandth."""
EVERY = 12
"""Choices after which the best is timed anew: a process gets slower by a hundredth, once and for good."""
LOST_FAITH = 0.8
"""How much less a choice's further neighbours are expected to gain for each that gained nothing."""
ROUNDS_OF_TURNS = 5
SLACK = 1024
"""Positions behind the contexts."""
LAST_SECONDS = 6.0
"""For comparing what was found with what was there, in turns."""
KINDS: tuple[Kind, ...] = ("one", "sixteen", "draft")
CALLED: dict[Kind, str] = {"one": "AR", "sixteen": "16 rows", "draft": "draft"}


@dataclass(slots=True)
class Results:
    """What the file holds."""

    shape: str
    weights: str
    device: str
    torch: str
    tiles: PassTiles
    before: dict[Kind, float] = field(default_factory=dict)
    """Milliseconds of passes, and with what was found, in turns."""
    now: dict[Kind, float] = field(default_factory=dict)
    rooms: list[tuple[str, float, float]] = field(default_factory=list)
    """Choice, microseconds in a pass, and what its bytes take."""
    gains: list[tuple[str, dict[str, Any], float]] = field(default_factory=list)
    """Choice, tiles, share of the time before: taken, in order."""
    tried: list[tuple[str, dict[str, Any], float]] = field(default_factory=list)
    failed: list[tuple[str, dict[str, Any], str]] = field(default_factory=list)
    trying: tuple[str, dict[str, Any]] | None = None
    """Left there by a process that did not come back."""
    complete: bool = False
    """Whether nothing was left to try."""
    seconds: float = 0.0

    def write(self, out: Path | None) -> None:
        if out is not None:
            held = asdict(self) | {"tiles": as_data(self.tiles)}
            out.with_suffix(".part").write_text(json.dumps(held))
            out.with_suffix(".part").replace(out)


@dataclass(slots=True)
class Line:
    """One choice's candidates."""

    room: Room
    waiting: list[AnyTiles]
    seen: set[AnyTiles]
    misses: int = 0
    """Since something was gained, and those under way."""

    @property
    def worth(self) -> float:
        return max(self.room.us - self.room.floor_us, 0.0) * LOST_FAITH**self.misses


@dataclass(frozen=True, slots=True)
class Candidate:
    line: Line
    tiles: AnyTiles


class Search:
    """From each choice to a better neighbour, wherever most is to be gained."""

    def __init__(self, passes: WholePasses, results: Results, pool: ProcessPoolExecutor | None, ahead: int, card: Card):
        self.passes, self.results, self._pool, self._ahead, self._card = passes, results, pool, ahead, card
        self._lines: list[Line] = []
        self._compiling: dict[Future[int], Candidate] = {}
        self._base: dict[tuple[tuple[Kind, ...], int], list[float]] = {}
        self._since = 0

    def run(self, bandwidth: float, deadline: float, save: Callable[[], None]) -> None:
        results = self.results
        wrong = self.passes.what_is_wrong(results.tiles)
        if wrong is not None:
            raise ValueError(f"The tiles in use are no measure: {wrong}.")
        rooms = self.passes.rooms(results.tiles, bandwidth)
        results.rooms = [(name_of(each.knob), each.us, each.floor_us) for each in rooms]
        left_alone = {_key(name, tiles) for name, tiles, *_ in results.failed}
        for room in rooms:
            line = Line(room, [], {room.knob.of(results.tiles)})
            self._lines.append(line)
            self._extend(line, left_alone)
        while perf_counter() < deadline and (candidate := self._next(deadline)) is not None:
            self._try(candidate, save)
            save()
        results.complete = not self._compiling and not any(line.waiting for line in self._lines)
        results.trying = None

    def _extend(self, line: Line, without: set[str] | None = None) -> None:
        """By what stands around its best."""
        knob, hidden = line.room.knob, self.passes.decoder.target.config.hidden_size
        found = [each for each in knob.around(knob.of(self.results.tiles), self._card, hidden) if each not in line.seen]
        line.seen |= set(found)
        line.waiting = [each for each in found if _key(name_of(knob), asdict(each)) not in (without or set())]

    def _next(self, deadline: float) -> Candidate | None:
        """The most promising of those that are compiled; others are sent to be."""
        while True:
            while len(self._compiling) < self._ahead and (best := self._most_promising()) is not None:
                candidate = Candidate(best, best.waiting.pop(0))
                best.misses += 1
                if self._pool is None:
                    return candidate
                try:
                    future = wanted(self._pool, best.room.knob.kinds(), self._put(candidate))
                except BrokenProcessPool:  # then what is launched first is compiled there
                    self._pool = None
                    return candidate
                self._compiling[future] = candidate
            if not self._compiling:
                return None
            done, _ = wait(self._compiling, max(0.0, deadline - perf_counter()), FIRST_COMPLETED)
            if not done:
                return None
            chosen = max(done, key=lambda each: self._compiling[each].line.worth)
            candidate = self._compiling.pop(chosen)
            error = chosen.exception()
            if error is None or isinstance(error, BrokenProcessPool):
                return candidate
            self._fail(candidate, error)

    def _most_promising(self) -> Line | None:
        return max((line for line in self._lines if line.waiting), key=lambda line: line.worth, default=None)

    def _put(self, candidate: Candidate) -> PassTiles:
        return candidate.line.room.knob.put(self.results.tiles, candidate.tiles, self._card)

    def _try(self, candidate: Candidate, save: Callable[[], None]) -> None:
        line, results = candidate.line, self.results
        knob, tiles = line.room.knob, self._put(candidate)
        kinds, contexts = knob.kinds(), 1 if knob.owner else len(self.passes.contexts)
        results.trying = (name_of(knob), asdict(candidate.tiles))
        save()
        try:
            if self._since % EVERY == 0:
                self._base.clear()
            self._since += 1
            key = kinds, contexts
            if key not in self._base:
                self._base[key] = self.passes.times(kinds, results.tiles, contexts)
            share = _share(self.passes.times(kinds, tiles, contexts), self._base[key])
            if share < BETTER:
                before = self.passes.times(kinds, results.tiles, contexts)
                share = max(share, _share(self.passes.times(kinds, tiles, contexts), before))
            wrong = self.passes.what_is_wrong(tiles) if share < BETTER and knob.owner != "drafter" else None
        except KernelFailure as error:
            self._fail(candidate, error)
            return
        if wrong is not None:
            if (by_now := self.passes.what_is_wrong(results.tiles)) is not None:
                # Something that was tried before wrote where it may not, and what was timed since is no measure.
                raise RuntimeError(f"the tiles in use are wrong by now, too: {by_now}")
            self._fail(candidate, ValueError(wrong))
            return
        results.tried.append((name_of(knob), asdict(candidate.tiles), share))
        if share < BETTER:
            results.tiles, line.misses = tiles, 0
            results.gains.append((name_of(knob), asdict(candidate.tiles), share))
            self._base.clear()
            waiting = line.waiting
            self._extend(line)
            line.waiting += waiting
        results.trying = None

    def _fail(self, candidate: Candidate, error: BaseException) -> None:
        first = (str(error).splitlines() or [""])[0][:200]
        what = name_of(candidate.line.room.knob), asdict(candidate.tiles), f"{type(error).__name__}: {first}"
        self.results.failed.append(what)
        self.results.trying = None


def name_of(knob: Knob) -> str:
    return f"{knob.owner or 'attention'}.{knob.name}"


def _key(name: str, tiles: dict[str, Any]) -> str:
    return json.dumps([name, tiles], sort_keys=True)


def _share(times: Sequence[float], base: Sequence[float]) -> float:
    """A pass counts as much as any other."""
    return sum(now / before for now, before in zip(times, base, strict=True)) / len(base)


def compare(passes: WholePasses, before: PassTiles, now: PassTiles, kinds: Sequence[Kind]) -> tuple[list[float], ...]:
    """Milliseconds of passes with both, in turns: the best of each."""
    turns = [(passes.times(kinds, before), passes.times(kinds, now)) for _ in range(ROUNDS_OF_TURNS)]
    return tuple([min(times) for times in zip(*each, strict=True)] for each in zip(*turns, strict=True))


def make_parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog=PROG, description="Look for tiles that make a shape's passes faster.")
    parser.add_argument("--shape", choices=SHAPES, help="26B-A4B on a GPU, tiny on a CPU")
    parser.add_argument("--weights", choices=list(MAKERS), default="bf16", help="how the target's lie in memory")
    parser.add_argument("--device", choices=("auto", "cpu", "cuda"), default="auto")
    parser.add_argument("--seconds", type=float, default=SECONDS, metavar="N", help="for everything together")
    parser.add_argument("--contexts", type=int, nargs="+", default=[128, 2048], metavar="N", help="behind which it is")
    parser.add_argument("--tiles", type=Path, metavar="FILE", help="begin with what an earlier call found")
    parser.add_argument("--out", type=Path, metavar="FILE", help="for the findings, from the first on")
    return parser


def run(arguments: Sequence[str]) -> int:
    """Searches and prints; returns the exit code, 1 when it broke on the way."""
    started = perf_counter()
    options = make_parser().parse_args(arguments)
    device = pick_device(options.device)
    if not HAS_TRITON or (device.type == "cpu" and not INTERPRETED):
        raise ValueError("kernels need a GPU and Triton; on a CPU, TRITON_INTERPRET=1 runs them slowly")
    shape = read_shape(options.shape or (TINY if device.type == "cpu" else "26B-A4B"))
    card, pool, ahead = card_of(device), None, 1
    try:
        if device.type == "cuda":
            context = max(options.contexts) + SLACK
            pool, count = compilers(Order(shape.name, options.weights, card, context))
            ahead = 2 * count
        return _search(options, shape, device, card, pool, ahead, started)
    finally:
        if pool is not None:
            end(pool)


@torch.inference_mode()
def _search(
    options: argparse.Namespace,
    shape: Shape,
    device: torch.device,
    card: Card,
    pool: ProcessPoolExecutor | None,
    ahead: int,
    started: float,
) -> int:
    now = PassTiles(
        target_tiles(shape.target.moe, card, options.weights, shape.target.sizes),
        None if shape.drafter is None else draft_tiles(True, card, shape.drafter.sizes),
    )
    before = with_attention(now, shape.target.attention)
    tiles = before if options.tiles is None else read_tiles(options.tiles, before)
    kinds = KINDS if shape.drafter is not None else KINDS[:2]
    begun = [] if pool is None else wanted_at_once(pool, ahead // 2, kinds, tiles)
    ceiling = measure_ceiling(device)
    target, drafter = random_pair(shape, device, weights=options.weights)
    decoder = Decoder(target, drafter, max(options.contexts) + SLACK)
    bench = Bench(decoder, floor_of(shape, target, True), ceiling)  # caches full of noise
    bench.force("uniform", 16)
    copy = None if drafter is None else Int8Weight.of(target.head)
    passes = WholePasses(decoder, copy, options.contexts)
    where = torch.cuda.get_device_name(device) if device.type == "cuda" else "cpu"
    results = Results(shape.name, options.weights, where, torch.__version__, tiles)
    if options.tiles is not None:
        held = json.loads(options.tiles.read_text("utf-8"))
        results.failed = [tuple(each) for each in held.get("failed", [])]
        if held.get("trying"):
            results.failed.append((*held["trying"], "the process did not come back"))

    def save() -> None:
        results.seconds = perf_counter() - started
        results.write(options.out)

    wait(begun, max(0.0, started + options.seconds / 2 - perf_counter()))
    gc.collect()
    gc.freeze()  # each capture of a graph looks for garbage, which takes longer than what is captured
    search, broken = Search(passes, results, pool, ahead, card), False
    try:
        search.run(ceiling.copy, started + options.seconds - LAST_SECONDS, save)
        times = compare(passes, before, results.tiles, kinds)
        results.before, results.now = (dict(zip(kinds, each, strict=True)) for each in times)
    except (RuntimeError, EngineFailure) as error:  # of the GPU, for good: what was found is in the file
        print(f"the search broke at {results.trying}: {str(error).splitlines()[0]}; go on with --tiles {options.out}")
        broken = True
    save()
    _print(results, before)
    return 1 if broken else 0


def _print(results: Results, before: PassTiles) -> None:
    found = results.tiles
    left = "nothing left to try" if results.complete else "out of time"
    print(
        f"{results.shape} in {results.weights} on {results.device}: {len(results.tried)} choices tried,"
        f" {len(results.failed)} failed, {len(results.gains)} taken, {results.seconds:.0f} s, {left}"
    )
    print(
        table(("choice", "us in a pass", "its bytes"), [(n, f"{us:.0f}", f"{fl:.0f}") for n, us, fl in results.rooms])
    )
    for name, tiles, share in results.gains:
        print(f"{name}: {share:.4f} with {' '.join(f'{key}={value}' for key, value in tiles.items())}")
    for kind, ms in results.now.items():
        old = results.before[kind]
        print(f"{CALLED[kind]}: {old:.3f} ms before, {ms:.3f} ms now, {ms / old:.4f}")
    print(source_lines(found.target))
    if found.drafter is not None and found.drafter != before.drafter:
        print(source_lines(found.drafter))
    for attention in (found.window, found.full):
        if attention not in (None, before.window, before.full):
            print(attention)
