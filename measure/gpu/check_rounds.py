"""Checks whole rounds on a GPU: ``python -m measure.gpu.check_rounds``; needs no pytest.

Runs device rounds at a real shape with fewer layers and random weights, and then the bundled pair: an answer with
speculation must be the plain one token for token, at every block size and temperature, and the same as the host's
rounds, except where two tokens are nearly tied. Where layers recur, the states that a round takes in are compared with
those that the host takes in, and a second question goes on from rows that the first answer's last round has only
counted. ``--soak`` then asks the bundled pair the same again and again: every
answer must stay what it was, and memory must not grow."""

from __future__ import annotations

import argparse
import random
import sys
from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from time import perf_counter

import torch

from engine.commands import BlockSize, GenerationSettings, WeightFormat
from engine.decoding.decoder import Decoder
from engine.decoding.device_rounds import DeviceRounds
from engine.decoding.round_launches import RoundLaunches
from engine.decoding.rounds import Prompt, Round
from engine.events import TurnStarted
from engine.hub.pairs import BUNDLED_PAIR
from engine.kernels.toolchain.jit import MAX_ROWS
from engine.kernels.weights.int8 import Int8Weight
from engine.kernels.weights.kinds import MAKERS
from engine.kv_cache.delta_state import DeltaState, RecurrentState
from engine.lab.bench.shapes import SHAPES, read_shape
from engine.lab.bench.weights import random_pair
from engine.loading.checkpoint import load_drafter, load_target
from measure.gpu.report import Report
from measure.quick import parse
from support.divergence import first_divergence

PROMPT_LENGTH = 200
WRONG_EVERY = 5


class OracleLaunches(RoundLaunches):
    """Drafts what follows in a given text instead of the drafter's tokens; the drafter runs all the same."""

    def __init__(self, decoder: Decoder, text: Sequence[int]):
        super().__init__(decoder, Int8Weight.of(decoder.target.head))
        self._text = torch.tensor([*text, *[0] * 64], device=decoder.device)
        self._ahead = torch.arange(1, MAX_ROWS + 1, device=decoder.device)

    def draft(self, count: int, tree: bool = False) -> None:
        super().draft(count, tree)
        self.ids[1 : MAX_ROWS + 1].copy_(self._text[self.state.cursor.long() + self._ahead])


def device_rounds(decoder: Decoder) -> DeviceRounds:
    """Device rounds as the program uses them: drafting in 8 bits."""
    return DeviceRounds(RoundLaunches(decoder, Int8Weight.of(decoder.target.head)))


@dataclass(frozen=True)
class Asked:
    """One way to ask. Only answers that differ just in how they were speculated are compared."""

    name: str
    temperature: float = 0.0
    top_k: int = 0
    top_p: float = 1.0

    def settings(self, tokens: int, block_size: BlockSize | None) -> GenerationSettings:
        return GenerationSettings(
            block_size=block_size or 16,
            speculation=block_size is not None,
            temperature=self.temperature,
            top_k=self.top_k,
            top_p=self.top_p,
            seed=5,
            max_new_tokens=tokens,
        )


WAYS = (Asked("greedy"), Asked("T 0.8", 0.8), Asked("T 1, top-k 40, top-p 0.9", 1.0, 40, 0.9))


def answer(decoder: Decoder, prompt: Sequence[int], settings: GenerationSettings) -> list[Round]:
    decoder.clear()
    made = decoder.decode(Prompt(tuple(prompt), len(prompt)), lambda: settings)
    return [event for event in made if isinstance(event, Round)]


def tokens_of(rounds: Sequence[Round]) -> list[int]:
    return [token for done in rounds for token in done.emitted]


def spoiled(text: Sequence[int]) -> list[int]:
    """The text with a wrong token now and then, so that drafts are accepted in part."""
    return [token ^ (1 if place % WRONG_EVERY == 0 else 0) for place, token in enumerate(text)]


def check_shape(decoder: Decoder, tokens: int, blocks: Sequence[int], report: Report) -> None:
    """Checks random weights: the drafter is never right, so a script gives it what the target will say."""
    vocab = decoder.target.config.vocab_size
    rng = random.Random(1)
    prompt = [rng.randrange(vocab) for _ in range(PROMPT_LENGTH)]
    host = decoder.rounds
    for way in WAYS:
        decoder.use_rounds(device_rounds(decoder))
        plain = tokens_of(answer(decoder, prompt, way.settings(tokens, None)))
        for block in blocks:
            rounds = answer(decoder, prompt, way.settings(tokens, block))
            compare(f"{way.name}, block {block}, real drafts", plain, rounds, report)
        decoder.use_rounds(DeviceRounds(OracleLaunches(decoder, spoiled([*prompt, *plain]))))
        for block in blocks:
            rounds = answer(decoder, prompt, way.settings(tokens, block))
            compare(f"{way.name}, block {block}, drafts right but every {WRONG_EVERY}th", plain, rounds, report)
        decoder.use_rounds(host)
        if way.temperature == 0:
            _compare_with_host(decoder, prompt, plain, way.settings(tokens, None), report)


def states(decoder: Decoder) -> list[DeltaState]:
    return [layer for layer in decoder.cache.layers if isinstance(layer, DeltaState)]


def same(ours: list[RecurrentState], theirs: list[RecurrentState]) -> bool:
    pairs = [pair for one, other in zip(ours, theirs, strict=True) for pair in zip(one, other, strict=True)]
    return all(torch.equal(*pair) for pair in pairs)


@torch.inference_mode()
def check_states(decoder: Decoder, count: int, report: Report) -> None:
    """Compares the states after rounds of which some rows count, ``count`` in all, with those after the same rows
    alone."""
    target, cache, rng, device = decoder.target, decoder.cache, random.Random(2), decoder.device
    vocab = target.config.vocab_size
    cursor, rows = (torch.zeros(1, dtype=torch.int32, device=device) for _ in range(2))
    kernels = target.decode_pass(cache, cursor, rows, range(len(target.config.layers)))
    prompt = torch.tensor([rng.randrange(vocab) for _ in range(100)], device=device)
    text = [rng.randrange(vocab) for _ in range(count)]

    def begin() -> None:
        decoder.clear()
        decoder.read(prompt, 0, cache, ())
        cache.commit(len(prompt))
        cursor.fill_(len(prompt))

    def run(ids: list[int], most: int) -> torch.Tensor:
        kernels.ids[: len(ids)] = torch.tensor(ids, device=device)
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


def check_turns(decoder: Decoder, tokens: int, report: Report) -> None:
    """Checks a second question, which goes on from rows that the first answer's last round has only counted."""
    rng = random.Random(4)
    vocab = decoder.target.config.vocab_size
    question, other = ([rng.randrange(vocab) for _ in range(count)] for count in (PROMPT_LENGTH // 2, 40))
    for way in WAYS[:2]:
        said: list[list[int]] = []
        for block in (None, 16):
            right = spoiled([*question, *said[0]]) if said else question
            decoder.use_rounds(DeviceRounds(OracleLaunches(decoder, [*right, *[0] * 300])))
            said.append(tokens_of(answer(decoder, question, way.settings(tokens, block))))
        report.line(f"{way.name}, one turn", "equal" if said[0] == said[1] else "PART", said[0] == said[1])
        text = (*question, *said[1], *other)
        events = list(decoder.decode(Prompt(text, len(text)), partial(way.settings, tokens // 3, 16)))
        reused = max(event.num_reused_tokens for event in events if isinstance(event, TurnStarted))
        report.line(f"{way.name}, next turn", f"{reused} of {len(text)} tokens reused", reused > len(question))


def compare(name: str, plain: list[int], rounds: Sequence[Round], report: Report) -> None:
    """Reports whether rounds yield the plain tokens."""
    ids = tokens_of(rounds)
    accepted = sum(done.num_accepted for done in rounds)
    part = next((i for i, (a, b) in enumerate(zip(plain, ids, strict=False)) if a != b), None)
    same = ids == plain
    value = f"{len(ids)} tokens, {accepted} drafts accepted, {'equal' if same else f'PART AT TOKEN {part}'}"
    report.line(name, value, same)


def _compare_with_host(
    decoder: Decoder, prompt: list[int], plain: list[int], settings: GenerationSettings, report: Report
) -> None:
    host = tokens_of(answer(decoder, prompt, settings))
    divergence = first_divergence(decoder.target, prompt, host, plain)
    holds = divergence is None or divergence.margin <= divergence.allowed
    report.line("greedy, device and host", "equal" if divergence is None else str(divergence), holds)


def bundled_decoder(device: torch.device, weights: WeightFormat = "bf16") -> Decoder:
    target = load_target(BUNDLED_PAIR / "target", device, lambda *told: None, weights=weights)
    return Decoder(target, load_drafter(BUNDLED_PAIR / "drafter", target, lambda *told: None), 4096)


def check_bundled(decoder: Decoder, prompts: Sequence[list[int]], tokens: int, report: Report) -> None:
    """Checks a trained pair, whose drafts are often right: every answer ends with its own stop token."""
    for way in WAYS:
        plains = [tokens_of(answer(decoder, prompt, way.settings(tokens, None))) for prompt in prompts]
        for block in (4, 16):
            made = [answer(decoder, prompt, way.settings(tokens, block)) for prompt in prompts]
            same = sum(tokens_of(rounds) == plain for rounds, plain in zip(made, plains, strict=True))
            count = sum(len(rounds) - 1 for rounds in made)
            length = sum(len(plain) - 1 for plain in plains) / max(count, 1)
            value = f"{same} of {len(prompts)} equal, acceptance length {length:.2f}"
            report.line(f"bundled pair, {way.name}, block {block}", value, same == len(prompts))


def soak(decoder: Decoder, prompts: Sequence[list[int]], tokens: int, seconds: float, report: Report) -> None:
    """Asks again and again. Memory is measured between answers, after the conversation was forgotten: the last one's
    snapshot of the rings, which an answer without a drafter makes of the target's alone, would otherwise look like
    growth."""
    expected: dict[int, list[int]] = {}
    started, rounds, wrong, memory = perf_counter(), 0, 0, []
    rng, asked = random.Random(0), 0
    while perf_counter() - started < seconds:
        place = rng.randrange(len(prompts))
        way = WAYS[place % len(WAYS)]
        made = answer(decoder, prompts[place], way.settings(tokens, rng.choice((None, 2, 4, 8, 16))))
        rounds, asked = rounds + len(made), asked + 1
        ids = tokens_of(made)
        wrong += ids != expected.setdefault(place, ids)
        if asked >= 2 * len(prompts):
            decoder.clear()
            memory.append(_memory(decoder.device))
    growth = [max(each) - each[0] for each in zip(*memory, strict=True)] if memory else [0, 0, 0]
    value = f"{rounds} rounds, {asked} answers, {wrong} changed; memory grew by {growth[0]} bytes in use,"
    report.line("soak", f"{value} {growth[1]} reserved, {growth[2]} of the GPU", wrong == 0 and growth[0] <= 0)


def _memory(device: torch.device) -> tuple[int, int, int]:
    """Bytes of tensors, bytes that PyTorch keeps for them, and all bytes that are taken of the GPU, by libraries
    too."""
    if device.type != "cuda":
        return 0, 0, 0
    free, total = torch.cuda.mem_get_info(device)
    return torch.cuda.memory_allocated(device), torch.cuda.memory_reserved(device), total - free


def held_out_prompts(count: int) -> list[list[int]]:
    from engine.lab.demo.confirm import questions

    chosen = [ids for _, ids in questions(-(-count // 6))]
    return chosen[:count]


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--device", default="cuda" if torch.cuda.is_available() else "cpu")
    parser.add_argument("--shape", choices=(*SHAPES, "none"), default="26B-A4B")
    parser.add_argument("--weights", choices=list(MAKERS), default="bf16", help="how the target's lie in memory")
    parser.add_argument("--layers", type=int, default=12)
    parser.add_argument("--tokens", type=int, default=150)
    parser.add_argument("--blocks", type=int, nargs="+", default=[2, 5, 16])
    parser.add_argument("--prompts", type=int, default=12, help="of the bundled pair; 0: none")
    parser.add_argument("--soak", type=float, default=0.0, metavar="SECONDS")
    parser.add_argument("--out", type=Path, help="write JSON there as well")
    options = parse(parser, "--device cpu --shape tiny --layers 6 --tokens 12 --blocks 4 --prompts 0", kernels=True)
    report, device = Report(), torch.device(options.device)
    if options.shape != "none":
        shape = read_shape(options.shape, options.layers)
        target, drafter = random_pair(shape, device, weights=options.weights)
        decoder = Decoder(target, drafter, PROMPT_LENGTH + 5 * options.tokens + 64)
        check_shape(decoder, options.tokens, options.blocks, report)
        if states(decoder):
            check_states(decoder, 4 * options.tokens, report)
            check_turns(decoder, options.tokens // 2, report)
        report.write(options.out)
        del target, drafter, decoder
    if options.prompts:
        decoder = bundled_decoder(device, options.weights)
        decoder.use_rounds(device_rounds(decoder))
        prompts = held_out_prompts(options.prompts)
        check_bundled(decoder, prompts, options.tokens, report)
        if options.soak:
            soak(decoder, prompts, options.tokens, options.soak, report)
        report.write(options.out)
    return 0 if report.ok else 1


if __name__ == "__main__":
    sys.exit(main())
