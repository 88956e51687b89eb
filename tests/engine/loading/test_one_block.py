"""Small weights of models on a CPU move into one block of memory, and stay what they are."""

from __future__ import annotations

import torch

from engine.kv_cache.cache import Cache
from engine.loading.checkpoint import load_target
from engine.loading.one_block import PAGE, lay_together
from engine.models.layers import SharedInputModule
from engine.models.target import TargetModel
from tests.engine.conftest import CPU, TinyPair


def _logits(target: TargetModel) -> torch.Tensor:
    with torch.inference_mode():
        cache = Cache(target.config.layers, 32, 16, target.dtype, CPU)
        return target.logits(target(torch.arange(9), 0, cache).hidden)


def test_small_weights_share_a_block_with_all_their_views(dense_pair: TinyPair) -> None:
    target = load_target(dense_pair.folder / "target", CPU, lambda *_: None)
    target.register_parameter("large", torch.nn.Parameter(torch.zeros(PAGE), requires_grad=False))
    before = _logits(target)
    lay_together(target)
    assert torch.equal(_logits(target), before)
    blocks = {part.untyped_storage().data_ptr(): part.untyped_storage().nbytes() for part in target.parameters()}
    assert len(blocks) == 2  # the other is the large one's
    merged = [
        module for module in target.modules() if isinstance(module, SharedInputModule) and module.together is not None
    ]
    assert merged
    for reader in merged:
        assert reader.together is not None and reader.together.values.untyped_storage().data_ptr() in blocks
