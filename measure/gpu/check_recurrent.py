"""``python -m measure.gpu.check_recurrent``: checks Qwen3.5's layers that recur, on a GPU, with random weights.

At a real shape with fewer layers it compares: passes with the modules, a row alone with the same among sixteen, states
that a round takes in with those that the host takes in, and answers with and without speculation, over several turns.
Then it times whole models: a row, sixteen rows, a draft, and prompts, beside what their bytes take. What each kernel of
a round takes is told by ``python -m engine.lab.bench --profile``."""

from __future__ import annotations

import argparse
import random
import sys
import traceback
from statistics import median
from time import perf_counter

import torch

from engine.commands import GenerationSettings, WeightFormat
from engine.decoding.cuda_graphs import captured
from engine.decoding.decoder import Decoder, Prompt, Round
from engine.decoding.device_rounds import DeviceRounds
from engine.decoding.pass_check import passes_depart, prompts_depart
from engine.decoding.round_launches import RoundLaunches
from engine.events import TurnStarted
from engine.kernels.toolchain.jit import MAX_ROWS
from engine.kernels.weights.int8 import Int8Weight
from engine.kv_cache.delta_state import DeltaState, RecurrentState
from engine.lab.bench.floor import floor_of
from engine.lab.bench.routing import distinct_experts, force_routing, forced_scores
from engine.lab.bench.shapes import SHAPES, Shape, read_shape
from engine.lab.bench.weights import random_pair
from engine.measured.costs import TYPICAL, RoundTimer
from engine.measured.timing import time_calls
from measure.gpu.check_rounds import WAYS, OracleLaunches, check_shape, spoiled
from measure.gpu.report import Report

CONTEXT, ACCEPTED = 4096, 6
DEVICE = torch.device("cuda")


def decoder_of(shape: Shape, weights: WeightFormat, context: int = CONTEXT) -> Decoder:
    target, drafter = random_pair(shape, DEVICE, weights=weights)
    return Decoder(target, drafter, context)


def states(decoder: Decoder) -> list[DeltaState]:
    return [layer for layer in decoder.cache.layers if isinstance(layer, DeltaState)]


def same(ours: list[RecurrentState], theirs: list[RecurrentState]) -> bool:
    pairs = [pair for one, other in zip(ours, theirs, strict=True) for pair in zip(one, other, strict=True)]
    return all(torch.equal(*pair) for pair in pairs)


@torch.inference_mode()
def check_states(decoder: Decoder, report: Report) -> None:
    """Compares the states after rounds of which some rows count with those after the same rows alone."""
    target, cache, rng = decoder.target, decoder.cache, random.Random(2)
    vocab = target.config.vocab_size
    cursor, rows = (torch.zeros(1, dtype=torch.int32, device=DEVICE) for _ in range(2))
    kernels = target.decode_pass(cache, cursor, rows, range(len(target.config.layers)))
    prompt = torch.tensor([rng.randrange(vocab) for _ in range(100)], device=DEVICE)
    text = [rng.randrange(vocab) for _ in range(600)]

    def begin() -> None:
        decoder.clear()
        decoder.read(prompt, 0, cache, ())
        cache.commit(len(prompt))
        cursor.fill_(len(prompt))

    def run(ids: list[int], most: int) -> torch.Tensor:
        kernels.ids[: len(ids)] = torch.tensor(ids, device=DEVICE)
        rows.fill_(len(ids))
        kernels.forward(most)
        return kernels.features[: len(ids)].clone()

    begin()
    alone = []
    for token in text:
        alone.append(run([token], 1)[0])
        cursor.add_(1)
        cache.note_rows_by_kernels(cache.length + 1, cache.length + 1)
    wanted = [state.moment(cache.length) for state in states(decoder)]
    begin()
    done = rounds = 0
    equal = True
    while done < len(text):
        accepted = min(rng.randint(1, 16), len(text) - done)
        drafted = rng.randint(accepted, 16)
        ids = (text[done : done + accepted] + [rng.randrange(vocab) for _ in range(16)])[:drafted]
        found = run(ids, 16)
        equal &= all(torch.equal(found[row], alone[done + row]) for row in range(accepted))
        cursor.add_(accepted)
        cache.note_rows_by_kernels(cache.length + accepted, cache.length + drafted)
        done, rounds = done + accepted, rounds + 1
    report.line("rows of rounds and rows alone", f"{rounds} rounds, {done} rows, all layers' outputs", equal)
    kept = same([state.moment(cache.length) for state in states(decoder)], wanted)
    report.line("states behind them", "to the bit" if kept else "DIFFER", kept)
    run([1], 1)  # the device takes the last round's rows in, as the host has above
    folded = same([state.now for state in states(decoder)], wanted)
    report.line("states that the device takes in and the host does", "to the bit" if folded else "DIFFER", folded)
    decoder.clear()


@torch.inference_mode()
def check_turns(decoder: Decoder, report: Report) -> None:
    """Checks a second question, which goes on from rows that the first answer's last round has only counted."""
    rng = random.Random(4)
    vocab = decoder.target.config.vocab_size
    question, other = ([rng.randrange(vocab) for _ in range(count)] for count in (150, 40))
    host = decoder.rounds
    for way in WAYS[:2]:
        said: list[list[int]] = []
        for speculation in (False, True):
            decoder.clear()
            right = spoiled([*question, *said[0]]) if speculation else question
            decoder.use_rounds(DeviceRounds(OracleLaunches(decoder, [*right, *[0] * 300])))
            said.append(told(decoder, question, way.settings(80, 16 if speculation else None))[1])
        report.line(f"{way.name}, one turn", "equal" if said[0] == said[1] else "PART", said[0] == said[1])
        text = [*question, *said[1], *other]
        reused, answer = told(decoder, text, way.settings(30, 16))
        value = f"{reused} of {len(text)} tokens reused, {len(answer)} said"
        report.line(f"{way.name}, next turn", value, reused > len(question))
    decoder.use_rounds(host)


def told(decoder: Decoder, text: list[int], settings: GenerationSettings) -> tuple[int, list[int]]:
    """How many tokens of a prompt were reused, and the answer."""
    reused = -1
    answer: list[int] = []
    for event in decoder.decode(Prompt(tuple(text), len(text)), lambda: settings):
        if isinstance(event, Round):
            answer += event.emitted
        elif isinstance(event, TurnStarted):
            reused = event.num_reused_tokens
    return reused, answer


@torch.inference_mode()
def check_passes(decoder: Decoder, report: Report) -> None:
    text = [random.Random(3).randrange(decoder.target.config.vocab_size) for _ in range(200)]
    for what, where in (("prompt", prompts_depart(decoder, text)), ("rows", passes_depart(decoder, text, None))):
        report.line(f"{what} by kernels and by modules", where or "near", where is None)


@torch.inference_mode()
def check_speed(name: str, weights: WeightFormat, bandwidth: float, prompts: list[int], lines: list[str]) -> None:
    shape = read_shape(name)
    decoder = decoder_of(shape, weights, max([CONTEXT, *prompts]) + 64)
    target = decoder.target
    floor = floor_of(shape, target, drafts_in_8_bits=True)
    touched = [0.0, 0.0]
    if (moe := shape.target.moe) is not None:
        scores = forced_scores("uniform", len(shape.target.layers), moe.num_experts, DEVICE)
        force_routing(target, scores)
        touched = [distinct_experts(scores, moe.top_k, rows) for rows in (1, MAX_ROWS)]
    one, sixteen = (_pass_ms(decoder, rows) for rows in (1, MAX_ROWS))
    timer = RoundTimer(RoundLaunches(decoder, Int8Weight.of(target.head)))
    text = list(range(1, MAX_ROWS + 1))
    draft = median(timer.time(timer.launches.drafting(), text, 128, pending=TYPICAL) for _ in range(12))
    least, least_16 = (floor.verify(experts, 128) / bandwidth * 1e3 for experts in touched)
    drafting = floor.draft(128) / bandwidth * 1e3
    lines.append(
        f"{name} {weights}: one row {one:.3f} ms ({least / one:.0%} of {least:.3f}), sixteen {sixteen:.3f}"
        f" ({least_16 / sixteen:.0%}), draft {draft:.3f} ({drafting / draft:.0%}),"
        f" round {sixteen + draft:.3f} ({(least_16 + drafting) / (sixteen + draft):.0%})"
    )
    print(lines[-1], flush=True)
    rng = random.Random(0)
    for length in prompts:
        ids = tuple(rng.randrange(target.config.vocab_size) for _ in range(length))
        times = []
        for _ in range(3):
            decoder.clear()
            torch.cuda.synchronize()
            started = perf_counter()
            for event in decoder.decode(Prompt(ids, length), lambda: WAYS[0].settings(1, None)):
                if isinstance(event, Round):
                    break
            times.append((perf_counter() - started) * 1e3)
        lines.append(f"{name} {weights}: first token of {length} after {median(times[1:]):.0f} ms")
        print(lines[-1], flush=True)
    del decoder, timer, target
    torch.cuda.empty_cache()


def _pass_ms(decoder: Decoder, width: int) -> float:
    """Milliseconds of a captured pass, with what it takes in of the one before: the row of a one-row pass, six of
    sixteen. What moves the cursor is counted, a launch of the smallest kind."""
    cursor, rows = (torch.zeros(1, dtype=torch.int32, device=DEVICE) for _ in range(2))
    kernels = decoder.target.decode_pass(decoder.cache, cursor, rows, (1, 2, 3))
    decoder.clear()
    cursor.fill_(128)
    rows.fill_(width)
    kernels.ids.copy_(torch.arange(1, MAX_ROWS + 1, device=DEVICE) * 97)

    def launch() -> None:
        kernels.forward(width)
        cursor.add_(1 if width == 1 else ACCEPTED)

    replay = captured(launch, DEVICE, "a pass")
    time_calls(replay, 3, DEVICE)
    return median(time_calls(replay, 30, DEVICE))


def copy_bandwidth() -> float:
    """Bytes per second, read and written."""
    source = torch.empty(1 << 30, dtype=torch.int32, device=DEVICE)
    target = torch.empty_like(source)
    took = median(time_calls(lambda: target.copy_(source), 10, DEVICE)[2:])
    return 2 * source.nbytes / (took / 1e3)


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--shape", choices=SHAPES, default="Qwen3.5-27B", help="whose layers are checked")
    parser.add_argument("--layers", type=int, default=8)
    parser.add_argument("--tokens", type=int, default=80)
    parser.add_argument("--speeds", nargs="*", default=["Qwen3.5-27B:bf16", "Qwen3.5-9B:bf16", "Qwen3.5-27B:int4"])
    parser.add_argument("--prompts", type=int, nargs="*", default=[2048])
    options = parser.parse_args()
    report, started = Report(), perf_counter()
    lines: list[str] = []
    if options.layers:
        decoder = decoder_of(read_shape(options.shape, options.layers), "bf16")
        for check in (
            lambda: check_passes(decoder, report),
            lambda: check_states(decoder, report),
            lambda: check_shape(decoder, options.tokens, (16,), report),
            lambda: check_turns(decoder, report),
        ):
            try:
                check()
            except Exception:
                traceback.print_exc()
                report.line("a check", "FAILED", False)
        print(f"{perf_counter() - started:.0f} s", flush=True)
        del decoder, check
        torch.cuda.empty_cache()
    bandwidth = copy_bandwidth()
    torch.cuda.empty_cache()
    print(f"{torch.cuda.get_device_name()}: {bandwidth / 1e12:.2f} TB/s", flush=True)
    for each in options.speeds:
        name, _, weights = each.partition(":")
        try:
            check_speed(name, weights, bandwidth, options.prompts, lines)
        except Exception:
            traceback.print_exc()
            torch.cuda.empty_cache()
        print(f"{perf_counter() - started:.0f} s", flush=True)
    print("\n".join(lines))
    return 0 if report.ok else 1


if __name__ == "__main__":
    sys.exit(main())
