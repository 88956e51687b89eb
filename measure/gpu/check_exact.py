"""Exactness on a GPU: ``python -m measure.gpu.check_exact`` from the repository's root; needs no pytest.

First tiny targets and a drafter in bf16 against references in fp32: the engine's error must not exceed what
``transformers`` itself makes by rounding. With ``--weights`` the targets are packed, and the references hold what the
packed weights stand for. Then the 26B-A4B shape with random weights, written as shards and loaded by
the engine's own loader: seconds, memory, and whether speculative answers equal plain ones. Where they part, the two
best logits must lie within rounding. Exit code 1 when something is off.

``--tiny`` runs the second part on a small shape, to try the script out, also on a CPU.
"""

from __future__ import annotations

import argparse
import sys
import tempfile
import time
from collections.abc import Sequence
from copy import deepcopy
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from threading import Event, Thread
from typing import Any, NamedTuple

import torch
from torch import Tensor, nn
from torch.nn import functional as F
from transformers.models.gemma4 import Gemma4ForConditionalGeneration
from transformers.models.gemma4_unified import Gemma4UnifiedForConditionalGeneration

from engine.commands import GenerationSettings, WeightFormat
from engine.decoding.decoder import Decoder, Prompt, Round
from engine.decoding.device_rounds import DeviceRounds
from engine.decoding.host_rounds import HostRounds
from engine.decoding.rounds import Rounds
from engine.kernels.decode.products.head import capped_logits
from engine.kernels.reference.attention import sdpa_attention
from engine.kernels.reference.rope import rope_table
from engine.kernels.toolchain.jit import MAX_ROWS
from engine.kernels.weights.kinds import MAKERS, bytes_of, weight_of
from engine.kernels.weights.plain import PlainWeight
from engine.kv_cache.cache import Cache
from engine.lab.bench.shapes import configs_of, period_of, shorten
from engine.loading.checkpoint import compute_dtype, load_drafter, load_target
from engine.models.dflash.config import DFlashConfig
from engine.models.dflash.modules import DFlashDrafter
from engine.models.gemma4 import GEMMA4
from engine.models.gemma4.config import Gemma4Config
from engine.models.gemma4.decode_pass import Gemma4DecodePass
from engine.models.gemma4.modules import Gemma4, Gemma4DecoderLayer
from engine.models.layers import Experts
from engine.models.packed import packable, shape_of
from engine.models.target import TargetModel
from measure.gpu.check_rounds import OracleLaunches, device_rounds, spoiled
from measure.gpu.random_checkpoint import writable_bytes, write_checkpoint
from measure.gpu.report import Report
from measure.quick import parse
from support.checkpoints import (
    FULL,
    SLIDING,
    VOCAB_SIZE,
    drafter_config,
    target_config,
    write_drafter,
)
from support.divergence import first_divergence
from support.published import PUBLISHED, write_published
from support.reference_drafter import ReferenceDrafter

ERROR_RATIO = 1.5
"""How many times the error of ``transformers`` the engine's bf16 error may be, since two ways of rounding differ that
much."""
DRAFTER_ERROR = 0.05
"""Relative error of a drafter's states in bf16, three layers deep: each rounding is 2^-9."""
WRITE_SECONDS = 150.0
PROMPT_LENGTH = 64
VOCABULARY_PART = 65_536
"""Columns of the head that are converted to fp32 at a time."""
HOST_TOKENS = 48
"""Tokens of an answer by the modules, which take fifty times as long."""


def quiet(_what: str, _done: int, _total: int) -> None:
    """Ignores progress."""


def relative_error(actual: Tensor, expected: Tensor) -> float:
    return float((actual.float() - expected).norm() / expected.norm())


# --- tiny shapes


@torch.inference_mode()
def check_tiny_target(name: str, folder: Path, weights: WeightFormat, device: torch.device, report: Report) -> None:
    """Compares the logits of the engine and of ``transformers``, both in the device's dtype, with ``transformers`` in
    fp32."""
    ids = torch.randint(0, VOCAB_SIZE, (150,), generator=torch.Generator().manual_seed(7))
    reference: nn.Module = write_published(folder, name, seed=11)
    target = load_target(folder, device, quiet, weights=weights)
    hold_what_is_packed(reference, target)
    exact = reference(input_ids=ids[None]).logits[0]
    model = Gemma4UnifiedForConditionalGeneration if PUBLISHED[name].unified else Gemma4ForConditionalGeneration
    rounded = model.from_pretrained(folder, dtype=compute_dtype(device)).to(device).eval()
    hold_what_is_packed(rounded, target)
    theirs = relative_error(rounded(input_ids=ids[None].to(device)).logits[0].cpu(), exact)
    for size in (150, 16, 1):
        ours = relative_error(teacher_forced(target, ids.tolist(), size).cpu(), exact)
        holds = ours <= max(ERROR_RATIO * theirs, 1e-5)
        report.line(f"{name}, {size} rows a pass", f"error {ours:.2e}, transformers {theirs:.2e}", holds)


def hold_what_is_packed(reference: nn.Module, target: TargetModel) -> None:
    """Gives a model of ``transformers`` the numbers that the packed weights of a target stand for."""
    theirs = dict(reference.named_parameters())
    with torch.device("meta"):
        names = list(packable(target.config.build()))
    for name in names:
        path, _, stem = name.rpartition(".")
        weight = weight_of(target.get_submodule(path), stem)
        theirs[GEMMA4.tensor_name(name)].copy_(weight.restored())


@torch.inference_mode()
def check_tiny_drafter(folder: Path, target: TargetModel, report: Report) -> None:
    """Compares hidden states while the context grows with the reference that computes them from all features."""
    device, dtype = target.embed_tokens.weight.device, target.embed_tokens.weight.dtype
    config = drafter_config([SLIDING, SLIDING, FULL], [0, 2], len(target.layers))
    reference = ReferenceDrafter(config, write_drafter(folder, config))
    drafter = load_drafter(folder, target, quiet)
    assert isinstance(drafter, DFlashDrafter)
    features = torch.randn(200, 128, generator=torch.Generator().manual_seed(4))
    block = torch.randn(16, 64, generator=torch.Generator().manual_seed(5))
    cache = Cache(drafter.config.layers, 256, 16, dtype, device)
    worst = 0.0
    for start in range(0, 200, 8):
        drafter.ingest(features[start : start + 8].to(device, dtype), cache)
        ours = drafter.hidden(block.to(device, dtype), cache).cpu()
        worst = max(worst, relative_error(ours, reference.hidden(features[: start + 8], block)))
    report.line("drafter, 25 rounds", f"worst error {worst:.2e}", worst < DRAFTER_ERROR)


@torch.inference_mode()
def teacher_forced(target: TargetModel, ids: Sequence[int], size: int) -> Tensor:
    """Logits [n, vocab] of a given text, run ``size`` rows at a time."""
    weight = target.embed_tokens.weight
    cache = Cache(target.config.layers, len(ids), size, weight.dtype, weight.device)
    logits = []
    for start in range(0, len(ids), size):
        rows = torch.tensor(ids[start : start + size], device=weight.device)
        logits.append(target.logits(target(rows, start, cache).hidden))
        cache.commit(start + len(rows))
    return torch.cat(logits)


# --- the full shape


@dataclass
class MemoryPeak:
    """The process's own memory (no mapped files) while a block runs, sampled; bytes."""

    before: int = 0
    most: int = 0

    def __enter__(self) -> MemoryPeak:
        self.before = self.most = _anonymous_bytes()
        self._done = Event()
        self._thread = Thread(target=self._sample, daemon=True)
        self._thread.start()
        return self

    def __exit__(self, *_error: object) -> None:
        self._done.set()
        self._thread.join()

    def _sample(self) -> None:
        while not self._done.wait(0.02):
            self.most = max(self.most, _anonymous_bytes())


def _anonymous_bytes() -> int:
    for line in Path("/proc/self/status").read_text().splitlines():
        if line.startswith("RssAnon:"):
            return int(line.split()[1]) * 1024
    return 0


def write_pair(folder: Path, tiny: bool, weights: WeightFormat, device: torch.device, report: Report) -> None:
    """Writes the 26B-A4B target in some format, or as many of its layers as disk and time allow, and its drafter."""
    target_json, drafter_json = tiny_configs() if tiny else configs_of("26B-A4B")
    period = period_of(target_json)
    periods = target_json["text_config"]["num_hidden_layers"] // period
    possible = writable_bytes(folder, WRITE_SECONDS)
    while periods > 1 and _checkpoint_bytes(target_json, weights) > possible:
        periods -= 1
        shorten(target_json, drafter_json, periods * period)
        report.line("disk", f"too small or too slow ({possible / 1e9:.0f} GB): {periods * period} layers")
    with torch.device("meta"):
        target = Gemma4(Gemma4Config.from_json(target_json))
        drafter = DFlashDrafter(DFlashConfig.from_json(drafter_json))
    size, seconds = write_checkpoint(folder / "target", target_json, target, GEMMA4.tensor_name, device, weights)
    write_checkpoint(folder / "drafter", drafter_json, drafter, str, device)
    report.line("written", f"{size / 1e9:.2f} GB, {len(target.layers)} layers, in {seconds:.0f} s")


def tiny_configs() -> tuple[dict[str, Any], dict[str, Any]]:
    kinds = ([SLIDING] * 5 + [FULL]) * 2
    return target_config(kinds, moe=True).to_dict(), drafter_config([SLIDING, FULL], [1, 6], len(kinds))


def _checkpoint_bytes(config: dict[str, Any], weights: WeightFormat) -> int:
    return bytes_of(shape_of(Gemma4Config.from_json(config), torch.bfloat16, weights))


def load_pair(folder: Path, device: torch.device, report: Report) -> tuple[Gemma4, DFlashDrafter]:
    if device.type == "cuda":
        torch.cuda.empty_cache()
        torch.cuda.reset_peak_memory_stats()
    started = time.perf_counter()
    with MemoryPeak() as memory:
        target = load_target(folder / "target", device, quiet)
        seconds = time.perf_counter() - started
    drafter = load_drafter(folder / "drafter", target, quiet)
    size = sum(parameter.nbytes for parameter in target.parameters())
    shard = max(path.stat().st_size for path in (folder / "target").glob("*.safetensors"))
    host = memory.most - memory.before
    report.line("loaded by engine.loading.checkpoint", f"{seconds:.1f} s, {size / seconds / 1e9:.2f} GB/s")
    small_enough = device.type == "cpu" or host <= shard + 4e9
    report.line("peak host memory", f"{host / 1e9:.2f} GB (largest shard {shard / 1e9:.2f} GB)", small_enough)
    if device.type == "cuda":
        peak = torch.cuda.max_memory_allocated()
        report.line("peak GPU memory while loading", f"{peak / 1e9:.2f} GB (weights {size / 1e9:.2f} GB)")
    target.config = replace(target.config, stop_token_ids=())
    assert isinstance(target, Gemma4) and isinstance(drafter, DFlashDrafter)
    return target, drafter


def answer(decoder: Decoder, rounds: Rounds, prompt: Sequence[int], settings: GenerationSettings) -> TimedAnswer:
    """Answers from empty caches; returns the tokens, how many were drafts, and the seconds it took."""
    decoder.clear()
    decoder.use_rounds(rounds)
    started = time.perf_counter()
    events = decoder.decode(Prompt(tuple(prompt), len(prompt)), lambda: settings)
    made = [event for event in events if isinstance(event, Round)]
    seconds = time.perf_counter() - started
    return TimedAnswer(
        [token for done in made for token in done.emitted], sum(done.num_accepted for done in made), seconds
    )


class TimedAnswer(NamedTuple):
    ids: list[int]
    accepted: int
    seconds: float

    def __str__(self) -> str:
        speed = f"{len(self.ids) / self.seconds:.1f} tok/s"
        return f"{len(self.ids)} tokens, {speed}, {self.accepted} drafts accepted"


def check_answers(target: Gemma4, drafter: DFlashDrafter, tokens: int, report: Report) -> None:
    """Compares plain answers with those with drafts that are never right and with drafts that are mostly right."""
    vocabulary = target.config.vocab_size
    prompt = torch.randint(0, vocabulary, (PROMPT_LENGTH,), generator=torch.Generator().manual_seed(1)).tolist()
    decoder = Decoder(target, drafter, PROMPT_LENGTH + tokens + 32)
    settings = GenerationSettings(max_new_tokens=tokens, block_size=16)
    for temperature in (0.0, 0.8):
        warm = replace(settings, temperature=temperature, seed=5)
        plain = answer(decoder, device_rounds(decoder), prompt, replace(warm, speculation=False))
        report.line(f"T {temperature}, plain", str(plain))
        oracle = DeviceRounds(OracleLaunches(decoder, spoiled([*prompt, *plain.ids])))
        for what, rounds in (("the drafter's own", device_rounds(decoder)), ("right but every fifth", oracle)):
            told = answer(decoder, rounds, prompt, warm)
            report.line(f"T {temperature}, drafts {what}", str(told))
            same = told.ids == plain.ids
            report.line("  token for token the plain answer", str(same), same)
        if temperature == 0:
            few = replace(warm, speculation=False, max_new_tokens=min(HOST_TOKENS, tokens))
            told = answer(decoder, HostRounds(), prompt, few)
            divergence = first_divergence(target, prompt, told.ids, plain.ids[:HOST_TOKENS])
            holds = divergence is None or divergence.margin <= divergence.allowed
            report.line("  PyTorch's modules", "equal" if divergence is None else str(divergence), holds)
            check_logits(target, decoder, prompt, plain.ids, report)
    if target.embed_tokens.weight.is_cuda:
        report.line("peak GPU memory in all", f"{torch.cuda.max_memory_allocated() / 1e9:.2f} GB")


@torch.inference_mode()
def check_logits(target: Gemma4, decoder: Decoder, prompt: list[int], plain: list[int], report: Report) -> None:
    """Compares the logits behind the plain answer's every token with fp32, beyond the first place where answers part.

    The kernels' error must not exceed what PyTorch's modules make by rounding, with 16 rows at a time in both."""
    ids = [*prompt, *plain[:-1]]
    exact = exact_logits(target, ids)[len(prompt) - 1 :]
    said, best = torch.tensor(plain, device=exact.device), exact.max(dim=-1)
    by_kernels = kernel_logits(decoder, ids)[len(prompt) - 1 :]
    by_modules = teacher_forced(target, ids, MAX_ROWS)[len(prompt) - 1 :]
    ours, theirs = relative_error(by_kernels, exact), relative_error(by_modules, exact)
    holds = ours <= max(ERROR_RATIO * theirs, 1e-5)
    report.line("  logits of the plain answer, against fp32", f"error {ours:.2e}, modules {theirs:.2e}", holds)
    for name, tokens in (("kernels", said), ("modules", by_modules.argmax(dim=-1))):
        gaps = best.values - exact.gather(-1, tokens[:, None]).squeeze(-1)
        value = f"{(best.indices != tokens).sum()} of {len(plain)} differ, largest gap {gaps.max():.4f}"
        report.line(f"  {name}: tokens that fp32 would not have said", value)


def exact_logits(target: Gemma4, ids: Sequence[int]) -> Tensor:
    """Logits [n, vocab] of a text by the modules in fp32, a layer at a time: a whole copy would not fit."""
    weight = target.embed_tokens.weight
    cache = Cache(target.config.layers, len(ids), len(ids), torch.float32, weight.device)
    positions = torch.arange(len(ids), device=weight.device)
    x = weight[torch.tensor(ids, device=weight.device)].float() * target.embedding_scale
    for config, layer, layer_cache in zip(target.config.attention, target.layers, cache.attention, strict=True):
        assert isinstance(layer, Gemma4DecoderLayer)
        whole = deepcopy(layer).float()
        whole.self_attn.attend = sdpa_attention
        if whole.has_experts:
            whole.experts.forward = partial(exact_experts, whole.experts)  # type: ignore[method-assign]
        x = whole(x, 0, layer_cache, rope_table(positions, target.frequencies[config.rope]))
    hidden = deepcopy(target.norm).float()(x)
    parts = (PlainWeight(part.float()) for part in weight.split(VOCABULARY_PART))  # one in fp32 at a time
    return torch.cat([capped_logits(hidden, part, target.config.logit_softcap) for part in parts], -1)


def exact_experts(experts: Experts, x: Tensor, weights: Tensor, ids: Tensor) -> Tensor:
    """``Experts.forward``, one expert after the other: grouped products are made for 16 bits."""
    out = torch.zeros_like(x)
    gate_up, down = (weight_of(experts, stem).restored() for stem in ("gate_up_proj", "down_proj"))
    for expert in ids.unique().tolist():
        rows, choices = (ids == expert).nonzero(as_tuple=True)
        gate, up = F.linear(x[rows], gate_up[expert]).chunk(2, dim=-1)
        pair = F.linear(F.gelu(gate, approximate="tanh") * up, down[expert])
        out.index_add_(0, rows, pair * weights[rows, choices, None])
    return out


def kernel_logits(decoder: Decoder, ids: Sequence[int]) -> Tensor:
    """Logits [n, vocab] of a text by the kernels of decoding rounds, 16 rows at a time."""
    assert isinstance(decoder.target, Gemma4)
    rows = Gemma4DecodePass(decoder.target, decoder.cache, *torch.zeros(2, 1, dtype=torch.int32, device=decoder.device))
    assert rows.out.logits is not None
    logits = []
    for start in range(0, len(ids), MAX_ROWS):
        piece = torch.tensor(ids[start : start + MAX_ROWS], device=decoder.device)
        rows.cursor.fill_(start)
        rows.rows.fill_(len(piece))
        rows.ids[: len(piece)] = piece
        rows.forward()
        logits.append(rows.out.logits[: len(piece)].clone())
    decoder.clear()
    return torch.cat(logits)


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--device", default="cuda" if torch.cuda.is_available() else "cpu")
    parser.add_argument("--tiny", action="store_true", help="a small shape instead of 26B-A4B")
    parser.add_argument("--weights", choices=list(MAKERS), default="bf16", help="how targets are stored and held")
    parser.add_argument("--tokens", type=int, default=512)
    parser.add_argument("--out", type=Path, help="write JSON there as well")
    parser.add_argument("--folder", type=Path, help="where to write the checkpoint (a temporary folder)")
    options = parse(parser, "--device cpu --tiny --tokens 8")
    device, report, started = torch.device(options.device), Report(), time.perf_counter()
    if device.type == "cuda":
        device = torch.device("cuda", torch.cuda.current_device())
    with tempfile.TemporaryDirectory(dir=options.folder) as name:
        folder = Path(name)
        print(f"tiny shapes, {compute_dtype(device)} on {device}")
        for published in PUBLISHED:
            check_tiny_target(published, folder / published, options.weights, device, report)
        check_tiny_drafter(folder / "drafter", load_target(folder / "31B", device, quiet), report)
        print("a small shape" if options.tiny else "the 26B-A4B shape")
        write_pair(folder / "pair", options.tiny, options.weights, device, report)
        target, drafter = load_pair(folder / "pair", device, report)
        report.write(options.out)
        check_answers(target, drafter, options.tokens, report)
        report.write(options.out)
    report.write(options.out)
    print(f"{'all checks hold' if report.ok else 'CHECKS FAILED (X)'}, {time.perf_counter() - started:.0f} s")
    return 0 if report.ok else 1


if __name__ == "__main__":
    sys.exit(main())
