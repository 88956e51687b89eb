"""The step from logits to drafted ids can be another one, on the host and in a draft pass."""

from __future__ import annotations

from copy import deepcopy
from dataclasses import replace
from typing import ClassVar, Literal

import pytest
import torch
from torch import Tensor

from engine.kernels.decode.products.head import HeadOutput
from engine.kernels.decode.tiling.tiles import Tiles
from engine.kernels.round.choices import DraftChoices
from engine.kernels.toolchain.jit import INTERPRETED, MAX_ROWS
from engine.kv_cache.cache import Cache
from engine.models.dflash.draft_pass import DFlashDraftPass
from engine.models.dflash.picker import ArgmaxPicker, Draft, Picker
from engine.models.drafter import DraftBinding, RoundRows
from tests.engine.conftest import CPU, TinyPair
from tests.engine.decoding.pairs import DRAFT_TILES

CONTEXT, BLOCK, ANCHOR = 64, 7, 200


class FollowingPicker:
    """At every position the likeliest token whose id is of another parity than the one before it, as a chain."""

    reads_logits: ClassVar[bool] = True

    def pick(self, logits: Tensor, rows: Tensor, anchor: int, ids: Tensor | None) -> Draft:
        probabilities, ids, before = logits.softmax(dim=-1), [], anchor
        for row in probabilities:
            before = int(row.masked_fill(torch.arange(len(row)) % 2 == before % 2, -1.0).argmax())
            ids.append(before)
        picked = torch.tensor(ids)
        return Draft(picked, probabilities.gather(1, picked[:, None])[:, 0])

    def launch(self, out: HeadOutput, rows: Tensor, block: Tensor, choices: DraftChoices | None, tiles: Tiles) -> None:
        assert out.logits is not None
        draft = self.pick(out.logits, rows, int(block[0]), out.ids)
        out.token.copy_(draft.ids)
        out.probability.copy_(draft.probabilities)


@pytest.mark.skipif(not INTERPRETED, reason="needs Triton's interpreter (TRITON_INTERPRET=1)")
@pytest.mark.parametrize(("picker", "first"), [(ArgmaxPicker(), 0), (ArgmaxPicker(), 1), (FollowingPicker(), 1)])
@torch.inference_mode()
def test_a_draft_is_what_the_picker_makes_of_the_logits(
    picker: Picker, first: Literal[0, 1], dense_pair: TinyPair
) -> None:
    target, drafter = deepcopy(dense_pair.target), deepcopy(dense_pair.drafter)
    drafter.picker, drafter.config = picker, replace(drafter.config, first_slot=first)
    width = len(drafter.config.target_layer_ids) * drafter.config.hidden_size
    features = torch.randn(MAX_ROWS, width, generator=torch.Generator().manual_seed(3))
    caches = [Cache(drafter.config.layers, CONTEXT, MAX_ROWS, torch.float32, CPU) for _ in range(2)]
    drafter.ingest(features[:11], caches[0])
    expected = drafter.draft(target, ANCHOR, BLOCK, caches[0])
    rows = drafter.rows(target, ANCHOR, BLOCK, caches[0])
    assert torch.equal(expected.ids, picker.pick(drafter.logits(target, rows), rows, ANCHOR, None).ids)
    if isinstance(picker, FollowingPicker):
        assert (torch.cat((torch.tensor([ANCHOR]), expected.ids)).diff() % 2 == 1).all()
    where = RoundRows(*(torch.tensor([number], dtype=torch.int32) for number in (11, BLOCK - 1 + first, 0, 11)))
    tokens = torch.zeros(MAX_ROWS, dtype=torch.int64)
    launched = DFlashDraftPass(drafter, target, caches[1], DraftBinding(features, tokens, where, DRAFT_TILES))
    launched.block[0] = ANCHOR
    launched.ingest()
    launched.draft(BLOCK - 1)
    assert torch.equal(tokens[: BLOCK - 1], expected.ids)
    torch.testing.assert_close(launched.out.probability[: BLOCK - 1], expected.probabilities, atol=1e-4, rtol=1e-3)
