"""``python -m tests.proofs.kernels.offline_target [SHAPE[:FORMAT] ...]``: compiles every kernel of a target's pass for
Hopper at the published shapes, and prints what each takes. FORMAT: of the weights, bf16 unless said."""

from __future__ import annotations

import sys
from dataclasses import replace
from typing import cast

import torch

from engine.commands import WeightFormat
from engine.kernels.decode.products.head import HeadOutput, head_rows
from engine.kernels.decode.tiling.tiles import Tiles, draft_tiles
from engine.kernels.round.tree_rows import TreeRows
from engine.kernels.toolchain.card import HOPPER, Card
from engine.kernels.toolchain.jit import MAX_ROWS
from engine.kernels.weights.int8 import Int8Weight
from engine.kv_cache.cache import Cache
from engine.models.attention_backends import TRITON
from engine.models.family import TargetConfig
from engine.models.gemma4.modules import Gemma4
from engine.models.gemma4.wide_pass import Gemma4WidePass
from engine.models.packed import shape_of
from engine.speculation.trees import WIDE_ROWS
from support.shapes import read_shape
from tests.proofs.kernels.offline import Launch, compile_launch, distinct, record, table

META = torch.device("meta")
CONTEXT = 32768
PROMPTS = (32, 4096)
"""Rows. Which tiles a product has depends on them."""


def launches_of(name: str, card: Card = HOPPER, weights: WeightFormat = "bf16") -> list[Launch]:
    """What passes of this target launch on a card: of 16 rows, of one row, of a prompt, of a tree where it is dense,
    of 32 and 64 rows where it is Gemma's mixture of experts; and its head in 8 bits. Once per piece of machine code."""
    config = read_shape(name).target
    # All layers of a kind launch alike: the first ones, up to and with the first full one, are enough.
    full = (getattr(layer, "window", 0) is None for layer in config.layers)
    first_full = max(1, next(index for index, attends_to_all in enumerate(full) if attends_to_all))
    config = replace(config, layers=config.layers[: first_full + 1])
    target = shape_of(config, torch.bfloat16, weights)
    target.attention_backend = TRITON.name
    target.prepare()
    cache = Cache(config.layers, CONTEXT, 64, torch.bfloat16, META)
    cursor, rows = (torch.zeros(1, dtype=torch.int32, device=META) for _ in range(2))
    with record(card) as launches:
        passes = target.decode_pass(cache, cursor, rows, taps=(1,))
        passes.forward()
        passes.forward(max_rows=1)
        if isinstance(target, Gemma4) and config.moe is not None:
            wide = Gemma4WidePass(target, cache, cursor, rows, (1,))
            for rows_of_pass in WIDE_ROWS:
                wide.forward(rows_of_pass)
        if config.moe is None:  # trees of drafts are for targets whose wide passes are cheap
            passes.forward(tree=TreeRows.allocate(META))
        for rows in PROMPTS:
            target.prefill_pass(cache)(torch.zeros(rows, dtype=torch.int64, device=META), 0, cache, (1,))
        _launch_draft_head(config, draft_tiles(True, card).head)
    return distinct(launches)


def _launch_draft_head(config: TargetConfig, tiles: Tiles) -> None:
    vocab, hidden = config.vocab_size, config.hidden_size
    copy = Int8Weight.allocate(vocab, hidden, device=META)
    out = HeadOutput.allocate(vocab, tiles, META, keep_logits=False)
    rows = torch.empty(MAX_ROWS, hidden, dtype=torch.bfloat16, device=META)
    head_rows(rows, copy, config.logit_softcap, out, tiles)


if __name__ == "__main__":
    for wanted in sys.argv[1:] or ["26B-A4B"]:
        name, _, weights = wanted.partition(":")
        compiled = [
            compile_launch(launch) for launch in launches_of(name, weights=cast(WeightFormat, weights or "bf16"))
        ]
        print(f"{wanted}\n{table(compiled)}\n")
