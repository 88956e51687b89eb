"""``python -m measure.gpu.check_recurrent``: checks Qwen3.5's layers that recur, on a GPU, with random weights.

At a real shape with fewer layers it compares: passes with the modules, a row alone with the same among sixteen, states
that a round takes in with those that the host takes in, and answers with and without speculation, over several turns.
What these models take is told by ``python -m engine.lab.bench --shape Qwen3.5-27B``."""

from __future__ import annotations

import argparse
import random
import sys
import traceback
from pathlib import Path

import torch

from engine.commands import GenerationSettings, WeightFormat
from engine.decoding.decoder import Decoder, Prompt, Round
from engine.decoding.device_rounds import DeviceRounds
from engine.decoding.pass_check import passes_depart, prompts_depart
from engine.events import TurnStarted
from engine.kv_cache.delta_state import DeltaState, RecurrentState
from engine.lab.bench.shapes import SHAPES, Shape, read_shape
from engine.lab.bench.weights import random_pair
from measure.gpu.check_rounds import WAYS, OracleLaunches, check_shape, spoiled
from measure.gpu.report import Report

CONTEXT = 4096
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


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--shape", choices=SHAPES, default="Qwen3.5-27B", help="whose layers are checked")
    parser.add_argument("--layers", type=int, default=8)
    parser.add_argument("--tokens", type=int, default=80)
    parser.add_argument("--out", type=Path, help="write JSON there as well")
    options = parser.parse_args()
    report = Report()
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
    report.write(options.out)
    return 0 if report.ok else 1


if __name__ == "__main__":
    sys.exit(main())
