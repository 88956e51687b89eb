"""Passes of Llama, Qwen3, Qwen3-MoE and gpt-oss as kernels against their modules, in Triton's interpreter."""

from __future__ import annotations

from collections.abc import Sequence
from copy import deepcopy
from pathlib import Path

import pytest
import torch
from torch import Tensor

from engine.decoding.decoder import Decoder
from engine.decoding.device_rounds import DeviceRounds
from engine.decoding.round_launches import RoundLaunches
from engine.kernels.decode.tiles import TargetTiles, Tiles
from engine.kernels.round.tree_rows import TreeRows
from engine.kernels.toolchain.jit import INTERPRETED
from engine.kv_cache.cache import Cache
from engine.loading.checkpoint import load_drafter, load_target
from engine.models.pre_norm.decode_pass import DecodePass
from engine.models.pre_norm.modules import PreNormTarget
from engine.models.pre_norm.prefill_pass import PrefillPass
from engine.speculation.trees import Node, path_to
from tests.engine.checkpoints import FULL, drafter_config, write_drafter
from tests.engine.conftest import no_progress
from tests.engine.decoding.test_device_rounds import DRAFT_TILES, mostly_right
from tests.engine.models import gpt_oss
from tests.engine.models.pre_norm import LLAMA3, PLAIN, write_target
from tests.engine.small_decoders import assert_caches_equal_recomputation, prompt_ids, run_turn, settings

pytestmark = pytest.mark.skipif(not INTERPRETED, reason="needs Triton's interpreter (TRITON_INTERPRET=1)")

CPU = torch.device("cpu")
PROMPT = 19
TILES = TargetTiles(
    qkv=Tiles(64, 64),
    output=Tiles(32, 64, splits=2),
    gate_up=Tiles(32, 64),
    router=Tiles(16, 32, splits=2),
    down=Tiles(32, 32, splits=3),
    expert_gate_up=Tiles(32, 64),
    expert_gate_up_alone=Tiles(32, 64, warps=2),
    expert_down=Tiles(64, 32),
    head=Tiles(128, 64),
)
KINDS = {
    "llama": {"rope": LLAMA3, "num_attention_heads": 3, "num_key_value_heads": 1, "hidden_size": 96},
    "qwen3": {"rope": PLAIN, "tie_word_embeddings": True},
    "qwen3_moe": {"rope": PLAIN},
    "gpt_oss": {"num_local_experts": 16},
}
"""Of Llama three queries share a key, as in SmolLM2. The prompt is longer than gpt-oss's window."""
TAPS = (0, 1)


@pytest.fixture(scope="module", params=KINDS)
def target(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> PreNormTarget:
    folder: Path = tmp_path_factory.mktemp(request.param)
    if request.param == "gpt_oss":
        gpt_oss.write_target(folder, 7, num_hidden_layers=2, **KINDS[request.param])
    else:
        write_target(folder, request.param, 7, num_hidden_layers=2, **KINDS[request.param])
    found = load_target(folder, CPU, no_progress)
    assert isinstance(found, PreNormTarget)
    return found


class Pass:
    """A target's rows over a cache that holds a prompt, and what its modules make of the same."""

    def __init__(self, target: PreNormTarget):
        self.target, self.length = target, 0
        self.caches = [Cache(target.config.layers, 64, PROMPT, target.dtype, CPU) for _ in range(2)]
        self.cursor, self.count = (torch.zeros(1, dtype=torch.int32) for _ in range(2))
        self.rows = DecodePass(target, self.caches[0], self.cursor, self.count, TAPS, TILES)
        for cache in self.caches:
            target(torch.tensor(prompt_ids(PROMPT)), 0, cache)
        self.commit(PROMPT)

    def commit(self, count: int) -> None:
        self.length += count
        self.cursor.fill_(self.length)

    def by_modules(self, ids: Sequence[int]) -> tuple[Tensor, Tensor]:
        """Logits and features."""
        out = self.target(torch.tensor(ids), self.length, self.caches[1], TAPS)
        assert out.features is not None
        return self.target.logits(out.hidden), out.features

    def by_rows(self, ids: Sequence[int], max_rows: int = 16, tree: TreeRows | None = None) -> tuple[Tensor, Tensor]:
        """The same; rows that don't count hold another pass's tokens."""
        self.rows.ids[: len(ids)] = torch.tensor(ids)
        self.count.fill_(len(ids))
        self.rows.forward(max_rows, tree=tree)
        assert self.rows.out.logits is not None
        return self.rows.out.logits[: len(ids)].clone(), self.rows.features[: len(ids)].clone()


@torch.inference_mode()
def test_rows_equal_the_modules(target: PreNormTarget) -> None:
    both = Pass(target)
    for number, width in enumerate((3, 1, 16)):
        ids = prompt_ids(width, seed=number + 1)
        expected, actual = both.by_modules(ids), both.by_rows(ids, max_rows=1 if width == 1 else 16)
        torch.testing.assert_close(actual, expected, atol=1e-4, rtol=1e-5)
        assert torch.equal(both.rows.out.token[:width], expected[0].argmax(-1))
        both.commit(width)
    for ours, theirs in zip(*(cache.attention for cache in both.caches), strict=True):
        torch.testing.assert_close((ours.k, ours.v), (theirs.k, theirs.v), atol=1e-4, rtol=0)


@torch.inference_mode()
@pytest.mark.usefixtures("ordered_sums")
def test_rows_have_the_same_bits_alone_among_five_and_among_sixteen(target: PreNormTarget) -> None:
    target = deepcopy(target).to(torch.bfloat16)
    ids = prompt_ids(16, seed=1)
    whole, part, steps = Pass(target), Pass(target), Pass(target)
    logits, features = whole.by_rows(ids)
    for found, kept in zip(part.by_rows(ids[:5]), (logits, features), strict=True):
        assert torch.equal(found, kept[:5])
    for row, token in enumerate(ids[:3]):
        step_logits, step_features = steps.by_rows([token], max_rows=1)
        assert torch.equal(step_logits[0], logits[row]) and torch.equal(step_features[0], features[row])
        steps.commit(1)
    for one, other in zip(whole.caches[0].attention, steps.caches[0].attention, strict=True):
        seen = one.first_visible(PROMPT + 3), PROMPT + 3
        assert all(torch.equal(*parts) for parts in zip(one.read(*seen), other.read(*seen), strict=True))


@torch.inference_mode()
@pytest.mark.parametrize(("pieces", "taps"), [((3, 30, 7), (0,)), ((4, 1), (1, 0)), ((2,), ())])
def test_pieces_of_prompts_equal_the_modules(
    target: PreNormTarget, pieces: tuple[int, ...], taps: tuple[int, ...]
) -> None:
    ids = torch.tensor(prompt_ids(sum(pieces)))
    ours, theirs = (Cache(target.config.layers, 64, 16, torch.float32, CPU) for _ in range(2))
    run = PrefillPass(target, ours)
    for piece in ids.split(pieces):
        start = ours.length
        found, wanted = run(piece, start, ours, taps), target(piece, start, theirs, taps)
        torch.testing.assert_close(found.hidden[0], wanted.hidden[-1], atol=1e-4, rtol=1e-5)
        torch.testing.assert_close(found.features, wanted.features, atol=1e-4, rtol=1e-5) if taps else None
        for cache in (ours, theirs):
            cache.commit(start + len(piece))
    for one, other in zip(ours.attention, theirs.attention, strict=True):
        torch.testing.assert_close((one.k, one.v), (other.k, other.v), atol=1e-4, rtol=0)


@torch.inference_mode()
def test_who_taps_the_last_layer_of_a_prompt_changes_no_bit(target: PreNormTarget) -> None:
    """Or an answer's first token would depend on whether a drafter listens."""
    ids = torch.tensor(prompt_ids(30))
    caches = [Cache(target.config.layers, 64, 16, torch.float32, CPU) for _ in range(2)]
    alone, tapped = (
        PrefillPass(target, cache)(ids, 0, cache, taps) for cache, taps in zip(caches, ((), (1,)), strict=True)
    )
    assert torch.equal(alone.hidden, tapped.hidden)


@torch.inference_mode()
@pytest.mark.usefixtures("ordered_sums")
def test_rows_of_a_tree_have_the_bits_of_their_paths(target: PreNormTarget) -> None:
    target = deepcopy(target).to(torch.bfloat16)
    ids, posed = prompt_ids(4, seed=1), TreeRows.allocate(CPU)
    tree = [Node(0, 1, 0, 0.5), Node(0, 1, 1, 0.3), Node(2, 2, 0, 0.2)]
    posed.pose(tree)
    whole, chain = Pass(target), Pass(target)
    logits, features = whole.by_rows(ids, 4, posed)
    for leaf in (1, 3):
        path = path_to(tree, leaf)
        expected = chain.by_rows([ids[row] for row in path], max_rows=len(path))
        assert torch.equal(logits[path], expected[0]) and torch.equal(features[path], expected[1])


@torch.inference_mode()
def test_routing_can_be_forced(target: PreNormTarget) -> None:
    """For measuring: rows, pieces of prompts and modules then choose the same experts."""
    if not target.routers:
        return
    forced = deepcopy(target)
    for number, router in enumerate(forced.routers):
        router.forced = torch.randn(16, 16, generator=torch.Generator().manual_seed(number))
    both, ids = Pass(forced), prompt_ids(3, seed=1)
    expected = both.by_modules(ids)[0]
    torch.testing.assert_close(both.by_rows(ids)[0], expected, atol=1e-4, rtol=1e-5)
    assert not torch.allclose(expected, Pass(target).by_modules(ids)[0], atol=1e-2)


def test_rounds_of_the_device_say_what_rounds_of_the_host_say(target: PreNormTarget, tmp_path: Path) -> None:
    """Drafts half right: with them and without, the same text, and features that the drafter has read."""
    hidden = target.config.hidden_size
    config = drafter_config([FULL], list(TAPS), 2, final_logit_softcapping=None, hidden_size=hidden)
    write_drafter(tmp_path, config, seed=2)
    drafter, prompt = load_drafter(tmp_path, target, no_progress), prompt_ids(12)
    plain = run_turn(Decoder(target, None, 64), prompt, settings(max_new_tokens=12))
    decoder = Decoder(target, drafter, 64)
    launches = RoundLaunches(decoder, tiles=TILES, draft_tiles=DRAFT_TILES)
    decoder.use_rounds(DeviceRounds(launches))
    rows, state = launches.drafter, launches.state
    assert rows is not None
    proposal, tokens = mostly_right([*prompt, *plain.ids]), rows.out.token

    def draft(count: int) -> None:
        if state.draft_width > 0:
            tokens[:15] = torch.tensor(proposal(int(state.cursor), int(state.anchor), 15))

    rows.draft = draft  # type: ignore[method-assign]
    answer = run_turn(decoder, prompt, settings(max_new_tokens=12, block_size=8))
    assert answer.ids == plain.ids and len(answer.rounds) < 9
    assert_caches_equal_recomputation(decoder)
    assert run_turn(decoder, prompt, settings(max_new_tokens=12, speculation=False)).ids == plain.ids
