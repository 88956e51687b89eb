"""MTP on a GPU: ``python -m measure.gpu.check_mtp``; needs no pytest.

Random weights at the published shapes: of Gemma's 26B-A4B and 31B, whose assistants are models of their own, or of
Qwen3.5s, whose layer lies among the target's. What the device drafts must be what the host drafts from the same caches,
but where two tokens are nearly tied (copies in 8 bits, which Qwen's layer drafts by where there is memory, may draft
otherwise); an answer with speculation must be the plain one token for token; a draft must cost its launches and little
more. Prints milliseconds of drafts of every length, at three contexts, against the bytes that a drafted token reads.
Exit code 1 when something is off.
"""

from __future__ import annotations

import argparse
import random
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import get_args

import torch

from engine.commands import AUTO, WeightFormat
from engine.decoding.decoder import Decoder
from engine.decoding.device_rounds import DeviceRounds
from engine.decoding.round_launches import Proposal, RoundLaunches
from engine.kernels.weights.int8 import Int8Weight
from engine.kernels.weights.kinds import bytes_of
from engine.lab.bench.shapes import ASSISTANTS, BRING_THEIR_OWN, TINY, TINY_RECURRENT, read_shape
from engine.lab.bench.weights import random_pair
from engine.measured.costs import TYPICAL, RoundTimer, time_rounds
from engine.models.qwen3_5.mtp.modules import QwenMtp
from engine.speculation.auto import Auto
from measure.gpu.check_rounds import WAYS, answer, compare, tokens_of
from measure.gpu.report import Report
from measure.quick import parse

BYTES_PER_MS = 4.3e9
"""The rate at which an H200 copies."""
NEARLY_TIED = 0.25
"""The margin, in logits, above which host and device must draft the same."""
TRIALS = 6
DRAFTS = 7
ROUNDS = (1, 2, 3, 4, 7)
"""Tokens that the rounds draft whose times are told."""


def draft_by_device(launches: RoundLaunches, context: int, anchor: int) -> list[int]:
    """Drafts on the device behind what the caches hold; the newest hidden state is where the host left it."""
    state = launches.state
    state.stops.fill_(-1)
    state.end.fill_(launches.decoder.max_context)
    state.block_size.fill_(DRAFTS + 1)
    state.cursor.fill_(context)
    state.anchor.fill_(anchor)
    state.pending.zero_()
    launch = launches.of(Proposal(next(count for count in launches.counts if count >= DRAFTS)))
    state.done.zero_()
    launch()
    drafted: list[int] = launches.ids[1 : DRAFTS + 1].tolist()
    state.done.fill_(1)
    return drafted


@torch.inference_mode()
def compare_drafts(decoder: Decoder, context: int, seed: int) -> tuple[int, float]:
    """How many first tokens of the drafts behind a random text are the same, and how far apart, in logits, the first
    two that differ are by the host."""
    drafter, rounds, cache = decoder.drafter, decoder.rounds, decoder.draft_cache
    assert drafter is not None and cache is not None and isinstance(rounds, DeviceRounds)
    vocab, rng = decoder.target.config.vocab_size, random.Random(seed)
    text = [rng.randrange(vocab) for _ in range(context)]
    decoder.clear()
    taps = drafter.config.target_layer_ids
    for start in range(0, context, decoder.prefill_chunk):
        ids = torch.tensor(text[start : start + decoder.prefill_chunk], device=decoder.device)
        output = decoder.read(ids, start, decoder.cache, taps)
        assert output.features is not None
        drafter.ingest(output.features, cache)
        decoder.cache.note_written(start + len(ids))
        decoder.cache.commit(start + len(ids))
    anchor = rng.randrange(vocab)
    by_host = drafter.probabilities(decoder.target, anchor, DRAFTS + 1, cache)
    wanted, found = by_host.argmax(dim=-1).tolist(), draft_by_device(rounds.launches, context, anchor)
    same = next((place for place in range(DRAFTS) if wanted[place] != found[place]), DRAFTS)
    if same == DRAFTS:
        return same, 0.0
    apart = by_host[same, wanted[same]].log() - by_host[same, found[same]].log()
    return same, float(apart)


def check_texts(decoder: Decoder, length: int, tokens: int, report: Report) -> None:
    rng = random.Random(1)
    prompt = [rng.randrange(decoder.target.config.vocab_size) for _ in range(length)]
    for way in WAYS[:2]:
        plain = tokens_of(answer(decoder, prompt, way.settings(tokens, None)))
        for block in (2, 5, 16, AUTO):
            rounds = answer(decoder, prompt, way.settings(tokens, block))
            compare(f"{way.name}, {length} tokens before, block {block}", plain, rounds, report)


def bytes_of_a_token(decoder: Decoder, head: Int8Weight | None) -> int:
    """Bytes of weights that a drafted token reads."""
    drafter, moe = decoder.drafter, decoder.target.config.moe
    assert drafter is not None
    if not isinstance(drafter, QwenMtp):
        return bytes_of(drafter)
    total = decoder.target.head.nbytes if head is None else head.nbytes
    for name, part in drafter.named_parameters():
        packed = head is not None and part.ndim == 2 and not name.endswith(QwenMtp.never_packed)
        nbytes = part.numel() if packed else part.nbytes
        total += nbytes * moe.top_k // moe.num_experts if moe is not None and ".experts." in name else nbytes
    return total


def time_drafts(decoder: Decoder, head: Int8Weight | None, contexts: Sequence[int], report: Report) -> None:
    rounds = decoder.rounds
    assert isinstance(rounds, DeviceRounds)
    timer, counts = RoundTimer(rounds.launches), rounds.launches.counts
    text = list(range(100, 116))
    floor = bytes_of_a_token(decoder, head) / BYTES_PER_MS
    for context in contexts:
        took = []
        for count in counts:
            times = [timer.time(Proposal(count), text, context, pending=TYPICAL) for _ in range(6)]
            took.append(min(times[1:]))
        decoder.clear()
        each = (took[-1] - took[0]) / (counts[-1] - counts[0])
        table = ", ".join(f"{count}: {ms:.3f}" for count, ms in zip(counts, took, strict=True))
        report.line(f"drafts at {context}, ms", table)
        report.line(
            f"a drafted token at {context}", f"{each:.3f} ms; {floor:.3f} for its bytes ({floor / max(each, 1e-9):.0%})"
        )


def check(name: str, options: argparse.Namespace, report: Report) -> None:
    device = torch.device(options.device)
    target, drafter = random_pair(read_shape(name, options.layers, "mtp"), device, weights=options.weights)
    assert drafter is not None
    decoder = Decoder(target, drafter, max(options.contexts) + 64)
    layers = f"{len(target.config.layers)} layers in {options.weights}"
    report.line(name, f"{layers}; what drafts has {bytes_of(drafter) / 1e9:.3f} GB")
    check_rounds(decoder, None, options, report)
    if isinstance(drafter, QwenMtp):
        report.line(name, "drafting by copies in 8 bits, its head's as well")
        check_rounds(decoder, Int8Weight.of(target.head), options, report)


def check_rounds(decoder: Decoder, head: Int8Weight | None, options: argparse.Namespace, report: Report) -> None:
    """Checks rounds that draft as they are, or by copies in 8 bits, such as the ``head``'s."""
    launches = RoundLaunches(decoder, head)
    launches.prepare()
    decoder.use_rounds(DeviceRounds(launches))
    decoder.use_policy(None)
    for length in options.prompts:
        found = [compare_drafts(decoder, length, seed) for seed in range(TRIALS)]
        same = sum(each == DRAFTS for each, _ in found)
        worst = max(apart for _, apart in found)
        value = f"{same} of {TRIALS} chains of {DRAFTS} equal; else first {worst:.3f} of a logit apart"
        report.line(f"device and host, {length} tokens before", value, worst <= NEARLY_TIED or head is not None)
    if decoder.device.type == "cuda":
        time_drafts(decoder, head, options.contexts, report)
        costs = time_rounds(decoder, list(range(100, 116)))
        assert costs is not None
        first = costs.costs[0]
        whole = ", ".join(f"{count}: {first.round(count):.3f}" for count in ROUNDS)
        report.line("costs of rounds", f"draft {first.draft:.3f} + {first.step:.3f} a token, pass {first.plain:.3f} ms")
        report.line("a round that drafts so many, ms", whole)
        decoder.use_policy(Auto(costs))
    for length in options.prompts:
        check_texts(decoder, length, options.tokens, report)


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--device", default="cuda" if torch.cuda.is_available() else "cpu")
    shapes = (*ASSISTANTS, *BRING_THEIR_OWN, TINY, TINY_RECURRENT)
    parser.add_argument("--shape", choices=shapes, nargs="+", default=list(ASSISTANTS))
    parser.add_argument("--weights", choices=get_args(WeightFormat), default="bf16", help="the target's format")
    parser.add_argument("--layers", type=int, help="of the target's, whole periods of six or four; all by default")
    parser.add_argument("--prompts", type=int, nargs="+", default=[60, 1400], help="tokens before an answer")
    parser.add_argument(
        "--contexts", type=int, nargs="+", default=[128, 2048, 32_768], help="at which drafts are timed"
    )
    parser.add_argument("--tokens", type=int, default=80)
    parser.add_argument("--out", type=Path, help="write JSON there as well")
    options = parse(parser, "--device cpu --shape tiny --prompts 20 --contexts 40 --tokens 12", kernels=True)
    report = Report()
    return report.of_each(options.shape, lambda name: check(name, options, report), options.out)


if __name__ == "__main__":
    sys.exit(main())
