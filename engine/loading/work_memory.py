"""What a pair's passes take of a GPU's memory beside weights and caches, from its configs."""

from __future__ import annotations

from dataclasses import replace

from ..kernels.decode.attention.attend_rows import AttendScratch
from ..kernels.decode.recurrent.delta import Lineage
from ..kernels.toolchain.jit import MAX_ROWS, cdiv
from ..layer_config import DeltaConfig
from ..models.family import DrafterConfig
from ..models.packed import META
from ..models.target import TargetModel

LONG = 1 << 18
"""A context, in tokens, with which attention has as many splits as it ever has."""
DRAFTING_GRAPHS = 3
"""That draft a block: as a chain, for a tree, and for one beside what was looked up."""
PIECE = 20 << 20
"""Bytes in which PyTorch takes memory for a graph's tensors of 1 to 10 MB."""


def work_bytes(target: TargetModel, drafter: DrafterConfig | None, itemsize: int, chunk: int) -> int:
    """Bytes that a piece of a prompt takes at a time, most of them while the experts run (``prefill_pass.py``), and
    those of a round's logits, with what sampling sixteen rows needs, the states of a tree's branches, and what the
    drafter's graphs need."""
    config = target.config
    widest = max((layer.num_heads * layer.head_dim for layer in config.attention), default=0)
    taps = 0 if drafter is None else len(drafter.target_layer_ids)
    row = (5 + taps) * config.hidden_size + 2 * widest
    if config.moe is None:
        row += 3 * config.intermediate_size
    else:
        row += config.moe.top_k * (2 * config.hidden_size + config.moe.intermediate_size)
    borrowed = 0 if drafter is None or not drafter.borrows else _borrowed(drafter, itemsize)
    between = 0 if drafter is None else DRAFTING_GRAPHS * cdiv(drafter.bytes_between(itemsize), PIECE) * PIECE
    logits = (target.widest_pass + MAX_ROWS) * config.vocab_size * 4
    recurring = [layer for layer in config.layers if isinstance(layer, DeltaConfig)]
    trees = Lineage.allocate(recurring[0], META).forked.nbytes if recurring and config.moe is None else 0
    return chunk * row * itemsize + logits + borrowed + trees + between


def _borrowed(drafter: DrafterConfig, itemsize: int) -> int:
    """Bytes of the windows that a drafter lays in order, and of what attention's programs leave for one another over a
    long context."""
    layers = set(drafter.layers)
    windows = sum(2 * (each.window - 1) * each.num_kv_heads * each.head_dim for each in layers if each.window)
    whole = [replace(each, window=None) for each in layers]
    return windows * itemsize + AttendScratch(whole, [LONG] * len(whole), META).nbytes
