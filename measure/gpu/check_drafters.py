"""One draft of the published drafters that bring a head of their own or choose token behind token, on a GPU:
``python -m measure.gpu.check_drafters``; needs no pytest.

Random weights at the published geometries, beside targets of which only the tables exist: nothing else is built. Prints
for each what a draft takes, replayed from a graph, against the time that memory takes for its bytes and 8 us for each
of its launches, and what the ingestion before it takes; and whether the host in fp32 would have drafted each token, and
each choice of a tree, behind the device's own token before, or lacks no more for it than rounding costs at that
position (``draft_scores``). Exit code 1 when something is off.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Callable
from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass, replace
from multiprocessing import get_context
from pathlib import Path
from typing import Any

import torch
from torch import Tensor
from torch._C._autograd import DeviceType
from torch.profiler import ProfilerActivity, profile

from engine.kernels.round.choices import CANDIDATES, DraftChoices
from engine.kernels.toolchain.jit import MAX_ROWS
from engine.kernels.weights.plain import PlainWeight
from engine.kv_cache.cache import Cache
from engine.lab.bench.shapes import TINY, read_shape
from engine.lab.bench.weights import random_tensor
from engine.loading.checkpoint import compute_dtype
from engine.measured.ceiling import measure_ceiling
from engine.measured.timing import time_launches
from engine.models.attention_backends import choose_backends
from engine.models.dflash.injection import DSpineDrafter
from engine.models.dflash.modules import DFlashDrafter
from engine.models.drafter import DraftBinding, Drafter, DraftPass, RoundRows
from engine.models.eagle3.config import Eagle3Config
from engine.models.family import DrafterConfig, OwnTables
from engine.models.packed import hold
from engine.models.registry import drafter_config_of
from engine.models.target import TargetModel
from measure.gpu.draft_scores import Verdict, host_of, verdicts
from measure.gpu.report import Report
from measure.quick import parse

LAUNCH_US, MARGIN = 8.0, 1.25
"""What a launch may take beside its bytes, and how far both together may be missed."""
PAIRED = ("codebook", "markov_w1.weight", "markov_w2.weight")
"""Tables of which pairs are scored: so large that a pair counts as much as a logit, and a fault more than rounding."""
COMMITTED = 12
"""Rows that enter the drafter's context before a draft that is compared."""


@dataclass(frozen=True, slots=True)
class Published:
    """A drafter that is published, as far as its geometry is known."""

    shape: str
    """Of its target."""
    drafts: int
    config: dict[str, Any]


def layers(hidden: int, inter: int, heads: tuple[int, int, int], vocabulary: int, count: int = 1) -> dict[str, Any]:
    """The part of a config that describes layers. ``heads``: of queries, of keys, and their size."""
    return {
        "hidden_size": hidden, "intermediate_size": inter, "num_hidden_layers": count, "num_attention_heads": heads[0],
        "num_key_value_heads": heads[1], "head_dim": heads[2], "hidden_act": "silu", "rms_norm_eps": 1e-6,
        "rope_theta": 1e4, "vocab_size": vocabulary,
    }  # fmt: skip


def sliding(count: int) -> dict[str, Any]:
    return {"layer_types": ["sliding_attention"] * count, "sliding_window": 2048}


def speculators(kind: str, of_layers: dict[str, Any], **fields: Any) -> dict[str, Any]:
    return {"speculators_model_type": kind, "transformer_layer_config": of_layers, "draft_vocab_size": 32_000, **fields}


def second(taps: list[int], mask: int) -> dict[str, Any]:
    """DFlash 2's fields in z-lab's layout."""
    own = {"target_layer_ids": taps, "mask_token_id": mask, "selector_rank": 256, "selector_top_k": 16}
    convolutions = {"conv_kernel_size": 2, "conv_group_size": 16}
    return {"architectures": ["DFlash2DraftModel"], "block_size": 8, "dflash_config": {**own, **convolutions}}


def dspine(taps: list[int], mask: int, depth: int) -> dict[str, Any]:
    """DSpine's fields as SpecForge writes them."""
    own = {"target_layer_ids": taps, "mask_token_id": mask}
    sizes = {"transfer_rank": 1024, "message_size": 512, "top_k": 16}
    kind = {"architectures": ["DSpineDraftModel"], "block_size": 16, "num_target_layers": depth}
    return {**kind, "dflash_config": own, "dspine_config": sizes}


LLAMA3: dict[str, Any] = {"architectures": ["LlamaForCausalLMEagle3"], "draft_vocab_size": 32_000}


def gemma(architecture: str, layers_of_it: int, **fields: Any) -> dict[str, Any]:
    """DeepSpec's config of a drafter for 12B, whose layers are the target's full ones."""
    turns = {"rope_type": "proportional", "partial_rotary_factor": 0.25, "rope_theta": 1e6}
    return layers(3840, 15_360, (16, 8, 256), 262_144, layers_of_it) | {
        "architectures": [architecture], "target_layer_ids": [5, 17, 29, 41, 46], "attention_k_eq_v": True,
        "layer_types": ["full_attention"] * layers_of_it, "num_global_key_value_heads": 1, "global_head_dim": 512,
        "hidden_act": None, "hidden_activation": "gelu_pytorch_tanh", "final_logit_softcapping": 30.0,
        "rope_parameters": {"full_attention": turns}, **fields,
    }  # fmt: skip


EAGLE_TAPS, TAPS = "eagle_aux_hidden_state_layer_ids", "aux_hidden_state_layer_ids"
DRAFTERS = {
    "EAGLE-3 of 26B-A4B": Published(
        "26B-A4B", 3, speculators("eagle3", layers(2816, 2112, (16, 8, 256), 262_144), **{EAGLE_TAPS: [2, 15, 27]})
    ),
    "DSpark of 26B-A4B": Published(
        "26B-A4B", 6,
        speculators(
            "dspark", layers(2816, 2112, (16, 8, 256), 262_144, 5), block_size=7, mask_token_id=4, markov_rank=256,
            **{TAPS: [3, 10, 18, 25, 28]},
        ),
    ),
    "DFlash 2 of 31B": Published(
        "31B", 7,
        speculators(
            "dflash2", layers(5376, 21_504, (32, 16, 256), 262_144, 5) | sliding(5), block_size=8, mask_token_id=4,
            **{"draft_vocab_size": 262_144, TAPS: [1, 17, 29, 47, 59]},
        ),
    ),
    "DFlash 2 of 35B-A3B": Published(
        "Qwen3.6-35B-A3B", 7,
        layers(2048, 6144, (32, 8, 128), 248_320, 6) | sliding(6)
        | second([1, 6, 11, 16, 22, 27, 32, 37], 248_077) | {"is_causal": False, "num_target_layers": 40},
    ),
    "DSpine of Qwen3-8B": Published(
        "Qwen3-8B", 15,
        layers(4096, 12_288, (32, 8, 128), 151_936, 5) | dspine([1, 9, 17, 25, 33], 151_669, 36),
    ),
    "DSpine of Qwen3.8-27B": Published(
        "Qwen3.8-27B", 15,
        layers(5120, 17_408, (32, 8, 128), 248_320, 5) | dspine([5, 19, 33, 47, 61], 248_070, 64),
    ),
    "EAGLE-3 of Llama-3.1-8B": Published(
        "Llama-3.1-8B", 7, LLAMA3 | layers(4096, 14_336, (32, 8, 128), 128_256)
    ),
    "EAGLE-3 of 12B": Published("12B", 7, gemma("Gemma4Eagle3Model", 1)),
    "DSpark of 12B": Published(
        "12B", 7, gemma("Gemma4DSparkModel", 5, block_size=7, mask_token_id=4, markov_rank=256)
    ),
    "EAGLE-3 of gpt-oss-120b": Published(
        "gpt-oss-120b", 7,
        LLAMA3 | layers(2880, 17_280, (64, 8, 64), 201_088) | {"eagle_config": {EAGLE_TAPS: [1, 17, 33]}},
    ),
}  # fmt: skip
"""Sizes from the files' own configs and numbers of bytes (of 26B-A4B's EAGLE-3 the taps are not known; they cost the
same wherever they are; of 27B's DSpine the layers are taken to be those of its DFlash 2)."""
QUICK: dict[str, Any] = {
    "hidden_size": 64, "intermediate_size": 80, "num_attention_heads": 4, "num_key_value_heads": 2, "head_dim": 16,
    "vocab_size": 512, "mask_token_id": 4, "global_head_dim": 32, "selector_rank": 32, "markov_rank": 32,
    "conv_group_size": 8, "transfer_rank": 24, "message_size": 40, "num_target_layers": 10,
    "target_layer_ids": [0, 1, 2, 3], TAPS: [1, 2, 3], EAGLE_TAPS: [1, 2, 3],
}  # fmt: skip


def in_small(config: dict[str, Any]) -> dict[str, Any]:
    """The same config with the sizes of ``QUICK``, of whose tokens 96 are drafted, or all."""
    few = config.get("draft_vocab_size", 0) == 32_000
    small = {name: QUICK.get(name, value) for name, value in config.items()}
    small |= {name: in_small(value) for name, value in config.items() if isinstance(value, dict)}
    return small | ({"draft_vocab_size": 96 if few else 512} if "draft_vocab_size" in config else {})


@dataclass(slots=True)
class Built:
    """A drafter beside its target's tables, and its draft pass on a cache of its own."""

    drafter: Drafter
    target: TargetModel
    drafting: DraftPass
    cache: Cache
    rows: RoundRows
    features: Tensor
    """[16, taps * hidden]: those of committed rows."""
    choices: DraftChoices | None
    """Of trees; None for one that drafts chains alone."""
    max_context: int

    @property
    def head_bytes(self) -> int:
        return self.drafter.plain_head(self.target).values.nbytes


def new_cache(drafter: Drafter, max_context: int, like: Tensor) -> Cache:
    of_target = Cache((), max_context, MAX_ROWS, like.dtype, like.device)
    return drafter.new_cache(of_target, max_context, MAX_ROWS, like.dtype, like.device)


def config_of(case: Published, target: TargetModel) -> DrafterConfig:
    """The drafter's config, with a head of its own where it drafts among few tokens."""
    config = drafter_config_of(case.config).beside(target.config)
    vocabulary = config.tables.vocabulary
    if isinstance(config, Eagle3Config):
        config = replace(config, head_norms=False)
    return replace(
        config,
        tables=OwnTables(head=vocabulary is not None, vocabulary=vocabulary),
        vocab_size=target.config.vocab_size,
    )


@torch.inference_mode()
def build(case: Published, in_8_bits: bool, device: torch.device, dtype: torch.dtype, max_context: int) -> Built:
    generator = torch.Generator(device).manual_seed(0)

    def bring(model: TargetModel | Drafter, wanted: Callable[[str], bool]) -> None:
        for name, parameter in list(model.named_parameters()):
            if wanted(name):
                made = random_tensor(name, tuple(parameter.shape), generator, dtype, model.branch_ends)
                if name.endswith(PAIRED):
                    made.mul_(made.shape[1] ** 0.25)
                hold(model, name, PlainWeight(made))

    with torch.device("meta"):
        target = read_shape(case.shape).target.build()
        config = config_of(case, target)
        drafter = config.build()
    bring(target, lambda name: name.startswith(("embed_tokens.", "lm_head.", "norm.")))
    drafter.use_attention(choose_backends("sdpa", config.layers, device, dtype))
    bring(drafter, lambda _: True)
    if config.tables.vocabulary is not None:
        drafter.token_ids = torch.arange(config.tables.vocabulary, device=device) * 2
    drafter.requires_grad_(False).eval()
    drafter.prepare()

    def number(value: int) -> Tensor:
        return torch.tensor([value], dtype=torch.int32, device=device)

    rows = RoundRows(number(0), number(case.drafts + 1 - config.first_drafts), number(0), number(COMMITTED))
    width = len(config.target_layer_ids) * target.config.hidden_size
    features = torch.randn(MAX_ROWS, width, generator=generator, device=device, dtype=dtype)
    tokens = torch.zeros(MAX_ROWS, dtype=torch.int64, device=device)
    head = drafter.head_in_8_bits(target) if in_8_bits else None
    cache = new_cache(drafter, max_context, features)
    choices = DraftChoices.allocate(device, conditioned=True) if drafter.conditioned else None
    drafting = drafter.draft_pass(target, cache, DraftBinding(features, tokens, rows, head=head, choices=choices))
    return Built(drafter, target, drafting, cache, rows, features, choices, max_context)


def bytes_of_draft(built: Built, count: int, in_8_bits: bool) -> int:
    """Bytes of the weights that a draft of ``count`` tokens reads, each as often as it is read."""
    drafter = built.drafter
    packed = {id(parameter) for _, parameter in drafter.products()} if in_8_bits else set()
    layer_bytes = sum(
        each.nbytes * (each.element_size() if id(each) not in packed else 1) // each.element_size()
        for name, each in drafter.named_parameters()
        if name.startswith("layers.")
    )
    head_bytes = built.head_bytes // (built.features.element_size() if in_8_bits else 1)
    total = (layer_bytes + head_bytes) * (count if drafter.sequential else 1)
    if isinstance(drafter, DFlashDrafter) and drafter.config.markov is not None:
        total += count * drafter.markov_head.markov_w2.weight.nbytes
    if isinstance(drafter, DSpineDrafter):
        injection, sizes = drafter.injection, drafter.config
        again = 3 * sizes.message * sizes.rank * len(sizes.layers) + sizes.message * sizes.hidden_size
        rows = count * CANDIDATES * (sizes.hidden_size + sizes.rank)  # of the head and the codes
        total += sum(each.nbytes for each in injection.parameters()) + (again + rows) * built.features.element_size()
    return total


@torch.inference_mode()
def compared(built: Built, count: int, in_8_bits: bool, anchor: int = 7) -> list[Verdict]:
    """What the host says of a device's draft behind the same committed rows."""
    drafting, features = built.drafting, built.features[:COMMITTED]
    built.drafter.ingest(features, built.cache)  # as of a prompt
    built.rows.ingest_start.fill_(COMMITTED)
    drafting.ingest()
    built.rows.cursor.fill_(2 * COMMITTED)
    drafting.block[0] = anchor
    if built.choices is not None:
        drafting.draft(count, tree=True)
    drafting.draft(count)
    hosts = []
    for dtype in (torch.float32, features.dtype):
        rows = features.to(dtype)
        host = host_of(built.drafter, built.target, in_8_bits, dtype, new_cache(built.drafter, built.max_context, rows))
        for _ in range(2):
            host.drafter.ingest(rows, host.cache)
        hosts.append(host)
    exact, rounded = hosts
    return list(verdicts(exact, rounded, anchor, drafting.out.token[:count].tolist(), built.choices))


def launches_of(work: Callable[[], None], device: torch.device) -> int:
    """How many kernels and copies this launches; 0 where they can't be seen."""
    if device.type != "cuda":
        return 0
    with profile(activities=[ProfilerActivity.CUDA]) as seen:
        work()
        torch.cuda.synchronize()
    return sum(each.device_type == DeviceType.CUDA for each in seen.events() or ())


def compile_kernels(name: str, in_8_bits: bool, context: int) -> None:
    """In a process of its own, so that all are compiled at once: what is compiled lies on the disk for the others."""
    case, device = DRAFTERS[name], torch.device("cuda")
    built = build(case, in_8_bits, device, compute_dtype(device), context + 4 * MAX_ROWS)
    with torch.inference_mode():
        built.drafting.ingest()
        built.drafting.draft(case.drafts)
        built.drafting.draft(case.drafts, tree=built.choices is not None)
        torch.cuda.synchronize()


@torch.inference_mode()
def check(name: str, in_8_bits: bool, pace: float, options: argparse.Namespace, report: Report) -> None:
    device, case = torch.device(options.device), DRAFTERS[name]
    if options.quick:
        case = Published(TINY, case.drafts, in_small(case.config))
    dtype = torch.bfloat16 if options.bf16 else compute_dtype(device)
    built = build(case, in_8_bits, device, dtype, options.context + 4 * MAX_ROWS)
    what = f"{name}, {8 if in_8_bits else 16} bits"
    for verdict in compared(built, case.drafts, in_8_bits):
        report.line(f"{what}, {verdict.what}", str(verdict), verdict.holds)
    if device.type != "cuda":
        return
    built.rows.cursor.fill_(options.context)
    built.rows.ingest_start.fill_(options.context - COMMITTED)
    nbytes = bytes_of_draft(built, case.drafts, in_8_bits)
    count = launches_of(lambda: built.drafting.draft(case.drafts), device)
    took = time_launches([lambda: built.drafting.draft(case.drafts)], device)
    ingested = time_launches([built.drafting.ingest], device)
    by_bytes = nbytes / pace * 1e6
    most = MARGIN * (by_bytes + LAUNCH_US * count)
    value = f"{took:.1f} us for {case.drafts}; {by_bytes:.1f} for {nbytes / 1e9:.3f} GB, {count} launches"
    holds = took <= most or not count
    report.timed(f"{what}, drafts", f"{value}: {took / (by_bytes + LAUNCH_US * count):.0%} of both", holds)
    report.line(f"{what}, takes in {COMMITTED} rows", f"{ingested:.1f} us")


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--device", default="cuda" if torch.cuda.is_available() else "cpu")
    parser.add_argument("--only", choices=tuple(DRAFTERS), nargs="+", default=list(DRAFTERS), metavar="NAME")
    parser.add_argument("--bits", type=int, choices=(8, 16), nargs="+", default=[16, 8])
    parser.add_argument("--bf16", action="store_true", help="on a CPU, too, where it is slow")
    parser.add_argument("--context", type=int, default=2048, help="committed positions before a draft")
    parser.add_argument("--out", type=Path, help="write JSON there as well")
    options = parse(parser, "--device cpu --context 40 --bits 16", kernels=True)
    report, pace = Report(options.quick), 0.0
    cases = [(name, bits == 8) for name in options.only for bits in options.bits]
    if options.device == "cuda":
        with ProcessPoolExecutor(len(cases), mp_context=get_context("spawn")) as pool:
            compiling = [pool.submit(compile_kernels, name, in_8_bits, options.context) for name, in_8_bits in cases]
            failed = [str(each.exception()) for each in compiling if each.exception() is not None]
        report.line("compiled", f"{len(cases)} at once" + "".join(f"; one failed: {why}" for why in failed))
        pace = measure_ceiling(torch.device("cuda")).best
        report.line("the memory's pace", f"{pace / 1e12:.2f} TB/s")
    return report.of_each(cases, lambda each: check(*each, pace, options, report), options.out)


if __name__ == "__main__":
    sys.exit(main())
