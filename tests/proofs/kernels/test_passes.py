"""What every family's target computes by kernels, against its modules, in Triton's interpreter: passes of at most 16
rows, in chains and trees, and the pieces of a prompt. A row has the same bits alone, among five and among sixteen."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from copy import deepcopy
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import pytest
import torch
from torch import Tensor

from engine.kernels.decode.tiling.tiles import TargetTiles, Tiles
from engine.kernels.round.tree_rows import TreeRows
from engine.kernels.toolchain.jit import INTERPRETED
from engine.kv_cache.cache import Cache
from engine.kv_cache.delta_state import DeltaState
from engine.kv_cache.layer_cache import LayerCache
from engine.kv_cache.layer_state import LayerState
from engine.loading.checkpoint import load_target
from engine.models.attention_backends import TRITON
from engine.models.family import AFTER_NORM, EMBEDDED
from engine.models.target import TargetModel
from engine.speculation.trees import Node, path_to
from support.published import PUBLISHED, Published, write_published
from tests.engine.conftest import CPU, no_progress
from tests.engine.models import gpt_oss, pre_norm, qwen3_5
from tests.engine.small_decoders import prompt_ids

pytestmark = [
    pytest.mark.skipif(not INTERPRETED, reason="needs Triton's interpreter (TRITON_INTERPRET=1)"),
    pytest.mark.usefixtures("only_live_rows"),
]

PROMPT = 27
"""Longer than every window: rings are full, and rows wrap around their ends."""
SLACK = 16
TAPS = (0, 1)
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
"""Few programs: each costs the interpreter milliseconds."""


@dataclass(frozen=True)
class Kind:
    """A tiny checkpoint, and the first of the two layers of it that are run: one of each sort that it has."""

    write: Callable[[Path], Any]
    first: int = 0
    window: int | None = None
    exact: torch.dtype = torch.bfloat16
    """In which a row's bits are looked at. States that recur are fp32 anyway."""


def published(name: str, heads: Published) -> Kind:
    return Kind(lambda folder: write_published(folder, name, 3, heads), 1, 24)


def plain(family: str, heads: int = 2, **changes: Any) -> Kind:
    few = {"num_hidden_layers": 2, "num_attention_heads": heads, "num_key_value_heads": 1}
    return Kind(lambda folder: pre_norm.write_target(folder, family, 7, **few, **changes))


def recurrent(fused: bool) -> Kind:
    few = {"linear_num_key_heads": 1, "linear_num_value_heads": 3, "num_attention_heads": 3, "num_key_value_heads": 1}
    shape = {"num_hidden_layers": 2, "layer_types": [qwen3_5.RECURS, qwen3_5.ATTENDS], **few}
    return Kind(lambda folder: qwen3_5.write_target(folder, 7, fused=fused, **shape), exact=torch.float32)


KINDS = {
    # As published, two and eight queries share a key, or two and sixteen; of the former with half the heads. (Of 31B as
    # of 26B-A4B, and its MLP is as 12B's.)
    "Gemma 26B-A4B": published("26B-A4B", Published(8, 4, 1, moe=True)),
    "Gemma 12B": published("12B", PUBLISHED["12B"]),
    # Three queries share a key, as in SmolLM2.
    "Llama": plain("llama", 3, rope=pre_norm.LLAMA3, hidden_size=96),
    "Qwen3": plain("qwen3", tie_word_embeddings=True),
    "Qwen3-MoE": plain("qwen3_moe"),
    "gpt-oss": Kind(
        lambda folder: gpt_oss.write_target(
            folder, 7, num_hidden_layers=2, num_local_experts=16, num_attention_heads=4, num_key_value_heads=1
        ),
        window=gpt_oss.WINDOW,
    ),
    "Qwen3.5": recurrent(False),
    "Qwen3-Next": recurrent(True),
}


@pytest.fixture(scope="module", params=KINDS)
def target(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> TargetModel:
    kind, folder = KINDS[request.param], tmp_path_factory.mktemp("target")
    kind.write(folder)
    found = load_target(folder, CPU, no_progress)
    here = slice(kind.first, kind.first + 2)
    found.layers = found.layers[here]
    found.config = replace(found.config, layers=found.config.layers[here])
    assert len(found.config.layers) == 2
    assert {layer.window for layer in found.config.attention} == {kind.window, None}
    return found


def of(*names: str) -> pytest.MarkDecorator:
    return pytest.mark.parametrize("target", names, indirect=True)


EACH_PREFILL_PASS = of("Gemma 26B-A4B", "Gemma 12B", "Llama", "gpt-oss", "Qwen3.5")
"""Each class of pass, with and without experts."""


@pytest.fixture
def rounded(request: pytest.FixtureRequest, target: TargetModel, ordered_sums: None) -> TargetModel:
    """In bf16, where a sum in another order soon has other bits."""
    return deepcopy(target).to(KINDS[request.node.callspec.params["target"]].exact)


class Pass:
    """A target's rows over a cache that holds a prompt, and what its modules make of the same."""

    def __init__(self, target: TargetModel, length: int = PROMPT):
        self.target, self.length = target, length
        self.caches = [Cache(target.config.layers, 64, SLACK, target.dtype, CPU) for _ in range(2)]
        self.cursor, self.count = torch.full((1,), length, dtype=torch.int32), torch.zeros(1, dtype=torch.int32)
        self.rows: Any = target.decode_pass(self.caches[0], self.cursor, self.count, TAPS, TILES)
        for cache in self.caches:
            target(torch.tensor(prompt_ids(length)), 0, cache)
            cache.commit(length)

    def commit(self, count: int) -> None:
        """Of the rows just run."""
        self.length += count
        self.cursor.fill_(self.length)
        self.caches[0].note_rows_by_kernels(self.length, self.length - count + int(self.count))
        if self.caches[1].written >= self.length:
            self.caches[1].commit(self.length)

    def by_modules(self, ids: Sequence[int]) -> tuple[Tensor, Tensor]:
        """Logits and features."""
        self.caches[1].note_written(self.length + len(ids))
        out = self.target(torch.tensor(ids), self.length, self.caches[1], TAPS)
        assert out.features is not None
        return self.target.logits(out.hidden), out.features

    def by_rows(self, ids: Sequence[int], max_rows: int = 16, tree: TreeRows | None = None) -> tuple[Tensor, Tensor]:
        """The same; rows that don't count hold another pass's tokens."""
        self.rows.ids[: len(ids)] = torch.tensor(ids)
        self.count.fill_(len(ids))
        self.rows.forward(max_rows, tree=tree)
        return self.rows.out.logits[: len(ids)].clone(), self.rows.features[: len(ids)].clone()

    def kept(self, which: int = 0) -> list[Tensor]:
        """What each layer keeps of the text so far, as a query behind it finds it."""
        return [part for layer in self.caches[which].layers for part in seen(layer, self.length)]


def seen(layer: LayerState, position: int) -> Sequence[Tensor]:
    if isinstance(layer, DeltaState):
        return layer.moment(position)
    assert isinstance(layer, LayerCache)
    return layer.read(layer.first_visible(position), position)


def equal(ours: Sequence[Tensor], theirs: Sequence[Tensor]) -> bool:
    return all(torch.equal(*pair) for pair in zip(ours, theirs, strict=True))


@torch.inference_mode()
def test_rows_equal_the_modules(target: TargetModel) -> None:
    both = Pass(target)
    for number, width in enumerate((1, 16)):
        ids = prompt_ids(width, seed=number + 1)
        expected, actual = both.by_modules(ids), both.by_rows(ids, max_rows=1 if width == 1 else 16)
        torch.testing.assert_close(actual, expected, atol=1e-4, rtol=1e-5)
        best = expected[0].softmax(-1).max(-1)
        assert torch.equal(both.rows.out.token[:width], best.indices)
        torch.testing.assert_close(both.rows.out.probability[:width], best.values, atol=1e-5, rtol=1e-4)
        both.commit(width if width < 16 else 11)
    torch.testing.assert_close(both.kept(0), both.kept(1), atol=1e-4, rtol=1e-4)


# Qwen3's rows are those of Llama with the heads' norms of Qwen3-MoE; Qwen3-Next's are Qwen3.5's, stored otherwise.
@of("Gemma 26B-A4B", "Llama", "Qwen3-MoE", "gpt-oss", "Qwen3.5")
@torch.inference_mode()
def test_rows_have_the_same_bits_alone_among_five_and_among_sixteen(rounded: TargetModel) -> None:
    """Logits, features, and what the layers keep: what DFlash computes in one pass, the target alone in two."""
    ids = prompt_ids(16, seed=1)
    whole, part, steps = Pass(rounded), Pass(rounded), Pass(rounded)
    logits, features = whole.by_rows(ids)
    assert equal(part.by_rows(ids[:5]), (logits[:5], features[:5]))
    for row, token in enumerate(ids[:2]):
        assert equal(steps.by_rows([token], max_rows=1), (logits[row : row + 1], features[row : row + 1]))
        steps.commit(1)
    for each in (whole, part):
        each.commit(2)
        assert equal(each.kept(), steps.kept())


@of("Gemma 12B", "Llama", "gpt-oss", "Qwen3.5")
@torch.inference_mode()
def test_rows_of_a_tree_have_the_bits_of_their_paths(rounded: TargetModel) -> None:
    """Logits and features, as a chain of their ancestors has them."""
    ids, posed = prompt_ids(4, seed=1), TreeRows.allocate(CPU)
    tree = [Node(0, 1, 0, 0.5), Node(0, 1, 1, 0.3), Node(2, 2, 0, 0.2)]
    posed.set_tree(tree)
    whole, chain = Pass(rounded), Pass(rounded)
    logits, features = whole.by_rows(ids, 4, posed)
    for leaf in (1, 3):
        path = path_to(tree, leaf)
        assert equal(chain.by_rows([ids[row] for row in path], len(path)), (logits[path], features[path]))


def forced(target: TargetModel) -> TargetModel:
    """A copy whose routers are told their scores, of eight rows over and over: near ties flip with rounding."""
    copy = deepcopy(target)
    for number, router in enumerate(copy.routers):
        router.forced = torch.randn(8, 16, generator=torch.Generator().manual_seed(number))
    return copy


@of("Gemma 26B-A4B", "Qwen3-MoE")
@torch.inference_mode()
def test_routing_can_be_forced(target: TargetModel, kernels_read: None) -> None:
    """For measuring: rows, pieces of prompts and modules then choose the same experts."""
    told, ids = forced(target), prompt_ids(3, seed=1)
    both = Pass(told)
    expected = both.by_modules(ids)[0]
    torch.testing.assert_close(both.by_rows(ids)[0], expected, atol=1e-4, rtol=1e-5)
    assert not torch.allclose(expected, Pass(target).by_modules(ids)[0], atol=1e-2)
    for taps in ((), TAPS):  # the last layer runs one row, or all
        by_modules, by_kernels = (read(told, (20,), fused, taps)[0][0][0] for fused in (False, True))
        torch.testing.assert_close(by_kernels, by_modules, atol=1e-4, rtol=1e-5)


@of("Gemma 26B-A4B")
@torch.inference_mode()
def test_bf16_is_no_worse_than_the_modules(target: TargetModel, kernels_read: None) -> None:
    """Both round their activations to bf16; the modules more often."""
    rounded = forced(target).to(torch.bfloat16)
    exact, ids = deepcopy(rounded).float(), prompt_ids(4, seed=1)
    both = Pass(rounded)
    rows = Pass(exact).by_modules(ids)[0], both.by_modules(ids)[0], both.by_rows(ids)[0]
    ways = (exact, False), (rounded, False), (rounded, True)
    prompts = tuple(read(each, (40,), fused, TAPS)[0][0][1] for each, fused in ways)
    for expected, *found in (rows, prompts):
        by_modules, by_kernels = ((each.float() - expected).norm() for each in found)
        assert 0 < by_kernels <= 1.05 * by_modules


# --- prompts


@pytest.fixture
def kernels_read(target: TargetModel, monkeypatch: pytest.MonkeyPatch) -> None:
    """The target's own prefill pass is that of kernels."""
    monkeypatch.setattr(target, "attention_backend", TRITON.name)


def read(
    target: TargetModel, pieces: Sequence[int], fused: bool, taps: Sequence[int]
) -> tuple[list[tuple[Tensor, Tensor]], Cache]:
    """The last hidden row and the features of each piece of a prompt, and the cache behind them."""
    cache, outputs = Cache(target.config.layers, 128, SLACK, target.dtype, CPU), []
    run = target.prefill_pass(cache) if fused else target
    assert fused == (run is not target)
    for piece in torch.tensor(prompt_ids(sum(pieces))).split(list(pieces)):
        out = run(piece, cache.length, cache, taps)
        assert not fused or len(out.hidden) == 1
        assert (out.features is None) == (not taps)
        outputs.append((out.hidden[-1], torch.zeros(0) if out.features is None else out.features))
        cache.commit(cache.length + len(piece))
    return outputs, cache


def assert_pieces_equal(target: TargetModel, pieces: tuple[int, ...], taps: tuple[int, ...]) -> None:
    (expected, theirs), (actual, ours) = (read(target, pieces, fused, taps) for fused in (False, True))
    for one, other in zip(actual, expected, strict=True):
        torch.testing.assert_close(one, other, atol=1e-4, rtol=1e-4)
    for kept, wanted in zip(ours.layers, theirs.layers, strict=True):
        found = seen(kept, ours.length), seen(wanted, ours.length)
        torch.testing.assert_close(*map(list, found), atol=1e-4, rtol=1e-4)


@of("Gemma 26B-A4B", "Gemma 12B", "Llama", "Qwen3-MoE", "gpt-oss", "Qwen3.5")
@torch.inference_mode()
def test_pieces_of_prompts_equal_the_modules(target: TargetModel, kernels_read: None) -> None:
    """Rows that fit a ring, more than it holds, and some around its end."""
    assert_pieces_equal(target, (3, 30, 17), (0,))


@EACH_PREFILL_PASS
@torch.inference_mode()
def test_every_layer_of_a_prompt_may_be_tapped_or_none(target: TargetModel, kernels_read: None) -> None:
    assert_pieces_equal(target, (4, 1), (1, 0))
    assert_pieces_equal(target, (2,), ())


@of("Qwen3.5")
@torch.inference_mode()
def test_each_row_of_a_prompt_is_told_to_its_own_mtp(target: TargetModel, kernels_read: None) -> None:
    assert_pieces_equal(target, (3, 17), (AFTER_NORM, EMBEDDED))


@EACH_PREFILL_PASS
@torch.inference_mode()
def test_who_taps_the_last_layer_of_a_prompt_changes_no_bit(target: TargetModel, kernels_read: None) -> None:
    """Or an answer's first token would depend on whether a drafter listens."""
    nobody, drafter = (read(target, (20,), True, taps)[0][0][0] for taps in ((), (1,)))
    assert torch.equal(nobody, drafter)
