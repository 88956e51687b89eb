"""The command line of the bench; it needs the engine's own dependencies and nothing else."""

from __future__ import annotations

import argparse
import json
import sys
from collections.abc import Callable, Sequence
from contextlib import nullcontext
from dataclasses import asdict, dataclass, field
from itertools import product
from pathlib import Path
from time import perf_counter
from typing import Any

import torch

from ...commands import AUTO, FORMAT_NAMES, BlockSize, WeightFormat
from ...decoding.decoder import Decoder
from ...decoding.device_rounds import DeviceRounds
from ...errors import DeviceFailure, EngineFailure
from ...kernels.decode.tiling.target_tiles import target_tiles
from ...kernels.toolchain.card import card_of
from ...kernels.toolchain.jit import INTERPRETED
from ...kernels.weights.kinds import MAKERS
from ...loading.checkpoint import compute_dtype, load_drafter, load_target, pick_device
from ...loading.memory_plan import MemoryPlan, available_memory, gigabytes, plan_of
from ...loading.pair_loader import use_fitting_threads
from ...loading.stored_format import stored_format
from ...measured.ceiling import Ceiling, measure_ceiling
from ...models.drafter import Drafter
from ...models.packed import format_of_target, shape_of
from ...models.target import TargetModel
from .compiling import compiling_beside
from .floor import floor_of
from .measure import Bench, PrefillFigures, RoundFigures, longest
from .policy import PolicyFigures, measure_policies, policy_table
from .profile import RoundProfile, profile_prompt, profile_rounds
from .report import ceiling_line, prefill_table, round_tables
from .routing import ROUTINGS, Routing
from .script import ScriptedLaunches
from .shapes import SHAPES, TINY, Shape, read_shape, shape_of_checkpoint, without_stops
from .weights import random_pair

PROG = "python -m engine.lab.bench"
WIDTHS = (1, 2, 4, 8, 12, 16)
CONTEXTS = (128, 2048, 32_768)
PROMPTS = (128, 2048, 8000)
TINY_LENGTHS = (48, 96)
"""Contexts and prompts, in tokens, of the tiny shape: within its first window and past it."""
ACCEPTANCE = 7.8
"""Tokens per block of 16 that the 26B-A4B's drafter is reported to reach on HumanEval."""


HOST, DEVICE = "host", "device"
"""Who may run the rounds: the host, or the device, which drafts in 8 bits as in the chat, or in 16."""

Say = Callable[[str], None]


@dataclass(slots=True)
class Results:
    """Everything that one run measured, as it goes into JSON."""

    device: str
    dtype: str
    torch: str
    shape: str
    weights: str
    num_layers: int
    ceiling: Ceiling
    load_seconds: float
    load_bytes: int
    """Bytes of weights that were read; 0 for random ones, which are made."""
    rounds_by: str = ""
    prepare_seconds: float = 0.0
    rounds: list[RoundFigures] = field(default_factory=list)
    policies: list[PolicyFigures] = field(default_factory=list)
    prompts: list[PrefillFigures] = field(default_factory=list)
    profiles: list[RoundProfile] = field(default_factory=list)

    def to_dict(self) -> dict[str, Any]:
        figures = asdict(self)
        measured: list[RoundFigures | PolicyFigures] = [*self.rounds, *self.policies]
        for plain, each in zip([*figures["rounds"], *figures["policies"]], measured, strict=True):
            plain["tokens_per_second"] = each.tokens_per_second
        return figures


def _block(text: str) -> BlockSize:
    return AUTO if text == AUTO else int(text)


def make_parser(prog: str) -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog=prog,
        usage="%(prog)s [flags]",
        description="Measure decoding on this machine: rounds and prompts of a shape with random weights, or of a"
        " checkpoint.",
    )
    what = parser.add_argument_group("what to measure")
    what.add_argument("--shape", choices=SHAPES, help="random weights (26B-A4B on a GPU, tiny on a CPU)")
    what.add_argument(
        "--weights", choices=[AUTO, *MAKERS], default=AUTO, help="of the target; auto: as stored, or bf16"
    )
    what.add_argument("--layers", type=int, metavar="N", help="only the target's first N layers")
    what.add_argument("--target", type=Path, metavar="FOLDER", help="a checkpoint instead of random weights")
    what.add_argument("--draft", type=Path, metavar="FOLDER", help="its drafter")
    what.add_argument("--device", choices=("auto", "cpu", "cuda"), default="auto")
    how = parser.add_argument_group("how")
    how.add_argument("--widths", type=int, nargs="*", default=list(WIDTHS), metavar="N", help="rows per pass")
    how.add_argument("--contexts", type=int, nargs="+", metavar="N")
    how.add_argument("--prompts", type=int, nargs="*", metavar="N", help="prompt lengths; none: no prompts")
    how.add_argument("--routing", choices=ROUTINGS, nargs="+", default=list(ROUTINGS), help="forced on the experts")
    how.add_argument(
        "--acceptance", type=float, nargs="+", default=[ACCEPTANCE], metavar="X", help="tokens per full block"
    )
    how.add_argument(
        "--policy",
        type=_block,
        nargs="+",
        default=[],
        metavar="auto|N",
        help="whole answers with the width chosen every round, or fixed (1: plain decoding), at every --acceptance",
    )
    how.add_argument("--count", type=int, default=64, metavar="N", help="rounds per figure")
    how.add_argument(
        "--rounds",
        choices=("auto", HOST, DEVICE),
        default="auto",
        help="who runs them: PyTorch step by step, or the device itself (a GPU's default)",
    )
    how.add_argument("--profile", action="store_true", help="each kernel's time in a round")
    parser.add_argument("--json", action="store_true", help="print one JSON object instead of tables")
    parser.add_argument("--out", type=Path, metavar="FILE", help="write the JSON there as well")
    return parser


def _check(options: argparse.Namespace, device: torch.device) -> None:
    """Raises ``ValueError`` for options that would break off later, or measure something else than they say."""
    for name in ("count", "layers", "contexts", "prompts", "widths"):
        given = getattr(options, name)
        values = given if isinstance(given, list) else [1 if given is None else given]
        if min(values, default=1) < 1:
            raise ValueError(f"--{name} must be 1 or more, not {min(values)}")
    if options.rounds == DEVICE and device.type != "cuda" and not INTERPRETED:
        raise ValueError(f"--rounds {DEVICE} needs a GPU; without one the {HOST} runs them")
    if options.out is not None and not options.out.absolute().parent.is_dir():
        raise ValueError(f"there is no folder {options.out.absolute().parent} to write --out to")


def _check_lengths(options: argparse.Namespace, shape: Shape) -> None:
    """Raises ``ValueError`` for texts longer than the target takes: their caches may be larger than the memory."""
    for name in ("contexts", "prompts"):
        if (most := max(getattr(options, name) or [0])) > shape.target.max_context:
            raise ValueError(f"--{name} {most}: {shape.name} takes no more than {shape.target.max_context} tokens")


def _context(options: argparse.Namespace) -> int:
    """Tokens for which there must be room."""
    return longest(options.contexts, options.prompts, options.count, max((*options.widths, 16)))


def _check_room(options: argparse.Namespace, shape: Shape, device: torch.device) -> None:
    """Raises ``DeviceFailure`` for what the device has no room for, with the formats that would fit, before anything is
    loaded."""

    def plan(weights: WeightFormat) -> MemoryPlan:
        model = shape_of(shape.target, compute_dtype(device), weights)
        runs = model.has_decode_pass and device.type == "cuda" and options.rounds != HOST
        room = available_memory(device)
        return plan_of(model, shape.drafter, _context(options), device, weights, room, device_rounds=runs)

    wanted = plan(options.weights)
    if wanted.fits:
        return
    fitting = [each for each in map(plan, MAKERS) if each.fits]
    ways = [f"--weights {each.weights} ({gigabytes(each.allocated)})" for each in fitting]
    what = f"{shape.name} doesn't fit in {FORMAT_NAMES[wanted.weights]}: {wanted.describe()}."
    raise DeviceFailure(what, f"What would: {', '.join([*ways, '--layers N, its first layers alone'])}.")


def run(arguments: Sequence[str], prog: str = PROG) -> int:
    """Measures and prints; returns the exit code. Raises ``EngineFailure`` or ``ValueError`` for what can't be
    measured."""
    options = make_parser(prog).parse_args(arguments)
    device = pick_device(options.device)
    _check(options, device)
    use_fitting_threads(device)
    name = options.shape or ("26B-A4B" if device.type == "cuda" else TINY)
    if options.target is not None:
        shape = shape_of_checkpoint(options.target, options.draft)
    else:
        shape = read_shape(name, options.layers)
    if options.weights == AUTO:
        options.weights = "bf16" if options.target is None else stored_format(options.target).weights
    _check_lengths(options, shape)
    tiny = shape.name == TINY
    options.contexts = options.contexts or list(TINY_LENGTHS if tiny else CONTEXTS)
    options.prompts = (TINY_LENGTHS if tiny else PROMPTS) if options.prompts is None else options.prompts
    _check_room(options, shape, device)
    results = measure(shape, options, device)
    if options.out is not None:
        options.out.write_text(json.dumps(results.to_dict(), indent=1))
    if options.json:
        print(json.dumps(results.to_dict()))
    return 0


def measure(shape: Shape, options: argparse.Namespace, device: torch.device) -> Results:
    """Runs what the options ask for, printing tables as they come unless JSON is wanted."""

    def say(text: str) -> None:
        if not options.json:
            print(text, flush=True)

    by_device = options.rounds == DEVICE or (options.rounds == "auto" and device.type == "cuda")
    ahead = by_device and options.target is None and not INTERPRETED
    beside = compiling_beside(shape, _context(options), device, options.weights) if ahead else nullcontext()
    with beside as compiling:
        ceiling = measure_ceiling(device)
        started = perf_counter()
        target, drafter = _make_pair(shape, options, device)
        seconds = perf_counter() - started
        while compiling is not None and not compiling.finished(1.0):
            pass
    results = Results(
        device=torch.cuda.get_device_name(device) if device.type == "cuda" else "cpu",
        dtype=str(target.dtype).removeprefix("torch."),
        torch=torch.__version__,
        shape=shape.name,
        weights=options.weights,
        num_layers=len(shape.target.layers),
        ceiling=ceiling,
        load_seconds=seconds,
        load_bytes=0 if options.target is None else sum(p.nbytes for p in target.parameters()),
    )
    model = f"{shape.name} in {results.weights}, {results.num_layers} layers"
    say(f"{results.device}, {results.dtype}, {model}, torch {results.torch}")
    say(ceiling_line(ceiling))
    if results.load_bytes:
        say(f"loaded in {seconds:.1f} s, {results.load_bytes / seconds / 1e9:.2f} GB/s")
    decoder = Decoder(target, drafter, _context(options))
    results.rounds_by = DEVICE if by_device else HOST
    bench = Bench(decoder, floor_of(shape, target, by_device), ceiling)
    bench.force(options.routing[0], 1)  # before rounds are captured, which then read these scores
    results.prepare_seconds = choose_rounds(bench, results.rounds_by)
    say(f"rounds by the {results.rounds_by}, made ready in {results.prepare_seconds:.1f} s")
    _measure_rounds(bench, options, results, say)
    _measure_policies(bench, options, results, say)
    if options.prompts:
        results.prompts = [bench.prefill(rows) for rows in options.prompts]
        say(prefill_table(results.prompts))
    if options.profile:
        _profile(bench, options, results, say)
    return results


def _make_pair(shape: Shape, options: argparse.Namespace, device: torch.device) -> tuple[TargetModel, Drafter | None]:
    if options.target is None:
        return random_pair(shape, device, weights=options.weights)
    target = load_target(options.target, device, lambda _what, _done, _total: None, weights=options.weights)
    target.config = without_stops(target.config)
    drafter = None
    if options.draft is not None:
        drafter = load_drafter(options.draft, target, lambda _what, _done, _total: None)
    return target, drafter


def choose_rounds(bench: Bench, who: str) -> float:
    """Sets who runs the rounds: ``HOST`` (the default) or ``DEVICE``. Returns the seconds that preparing them took."""
    started, decoder = perf_counter(), bench.decoder
    if who != HOST:
        config = decoder.target.config
        chosen = target_tiles(config.moe, card_of(decoder.device), format_of_target(decoder.target), config.sizes)
        copy = None if decoder.drafter is None else decoder.drafter.head_in_8_bits(decoder.target)
        launches = ScriptedLaunches(bench.script, decoder, copy, chosen, None)
        launches.prepare()
        decoder.use_rounds(DeviceRounds(launches))
    return perf_counter() - started


def _measure_rounds(bench: Bench, options: argparse.Namespace, results: Results, say: Say) -> None:
    routings: list[Routing] = options.routing if bench.floor.shape.target.moe else ["uniform"]
    drafting = bench.decoder.drafter is not None
    for context in options.contexts:
        for routing in routings:
            widths = [width for width in options.widths if width == 1 or drafting]
            group = [bench.rounds(width, context, routing, options.count, options.acceptance[0]) for width in widths]
            results.rounds += group
            for text in round_tables(group, results.ceiling):
                say(text)


def _measure_policies(bench: Bench, options: argparse.Namespace, results: Results, say: Say) -> None:
    routings: list[Routing] = options.routing if bench.floor.shape.target.moe else ["uniform"]
    for context, routing in product(options.contexts, routings if options.policy else []):
        measured = measure_policies(bench, options.policy, options.acceptance, context, routing, options.count)
        results.policies += measured
        say(policy_table(measured))


def _profile(bench: Bench, options: argparse.Namespace, results: Results, say: Say) -> None:
    bench.force(options.routing[0], 1)
    for width in sorted({1, max(options.widths, default=1)}):
        results.profiles.append(profile_rounds(bench, width, options.contexts[0], options.count))
        say(results.profiles[-1].describe())
    for rows in options.prompts:
        results.profiles.append(profile_prompt(bench, rows))
        say(results.profiles[-1].describe())


def main(arguments: Sequence[str] | None = None) -> int:
    """Runs the bench; returns the exit code."""
    try:
        return run(sys.argv[1:] if arguments is None else arguments)
    except (EngineFailure, ValueError) as problem:
        hint = getattr(problem, "hint", "") or f"{PROG} --help lists the flags."
        print(f"{problem}\n  {hint}", file=sys.stderr)
        return 2
