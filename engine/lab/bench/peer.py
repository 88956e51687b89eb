"""The same passes in ``transformers``, in the same run: the shape, the forced routing, the machine."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from statistics import median
from typing import Any

import torch
from torch import Tensor, nn

from ...loading.checkpoint import compute_dtype
from ...measured.timing import time_calls
from ...models.registry import text_config
from .routing import Routing, forced_scores
from .shapes import Shape, configs_of, shorten

ROUNDS = 8
BLOCK = 16


@dataclass(frozen=True, slots=True)
class PeerFigures:
    """``transformers`` on the same shape, in milliseconds; the median of a few passes."""

    version: str
    context: int
    routing: str
    token_ms: float
    """One row behind the context."""
    block_ms: float
    """Sixteen rows behind the context, as a verification needs them."""
    prefill_ms: float
    """The context itself, read in one pass."""

    def describe(self) -> str:
        return (
            f"transformers {self.version}, {self.routing} routing, context {self.context}: {self.token_ms:.2f} ms per"
            f" token, {self.block_ms:.2f} ms per {BLOCK} rows, {self.prefill_ms:.1f} ms to read the context"
        )


@torch.inference_mode()
def measure_transformers(shape: Shape, device: torch.device, context: int, routing: Routing) -> PeerFigures:
    """Builds the model beside ours with random weights of its own (as much memory again) and times it."""
    import transformers

    model = _build(shape, device)
    _force_routing(model, shape, device, routing)
    vocab_size = shape.target.vocab_size
    prompt = torch.randint(vocab_size, (1, context), device=device, generator=torch.Generator(device).manual_seed(0))

    def prefill() -> Any:
        return model(input_ids=prompt, use_cache=True, logits_to_keep=1).past_key_values

    prefill()
    prefill_ms = median(time_calls(prefill, 3, device))

    def rows(count: int) -> float:
        cache = prefill()  # grows by what is run; a few rows more change nothing
        return _median_ms(lambda: model(input_ids=prompt[:, :count], past_key_values=cache, use_cache=True), device)

    return PeerFigures(transformers.__version__, context, routing, rows(1), rows(min(BLOCK, context)), prefill_ms)


def _median_ms(work: Callable[[], object], device: torch.device) -> float:
    time_calls(work, 2, device)
    return median(time_calls(work, ROUNDS, device))


def _build(shape: Shape, device: torch.device) -> nn.Module:
    from transformers import AutoConfig, AutoModelForCausalLM

    config, drafter = configs_of(shape.name)
    if len(shape.target.layers) != text_config(config)["num_hidden_layers"]:
        shorten(config, drafter, len(shape.target.layers))
    with device, _default_dtype(compute_dtype(device)):
        text = AutoConfig.for_model(**text_config(config))
        model: nn.Module = AutoModelForCausalLM.from_config(text)  # type: ignore[no-untyped-call]
    return model.requires_grad_(False).eval()


@contextmanager
def _default_dtype(dtype: torch.dtype) -> Iterator[None]:
    before = torch.get_default_dtype()
    torch.set_default_dtype(dtype)
    try:
        yield
    finally:
        torch.set_default_dtype(before)


def _force_routing(model: nn.Module, shape: Shape, device: torch.device, routing: Routing) -> None:
    """Replaces what its routers return: probabilities, weights and ids of the chosen experts."""
    moe = shape.target.moe
    if moe is None:
        return
    routers = [module for name, module in model.named_modules() if name.endswith(".router")]
    scores = forced_scores(routing, len(routers), moe.num_experts, device)
    for router, own in zip(routers, scores, strict=True):
        router.register_forward_hook(_replacement(own, moe.top_k))


def _replacement(scores: Tensor, top_k: int) -> Callable[[nn.Module, Any, Any], tuple[Tensor, Tensor, Tensor]]:
    def replace(_module: nn.Module, _inputs: Any, output: Any) -> tuple[Tensor, Tensor, Tensor]:
        probabilities, weights, _ids = output
        rows = torch.arange(weights.shape[0], device=scores.device) % scores.shape[0]
        forced = scores[rows].softmax(dim=-1)
        chosen, ids = forced.topk(top_k, dim=-1)
        normed = chosen / chosen.sum(dim=-1, keepdim=True)
        return forced.to(probabilities.dtype), normed.to(weights.dtype), ids

    return replace
