"""Compares a prompt's pass by fused kernels with the modules that define it, at the real shape: one layer of each
kind."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from copy import deepcopy
from dataclasses import replace

import torch
from torch import Tensor

from engine.commands import WeightFormat
from engine.kernels.prefill.route import reference_routing, route_many, router_scores
from engine.kv_cache.cache import Cache
from engine.lab.bench.routing import force_routing, forced_scores
from engine.lab.bench.shapes import Shape
from engine.lab.bench.weights import random_pair
from engine.models.attention_backends import SDPA
from engine.models.gemma4.modules import Gemma4
from engine.models.gemma4.prefill_pass import Gemma4PrefillPass
from measure.gpu.report import Report

SLACK = 256
ERROR_RATIO = 1.1
"""How many times the modules' error the kernels' error may be; the two round in different places."""
ROUTER_ERROR = 1e-5
"""Relative difference of fp32 scores that are summed in another order."""


def check_prompts(shape: Shape, weights: WeightFormat, device: torch.device, report: Report) -> None:
    """Compares a piece longer than the rings, then a short one behind it, with the modules in fp32."""
    layers = shape.target.layers
    full = next(index for index, layer in enumerate(shape.target.attention) if layer.window is None)
    config = replace(shape.target, layers=layers[full - 1 : full + 1])
    target, _ = random_pair(Shape(shape.name, config, None), device, weights=weights)
    assert isinstance(target, Gemma4)
    if config.moe is not None:
        check_routing(target, 2048 if device.type == "cuda" else 40, report)
        # Near ties flip with rounding, and one flipped expert hides every other error.
        force_routing(target, forced_scores("uniform", len(config.layers), config.moe.num_experts, device))
    pieces = (2048, 300) if device.type == "cuda" else (40, 9)
    exact = _Reader(deepcopy(target).float(), pieces)
    exact.target.use_attention([SDPA] * len(config.layers))
    wanted = exact.read(exact.target)
    modules = _Reader(target, pieces)
    by_modules = _errors(modules.read(target), wanted)
    fused = _Reader(target, pieces)
    run = Gemma4PrefillPass(target, fused.cache)
    found = [part.clone() for part in fused.read(run)]
    for name, ours, theirs in zip(_NAMES, _errors(found, wanted), by_modules, strict=True):
        holds = ours <= max(ERROR_RATIO * theirs, ROUTER_ERROR)
        report.line(f"prompt, {name}", f"error {ours:.2e}, modules {theirs:.2e}", holds)
    same = all(torch.equal(one, other) for one, other in zip(found, fused.read(run), strict=True))
    report.line("prompt, again", "same bits twice" if same else "OTHER BITS THE SECOND TIME", same)


def check_routing(target: Gemma4, n: int, report: Report) -> None:
    """Compares scores on tensor cores with fp32, then the choice with its definition, with equal scores among them."""
    router, moe = target.routers[0], target.config.moe
    assert moe is not None
    weight = router.proj.weight
    x = torch.randn(n, target.config.hidden_size, device=weight.device).to(weight.dtype)
    scores, expected = router_scores(x, weight), x.double() @ weight.double().mT
    error = float((scores - expected).norm() / expected.norm())
    report.line("prompt, router's scores", f"error {error:.1e}, {scores.dtype}", error <= ROUTER_ERROR)
    scores = (scores * 4).round() / 4
    found = route_many(scores, n, moe.top_k, router.per_expert_scale)
    wanted = reference_routing(scores.cpu(), moe.top_k, router.per_expert_scale.cpu())
    same = all(
        torch.equal(getattr(found, part).cpu(), getattr(wanted, part)) for part in ("ids", "places", "ends")
    ) and torch.allclose(found.weights.cpu(), wanted.weights, atol=1e-6)
    report.line(f"prompt, routing of {n} rows", f"the defined choice and places: {same}", same)


_NAMES = ("last rows", "features", "keys", "values")


class _Reader:
    """A cache of its own, and a prompt that is run into it piece by piece."""

    def __init__(self, target: Gemma4, pieces: Sequence[int]):
        self.target, self.pieces = target, pieces
        weight, total = target.embed_tokens.weight, sum(pieces)
        self.cache = Cache(target.config.layers, total, SLACK, weight.dtype, weight.device)
        generator = torch.Generator().manual_seed(total)
        ids = torch.randint(0, target.config.vocab_size, (total,), generator=generator)
        self._ids = ids.to(weight.device)

    def read(self, run: Callable[..., object]) -> list[Tensor]:
        """Runs all pieces; returns the tensors that ``_NAMES`` lists."""
        hidden, features, start = [], [], 0
        for size in self.pieces:
            out = run(self._ids[start : start + size], start, self.cache, (0,))
            hidden.append(out.hidden[-1:])  # type: ignore[attr-defined]
            features.append(out.features)  # type: ignore[attr-defined]
            start += size
        kept = self.cache.layers
        keys, values = (torch.cat([getattr(layer, part).flatten() for layer in kept]) for part in ("k", "v"))
        return [torch.cat(hidden), torch.cat(features), keys, values]


def _errors(found: Sequence[Tensor], wanted: Sequence[Tensor]) -> list[float]:
    return [float((one.float() - other).norm() / other.norm()) for one, other in zip(found, wanted, strict=True)]
