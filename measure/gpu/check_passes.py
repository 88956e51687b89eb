"""Passes of a target on a GPU against its modules: ``python -m measure.gpu.check_passes --shape Qwen3-8B``.

At a published shape with fewer layers and random weights, in bf16 or packed: passes of 16 rows and pieces of prompts
are no farther from the modules in fp32 than the modules in bf16 are, and a row has the same bits alone, among five and
among sixteen."""

from __future__ import annotations

import argparse
import random
import sys
from copy import deepcopy
from pathlib import Path

import torch
from torch import Tensor

from engine.kernels.toolchain.jit import MAX_ROWS
from engine.kernels.weights.kinds import MAKERS
from engine.kv_cache.cache import Cache
from engine.lab.bench.shapes import SHAPES, read_shape
from engine.lab.bench.weights import random_pair
from engine.models.attention_backends import choose_backends
from engine.models.target import TargetModel
from measure.gpu.report import Report
from measure.quick import parse
from support.ordered_sums import sum_in_order

PROMPT = 700
WORSE = 1.15
"""How many times the modules' error a pass's error may be."""
ROUNDING = 1e-5
"""Of fp32, in which the modules are the exact result themselves."""


def pieces(prompt: Tensor) -> tuple[Tensor, ...]:
    """Two, the first of which is longer."""
    return prompt.split(-(-len(prompt) * 3 // 4))


class Rows:
    """Runs a decode pass behind a prompt."""

    def __init__(self, target: TargetModel, prompt: Tensor, taps: tuple[int, ...]):
        device = target.device
        self.cache = Cache(target.config.layers, len(prompt) + 64, 512, target.dtype, device)
        self._read = target.prefill_pass(self.cache)
        self.cursor, self.count = (torch.zeros(1, dtype=torch.int32, device=device) for _ in range(2))
        self._pass = target.decode_pass(self.cache, self.cursor, self.count, taps)
        self.features: list[Tensor] = []
        for piece in pieces(prompt):
            out = self._read(piece, self.cache.length, self.cache, taps)
            assert out.features is not None
            self.features.append(out.features)
            self.cache.commit(self.cache.length + len(piece))
        self.cursor.fill_(self.cache.length)

    def __call__(self, ids: Tensor, max_rows: int = MAX_ROWS) -> tuple[Tensor, Tensor]:
        self._pass.ids[: len(ids)] = ids
        self.count.fill_(len(ids))
        self._pass.forward(max_rows)
        assert self._pass.out.logits is not None
        return self._pass.out.logits[: len(ids)].clone(), self._pass.features[: len(ids)].clone()

    def commit(self, count: int) -> None:
        self.cursor += count


def by_modules(target: TargetModel, prompt: Tensor, ids: Tensor, taps: tuple[int, ...]) -> list[Tensor]:
    """Features of the prompt, and logits and features of rows behind it."""
    cache = Cache(target.config.layers, len(prompt) + 64, 512, target.dtype, target.device)
    features = []
    for piece in (*pieces(prompt), ids):
        out = target(piece, cache.length, cache, taps)
        features.append(out.features)
        cache.commit(cache.length + len(piece))
    return [torch.cat(features[:-1]), target.logits(out.hidden), features[-1]]


@torch.inference_mode()
def check(target: TargetModel, length: int, report: Report) -> None:
    vocab, depth, rng = target.config.vocab_size, len(target.config.layers), random.Random(2)
    prompt, ids = (
        torch.tensor([rng.randrange(vocab) for _ in range(n)], device=target.device) for n in (length, MAX_ROWS)
    )
    taps = (0, depth - 1)
    exact = deepcopy(target).float()
    exact.prepare()
    plain = choose_backends("sdpa", exact.config.attention, exact.device, torch.float32)
    exact.use_attention(plain)
    for router, same in zip(exact.routers, target.routers, strict=True):
        # Near-ties flip with rounding, so both are given scores.
        scores = torch.randn(64, target.config.moe.num_experts, device=target.device)  # type: ignore[union-attr]
        router.forced = same.forced = scores
    wanted, modules = (by_modules(each, prompt, ids, taps) for each in (exact, target))
    del exact
    rows = Rows(target, prompt, taps)
    found = [torch.cat(rows.features), *rows(ids)]
    for name, right, other, ours in zip(
        ("prompt, features", "rows, logits", "rows, features"), wanted, modules, found, strict=True
    ):
        theirs, mine = (float((each.float() - right.float()).norm() / right.float().norm()) for each in (other, ours))
        report.line(name, f"error {mine:.2e}, of the modules {theirs:.2e}", mine <= max(WORSE * theirs, ROUNDING))
    for router in target.routers:
        router.forced = None  # the scores that a row gets depend on its place
    found[1:] = rows(ids)
    few = rows(ids[:5])
    report.line(
        "five rows", "the bits of sixteen", all(torch.equal(a, b[:5]) for a, b in zip(few, found[1:], strict=True))
    )
    num_same = 0
    for row in range(8):
        alone = rows(ids[row : row + 1], max_rows=1)
        num_same += all(torch.equal(a[0], b[row]) for a, b in zip(alone, found[1:], strict=True))
        rows.commit(1)
    report.line("one row at a time", f"{num_same} of 8 have the bits of sixteen", num_same == 8)


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument(
        "--shape", choices=SHAPES, nargs="+", default=["Qwen3-8B", "Llama-3.1-8B", "Qwen3-Coder-30B-A3B"]
    )
    parser.add_argument("--weights", choices=list(MAKERS), default="bf16", help="how the target's lie in memory")
    parser.add_argument("--device", default="cuda")
    parser.add_argument("--layers", type=int, default=6)
    parser.add_argument("--prompt", type=int, default=PROMPT, help="tokens")
    parser.add_argument("--out", type=Path, help="write JSON there as well")
    options = parse(parser, "--device cpu --shape tiny --layers 6 --prompt 40", kernels=True)
    if options.quick:
        sum_in_order()  # NumPy adds up few rows in another order than many
    report = Report()
    for name in options.shape:
        print(name)
        shape, device = read_shape(name, options.layers), torch.device(options.device)
        check(random_pair(shape, device, weights=options.weights)[0], options.prompt, report)
        torch.cuda.empty_cache()  # does nothing without a GPU
    report.write(options.out)
    return 0 if report.ok else 1


if __name__ == "__main__":
    sys.exit(main())
