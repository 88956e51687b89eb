"""An embedding that lies apart from the layers gives what it gave beside them, in Triton's interpreter."""

from __future__ import annotations

from pathlib import Path

import pytest
import torch

from engine.kernels.prefill.gather import gather
from engine.kernels.toolchain.jit import INTERPRETED
from engine.kv_cache.cache import Cache
from engine.loading.checkpoint import load_target
from engine.models.host_embedding import HostEmbedding, hold_embedding_on_host
from support.checkpoints import VOCAB_SIZE
from tests.engine.conftest import CPU, TinyPair, no_progress
from tests.engine.models.pre_norm import write_target

pytestmark = pytest.mark.skipif(not INTERPRETED, reason="needs Triton's interpreter (TRITON_INTERPRET=1)")


@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16])
def test_rows_are_the_table_s(dtype: torch.dtype) -> None:
    table, ids = torch.randn(50, 40).to(dtype), torch.tensor([49, 0, 7, 7, 31])
    assert torch.equal(gather(table, ids), table[ids])


@torch.inference_mode()
def test_a_target_answers_the_same(tmp_path: Path) -> None:
    write_target(tmp_path, "qwen3")
    target = load_target(tmp_path, CPU, no_progress)
    ids = torch.randint(0, VOCAB_SIZE, (30,), generator=torch.Generator().manual_seed(5))

    def hidden() -> torch.Tensor:
        return target(ids, 0, Cache(target.config.layers, 64, 16, torch.float32, CPU)).hidden

    before = hidden()
    hold_embedding_on_host(target)
    assert isinstance(target.embed_tokens, HostEmbedding)
    assert torch.equal(hidden(), before)
    target.embed_tokens.to("meta")
    assert target.device == CPU


def test_a_head_that_is_the_embedding_stays(dense_pair: TinyPair) -> None:
    with pytest.raises(AssertionError, match="reads all of the embedding"):
        hold_embedding_on_host(dense_pair.target)
