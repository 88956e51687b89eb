"""Qwen3.5's own MTP: drafts are those of a layer written out here, over the whole text anew each time; texts are the
target's own, whatever was drafted and wherever a conversation went back to; what it can't be is refused in words."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import pytest
import torch
from torch import Tensor
from torch.nn import functional as F

import engine
from engine.commands import MTP
from engine.decoding import decoder as decoder_module
from engine.decoding.decoder import Decoder
from engine.errors import WeightsFailure
from engine.events import Step
from engine.hub.fetching import Fetching
from engine.hub.pairs import find_pair, kind_of
from engine.kv_cache.cache import Cache
from engine.loading.checkpoint import load_drafter, load_target
from engine.models.drafter import Drafter
from engine.models.target import TargetModel
from engine.speculation.auto import Auto
from engine.speculation.costs import CostTable, RoundCosts
from support.checkpoints import VOCAB_SIZE
from tests.engine.conftest import CPU, no_progress
from tests.engine.edited import copied, edit_config
from tests.engine.models.qwen3_5 import SHAPE, save, saved, write_target
from tests.engine.small_decoders import Answer, run_turn, settings

FEW_TOKENS = 12
"""Of a vocabulary so small, some of a random layer's guesses are right."""
DRAFTS = 4
KINDS = ["linear_attention", "full_attention", "linear_attention"]
CONTEXT = 512
Tensors = dict[str, Tensor]


@dataclass(frozen=True)
class Both:
    """A target with its drafter, and the drafter's tensors as they lie in the file."""

    folder: Path
    target: TargetModel
    drafter: Drafter
    tensors: Tensors


def write_both(folder: Path, experts: bool = False, vocab_size: int = VOCAB_SIZE) -> None:
    write_target(
        folder, experts=experts, drafts=True, vocab_size=vocab_size, num_hidden_layers=len(KINDS), layer_types=KINDS
    )
    (folder / "generation_config.json").write_text('{"eos_token_id": [1]}')


@pytest.fixture(scope="module", params=[False, True], ids=["dense", "experts"])
def both(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Both:
    folder = tmp_path_factory.mktemp("mtp")
    write_both(folder, request.param, FEW_TOKENS)
    target = load_target(folder, CPU, no_progress)
    target.config = replace(target.config, stop_token_ids=())
    return Both(folder, target, load_drafter(folder, target, no_progress), saved(folder))


@pytest.fixture(scope="module")
def stored(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("stored")
    write_both(folder)
    return folder


# --- the layer, from the published sources: names, shapes and order of operations


def their_norm(x: Tensor, weight: Tensor) -> Tensor:
    return x * torch.rsqrt(x.square().mean(-1, keepdim=True) + 1e-6) * (1 + weight)


def their_rope(x: Tensor, positions: Tensor) -> Tensor:
    """Of heads [n, heads, 32] the first quarter turns, halves against each other."""
    half = x.shape[-1] // 8
    angles = positions[:, None] * 1e4 ** (-torch.arange(half) / half)
    cos, sin = (wave(angles)[:, None] for wave in (torch.cos, torch.sin))
    a, b, rest = x[..., :half], x[..., half : 2 * half], x[..., 2 * half :]
    return torch.cat((a * cos - b * sin, b * cos + a * sin, rest), dim=-1)


def their_mlp(those: Tensors, x: Tensor, path: str) -> Tensor:
    gate, up, down = (those[f"{path}.{name}_proj.weight"] for name in ("gate", "up", "down"))
    return F.linear(F.silu(F.linear(x, gate)) * F.linear(x, up), down)


def their_experts(those: Tensors, x: Tensor, path: str) -> Tensor:
    chances = F.linear(x, those[f"{path}.gate.weight"]).softmax(-1)
    best = chances.topk(3, dim=-1)
    out = torch.zeros_like(x)
    for row, (shares, ids) in enumerate(zip(best.values, best.indices, strict=True)):
        for share, each in zip(shares / shares.sum(), ids, strict=True):
            gate, up = F.linear(x[row], those[f"{path}.experts.gate_up_proj"][each]).chunk(2)
            out[row] += share * F.linear(F.silu(gate) * up, those[f"{path}.experts.down_proj"][each])
    share = F.linear(x, those[f"{path}.shared_expert_gate.weight"]).sigmoid()
    return out + share * their_mlp(those, x, f"{path}.shared_expert")


def their_hidden(those: Tensors, embedded: Tensor, hidden: Tensor) -> Tensor:
    """What the head reads behind each row: of positions 0, 1, .. n - 1, with tokens 1, 2, .. n."""
    heads, kv_heads, size = SHAPE["num_attention_heads"], SHAPE["num_key_value_heads"], SHAPE["head_dim"]
    pair = (
        their_norm(embedded, those["mtp.pre_fc_norm_embedding.weight"]),
        their_norm(hidden, those["mtp.pre_fc_norm_hidden.weight"]),
    )
    x, n = F.linear(torch.cat(pair, dim=-1), those["mtp.fc.weight"]), len(hidden)
    at = "mtp.layers.0"
    normed, places = their_norm(x, those[f"{at}.input_layernorm.weight"]), torch.arange(n)
    q, k, v = (F.linear(normed, those[f"{at}.self_attn.{name}_proj.weight"]).view(n, -1, size) for name in "qkv")
    q, gate = q.view(n, heads, 2, size).unbind(2)
    q, k = (
        their_rope(their_norm(part, those[f"{at}.self_attn.{name}_norm.weight"]), places)
        for name, part in (("q", q), ("k", k))
    )
    k, v = (part.repeat_interleave(heads // kv_heads, dim=1) for part in (k, v))
    scores = torch.einsum("qhd,khd->hqk", q, k) * size**-0.5
    scores = scores.masked_fill(places[None] > places[:, None], -torch.inf)
    mixed = torch.einsum("hqk,khd->qhd", scores.softmax(-1), v) * gate.sigmoid()
    x = x + F.linear(mixed.reshape(n, -1), those[f"{at}.self_attn.o_proj.weight"])
    normed = their_norm(x, those[f"{at}.post_attention_layernorm.weight"])
    feed_forward = their_experts if f"{at}.mlp.gate.weight" in those else their_mlp
    return their_norm(x + feed_forward(those, normed, f"{at}.mlp"), those["mtp.norm.weight"])


@torch.inference_mode()
def their_drafts(both: Both, text: Sequence[int], count: int) -> tuple[list[int], list[float]]:
    """Behind a text whose last token no cache holds."""
    those, ids = both.tensors, torch.tensor(text)
    cache = Cache(both.target.config.layers, CONTEXT, 64, torch.float32, CPU)
    hidden = both.target(ids[:-1], 0, cache).hidden
    table, head = those["model.language_model.embed_tokens.weight"], those["lm_head.weight"]
    drafted: list[int] = []
    chances: list[float] = []
    made = hidden[:0]
    for _ in range(count):
        found = their_hidden(those, table[torch.tensor([*text[1:], *drafted])], torch.cat((hidden, made)))
        made = found[len(text) - 2 :]
        best = F.linear(found[-1], head).softmax(-1).max(-1)
        drafted.append(int(best.indices))
        chances.append(float(best.values))
    return drafted, chances


def small_prompt(length: int, seed: int) -> list[int]:
    generator = torch.Generator().manual_seed(seed)
    found: list[int] = torch.randint(2, FEW_TOKENS, (length,), generator=generator).tolist()
    return found


def our_answer(both: Both, prompt: Sequence[int], tokens: int, **more: Any) -> Answer:
    wanted = settings(**{"block_size": DRAFTS + 1, "max_new_tokens": tokens} | more)
    return run_turn(Decoder(both.target, both.drafter, CONTEXT), prompt, wanted)


def assert_drafts_are_theirs(both: Both, prompt: Sequence[int], answer: Answer) -> None:
    text = list(prompt)
    for done in answer.rounds:
        if done.draft_ids:
            ids, chances = their_drafts(both, text, len(done.draft_ids))
            assert done.draft_ids == tuple(ids)
            assert done.draft_probabilities == pytest.approx(chances, abs=1e-4)
        text += done.emitted


DENSE, EXPERTS = False, True


@pytest.mark.parametrize(
    ("both", "length", "tokens"),
    [(DENSE, 1, 14), (DENSE, 2, 14), (DENSE, 270, 5), (EXPERTS, 2, 10), (EXPERTS, 40, 5)],
    indirect=["both"],
)
def test_every_draft_is_that_of_the_published_layer(both: Both, length: int, tokens: int) -> None:
    """Behind prompts of one token, of one pass and of two, through refused and accepted drafts."""
    prompt = small_prompt(length, length)
    assert_drafts_are_theirs(both, prompt, our_answer(both, prompt, tokens))


def test_turns_go_on_back_and_without_speculation(both: Both, monkeypatch: pytest.MonkeyPatch) -> None:
    """Wherever its keys and values were taken back to, a draft is that of a decoder which starts from nothing; few rows
    are kept to go back to, so that older ones are a snapshot's."""
    monkeypatch.setattr(decoder_module, "PREFILL_CHUNK", 16)
    decoder = Decoder(both.target, both.drafter, CONTEXT)
    text, reused = small_prompt(30, 7), 0
    steps = [(True, 9, 0), (False, 9, 1), (True, 9, 2), (True, 9, 40), (True, 1, 4), (True, 9, 0)]
    for step, (speculation, tokens, back) in enumerate(steps):
        wanted = settings(block_size=4, max_new_tokens=tokens, speculation=speculation)
        stable = len(text) - 3 if tokens > 1 else 0  # else the next turn goes back into the prompt's last rows
        answer = run_turn(decoder, text, wanted, stable)
        fresh = run_turn(Decoder(both.target, both.drafter, CONTEXT), text, wanted)
        assert answer.ids == fresh.ids, step
        for done, other in zip(answer.rounds, fresh.rounds, strict=True):
            assert done.draft_ids == other.draft_ids, step
            assert done.draft_probabilities == pytest.approx(other.draft_probabilities, abs=1e-4), step
        reused += answer.num_reused
        text = [*text, *answer.ids]
        text = text[: len(text) - back] + small_prompt(3, step)
    assert reused > 60


@pytest.mark.parametrize("both", [DENSE], indirect=True)
def test_an_automatic_depth_rests_and_goes_on(both: Both) -> None:
    """Rounds that draft nothing still tell the layer what was said."""
    costs = RoundCosts(0.1, tuple(2.0 + 0.05 * row for row in range(16)), 0.01, step=0.8, one_by_one=True)
    decoder, prompt = Decoder(both.target, both.drafter, CONTEXT), small_prompt(30, 5)
    decoder.use_policy(Auto(CostTable((0,), (costs,))))
    answer = run_turn(decoder, prompt, settings(max_new_tokens=40, draft_by="drafter"))
    assert answer.ids == run_turn(Decoder(both.target, None, CONTEXT), prompt, settings(max_new_tokens=40)).ids
    drafted = [len(done.draft_ids) for done in answer.rounds[1:]]
    assert 0 in drafted and any(drafted[drafted.index(0) :])
    assert_drafts_are_theirs(both, prompt, answer)


# --- asked for by its kind


def test_it_lies_among_the_targets_own_tensors(stored: Path) -> None:
    folders = find_pair(str(stored), MTP, Fetching(offline=True))
    assert (folders.target, folders.drafter, folders.drafter_name) == (stored, stored, MTP)
    assert kind_of(MTP) == MTP
    with engine.load(str(stored), drafter=MTP, device="cpu", time_rounds=False) as pair:
        assert pair.ready.drafter == MTP and pair.ready.recurs
        events = list(pair.generate("def sort(items):", block_size=3, max_new_tokens=6))
    sources = {token.source for event in events if isinstance(event, Step) for token in event.draft}
    assert sources == {"mtp"}


# --- refused


def test_where_there_is_none(stored: Path, tmp_path: Path) -> None:
    """The config says of none, or the files lack what it says of; a target of another shape has another."""
    target = load_target(stored, CPU, no_progress)
    edit_config(copied(stored, tmp_path), "text_config", mtp_num_hidden_layers=0)
    with pytest.raises(WeightsFailure, match=r"No MTP assistant is known.*Qwen/Qwen3\.5-9B"):
        find_pair(str(tmp_path), MTP, Fetching(offline=True))
    edit_config(copied(stored, tmp_path), "text_config", mtp_num_hidden_layers=1)
    save(tmp_path, {name: part for name, part in saved(stored).items() if not name.startswith("mtp.")})
    with pytest.raises(WeightsFailure, match="whoever packed this checkpoint left it out"):
        load_drafter(tmp_path, target, no_progress)
    edit_config(copied(stored, tmp_path), "text_config", vocab_size=VOCAB_SIZE + 8)
    with pytest.raises(WeightsFailure, match="belongs to a target of 3 layers of width 64 and 520 tokens"):
        load_drafter(tmp_path, target, no_progress)
