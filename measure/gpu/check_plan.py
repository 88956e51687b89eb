"""Checks whether memory plans hold: ``python -m measure.gpu.check_plan``. Needs no pytest.

For each format a pair with random weights at a published shape is loaded as planned, and asked a long question: the
most that tensors took must lie within 3 % of the plan's sum. ``--memory`` plans as if the card had less free: the
drafter's copies give way, its own bits, the pieces of prompts, and then the embedding; PyTorch gets no more than that.
Exit code 1 when a plan is off."""

from __future__ import annotations

import argparse
import random
import sys
from functools import partial
from pathlib import Path

import torch

from engine.commands import GenerationSettings, WeightFormat
from engine.decoding.decoder import Decoder, Prompt, Round
from engine.decoding.device_rounds import DeviceRounds
from engine.decoding.round_launches import RoundLaunches
from engine.kernels.weights.int8 import Int8Weight
from engine.kernels.weights.kinds import MAKERS
from engine.lab.bench.shapes import SHAPES, Shape, read_shape
from engine.lab.bench.weights import random_pair
from engine.loading.checkpoint import compute_dtype
from engine.loading.memory_plan import MemoryPlan, available_memory, gigabytes, plan_of
from engine.loading.weight_choice import tighter
from engine.models.dflash.weights import hold_in_8_bits
from engine.models.host_embedding import hold_embedding_on_host
from engine.models.packed import shape_of
from measure.gpu.report import Report
from measure.quick import parse

TOLERANCE = 0.03


def plan_for(shape: Shape, weights: WeightFormat, context: int, device: torch.device, memory: int | None) -> MemoryPlan:
    model = shape_of(shape.target, compute_dtype(device), weights)
    available = memory or available_memory(device)
    rounds = device.type == "cuda"
    plan = partial(plan_of, model, shape.drafter, context, device, weights, available, device_rounds=rounds)
    return whole if (whole := plan()).fits else tighter(plan)


def load(shape: Shape, plan: MemoryPlan, device: torch.device) -> Decoder:
    """Loads a pair as the runner does."""
    target, drafter = random_pair(shape, device, weights=plan.weights)
    if drafter is not None and plan.drafting.packed:
        hold_in_8_bits(drafter)
    if plan.on_host:
        hold_embedding_on_host(target)
    if device.type == "cuda":
        torch.cuda.empty_cache()  # of what made the weights
        torch.cuda.reset_peak_memory_stats()
        whole = torch.cuda.get_device_properties(device).total_memory
        torch.cuda.set_per_process_memory_fraction(min(1.0, plan.available / whole))
    decoder = Decoder(target, drafter, plan.context, plan.chunk)
    if plan.device_rounds:
        head = Int8Weight.of(target.head) if plan.drafting.head_in_8_bits else None
        launches = RoundLaunches(decoder, head)
        launches.prepare()
        decoder.use_rounds(DeviceRounds(launches))
    return decoder


def ask(decoder: Decoder, rows: int, tokens: int) -> int:
    """Asks two different random questions of ``rows`` tokens; the second one finds a snapshot of the rings. Returns how
    many rounds were run."""
    vocabulary, settings = decoder.target.config.vocab_size, GenerationSettings(max_new_tokens=tokens)
    rng, rounds = random.Random(0), 0
    for _ in range(2):
        ids = tuple(rng.randrange(vocabulary) for _ in range(rows))
        made = decoder.decode(Prompt(ids, len(ids)), lambda: settings)
        rounds += sum(isinstance(event, Round) for event in made)
    return rounds


def check(shape: Shape, weights: WeightFormat, options: argparse.Namespace, report: Report) -> None:
    device = torch.device(options.device)
    memory = None if options.memory is None else int(options.memory * 1e9)
    plan = plan_for(shape, weights, options.context, device, memory)
    report.line(f"{weights}, plan", plan.describe())
    if not plan.fits:
        return
    decoder = load(shape, plan, device)
    loaded = torch.cuda.memory_allocated() if device.type == "cuda" else 0
    prompt = min(options.prompt, plan.context - options.tokens - 64)
    rounds = ask(decoder, prompt, options.tokens)
    if device.type == "cuda":
        most, reserved = torch.cuda.max_memory_allocated(), torch.cuda.max_memory_reserved()
        off = most / plan.allocated - 1
        value = (
            f"{gigabytes(loaded)} after loading, at most {gigabytes(most)} in {rounds} rounds: {off:+.1%} of the plan"
        )
        report.line(f"{weights}, tensors", value, abs(off) <= TOLERANCE)
        held = f"{gigabytes(reserved)} held by PyTorch, the plan leaves {gigabytes(plan.reserve)} for more"
        report.line(f"{weights}, allocator", held, reserved <= plan.allocated + plan.reserve)


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--device", default="cuda" if torch.cuda.is_available() else "cpu")
    parser.add_argument("--shape", choices=SHAPES, default="26B-A4B")
    parser.add_argument("--weights", choices=list(MAKERS), nargs="+", default=list(MAKERS))
    parser.add_argument("--context", type=int, default=32_768)
    parser.add_argument("--prompt", type=int, default=8000, help="tokens of the question")
    parser.add_argument("--tokens", type=int, default=256, help="tokens of the answer")
    parser.add_argument("--memory", type=float, metavar="GB", help="plan as if so much were free")
    parser.add_argument("--out", type=Path, help="write JSON there as well")
    options = parse(parser, "--device cpu --shape tiny --prompt 40 --tokens 4 --context 256")
    report, shape = Report(), read_shape(options.shape)
    return report.of_each(options.weights, lambda weights: check(shape, weights, options, report), options.out)


if __name__ == "__main__":
    sys.exit(main())
