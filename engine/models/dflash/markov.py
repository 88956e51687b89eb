"""DSpark's head: it corrects the logits of each position by the token drafted before it, and says how likely each token
is to be kept."""

from __future__ import annotations

from typing import ClassVar

from torch import Tensor, nn

from ...kernels.decode.products.head import HeadOutput
from ...kernels.decode.tiling.tiles import Tiles
from ...kernels.round.choices import Candidates, DraftChoices, pick_candidates
from ...kernels.round.lattice import Edges, Tables, befores, choose_edges, reference_edges
from ...kernels.round.markov import MarkovWeights, gates, markov, reference_markov
from ...kernels.toolchain.jit import MAX_ROWS
from ..drafter import Draft
from ..layers import linear
from .config import MarkovConfig

STAY_FLOATS = ("markov_w1.weight", "markov_w2.weight", "markov_head.gate_proj.weight", "confidence_head.proj.weight")
"""Endings of the names of its matrices: of the first single rows are looked up, the others are small."""


class MarkovHead(nn.Module):
    """What one token says of the next: ``markov_w2 @ markov_w1[token]``, perhaps gated by the block's row."""

    def __init__(self, hidden: int, vocabulary: int, drafted: int, config: MarkovConfig):
        super().__init__()
        self.markov_w1 = linear(config.rank, vocabulary)
        self.markov_w2 = linear(config.rank, drafted)
        self.gate_proj = linear(hidden + config.rank, config.rank, True) if config.gated else None


class ConfidenceHead(nn.Module):
    """The logit of how likely a token is to be kept."""

    def __init__(self, inputs: int):
        super().__init__()
        self.proj = linear(inputs, 1, True)


class MarkovPicker:
    """Picks each position's likeliest token behind the one drafted before it."""

    reads_logits: ClassVar[bool] = True
    others_count: ClassVar[bool] = True

    def __init__(self, head: MarkovHead, confidence: ConfidenceHead | None, most: int):
        """``most``: how many tokens a draft has, at most."""
        self._head, self._confidence, self._most = head, confidence, min(most, MAX_ROWS - 1)

    def weights(self) -> MarkovWeights:
        """What corrects logits."""
        head, sure = self._head, None if self._confidence is None else self._confidence.proj
        gate = head.gate_proj
        return MarkovWeights(
            before=head.markov_w1.weight,
            after=head.markov_w2.weight,
            gate=None if gate is None else (gate.weight, gate.bias),
            confidence=None if sure is None else (sure.weight, sure.bias),
        )

    def pick(self, logits: Tensor, rows: Tensor, anchor: int, ids: Tensor | None) -> Draft:
        return Draft(*reference_markov(logits, rows, self.weights(), anchor, ids))

    def _tables(self, candidates: Candidates, rows: Tensor, anchor: int | Tensor, ids: Tensor | None) -> Tables:
        weights = self.weights()
        tokens = candidates.tokens if ids is None else ids[candidates.tokens]
        return Tables(weights.before, weights.after, gates(weights, rows, befores(tokens, anchor)))

    def edges(self, candidates: Candidates, rows: Tensor, anchor: int, ids: Tensor | None) -> Edges:
        """Only the likeliest tokens before correction are candidates; all others have together what they had."""
        return reference_edges(candidates, self._tables(candidates, rows, anchor, ids), anchor, ids, bounded=False)

    def launch(self, out: HeadOutput, rows: Tensor, block: Tensor, choices: DraftChoices | None, tiles: Tiles) -> None:
        if choices is None:
            markov(out, rows, self.weights(), block, self._most, tiles)
            return
        candidates = Candidates.allocate(self._most, rows.device, rest=True)
        pick_candidates(out, candidates, tiles)
        tables = self._tables(candidates, rows[: self._most], block[0], out.ids)
        choose_edges(candidates, tables, block, choices, out.ids, bounded=False)


def markov_parts(
    hidden: int, vocabulary: int, drafted: int, config: MarkovConfig
) -> tuple[MarkovHead, ConfidenceHead | None]:
    """The head, and what says how sure the drafter is, where it has that."""
    head = MarkovHead(hidden, vocabulary, drafted, config)
    inputs = hidden + (config.rank if config.confidence == "of rows and guesses" else 0)
    return head, None if config.confidence == "none" else ConfidenceHead(inputs)
