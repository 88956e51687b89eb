"""DFlash 2's way from candidates to drafted ids: each position's candidate is chosen by its own score and by how well
it follows the one chosen before, so one launch walks through the positions one by one."""

from __future__ import annotations

from torch import Tensor

from ..toolchain.early_launch import early_kernel, let_next_start, wait_for_inputs
from ..toolchain.jit import tl
from .choices import CANDIDATES, Candidates


def reference_walk(
    scores: Tensor,
    candidates: Tensor,
    states: Tensor,
    predecessors: Tensor,
    successors: Tensor,
    anchor: int,
    target_ids: Tensor | None = None,
) -> tuple[Tensor, Tensor]:
    """The target's ids [n] of what is chosen, and the probability of each among its candidates, fp32 [n]. ``scores``
    fp32 and ``candidates`` int64 [n, 16]; ``states`` [n, rank] of the positions; ``predecessors`` [vocabulary, rank] by
    the target's ids, ``successors`` [drafted vocabulary, rank] by the drafter's, of which ``target_ids`` has the
    target's; None where they are the same."""
    ids, chances, before = [], [], anchor
    for score, each, state in zip(scores, candidates, states.float(), strict=True):
        follows = successors[each].float() @ (predecessors[before].float() * state)
        best = (score + follows).argmax()
        before = int(each[best] if target_ids is None else target_ids[each[best]])
        ids.append(before)
        chances.append((score + follows).softmax(-1)[best])
    return scores.new_tensor(ids).to(candidates.dtype), scores.new_tensor(chances)


def walk(
    candidates: Candidates,
    states: Tensor,
    predecessors: Tensor,
    successors: Tensor,
    block: Tensor,
    token: Tensor,
    probability: Tensor,
    target_ids: Tensor | None = None,
) -> None:
    """``reference_walk`` of all ``candidates``, from the token with which ``block`` begins: fills as many places of
    ``token`` int64 and ``probability`` fp32."""
    _walk[(1,)](
        candidates.logits, candidates.tokens, states, predecessors, successors, block, target_ids, token, probability,
        COUNT=len(candidates.tokens), RANK=predecessors.shape[1], CANDIDATES=CANDIDATES, num_warps=4,
    )  # fmt: skip


@early_kernel
def _walk(
    scores: tl.tensor, candidates: tl.tensor, states: tl.tensor, predecessors: tl.tensor, successors: tl.tensor,
    block: tl.tensor, target_ids: tl.tensor, token: tl.tensor, probability: tl.tensor,
    COUNT: tl.constexpr, RANK: tl.constexpr, CANDIDATES: tl.constexpr,
) -> None:  # fmt: skip
    lane = tl.arange(0, RANK)
    candidate = tl.arange(0, CANDIDATES)
    wait_for_inputs()
    before = tl.load(block).to(tl.int64)
    let_next_start()
    for row in range(0, COUNT):
        each = tl.load(candidates + row * CANDIDATES + candidate).to(tl.int64)
        after = tl.load(successors + each[:, None] * RANK + lane[None, :]).to(tl.float32)
        wanted = tl.load(predecessors + before * RANK + lane).to(tl.float32)
        wanted *= tl.load(states + row * RANK + lane).to(tl.float32)
        score = tl.load(scores + row * CANDIDATES + candidate) + tl.sum(after * wanted[None, :], axis=1)
        highest = tl.max(score, axis=0)
        first = tl.min(tl.where(score == highest, candidate, CANDIDATES), axis=0)
        before = tl.sum(tl.where(candidate == first, each, 0), axis=0)
        if target_ids is not None:
            before = tl.load(target_ids + before).to(tl.int64)
        tl.store(token + row, before)
        tl.store(probability + row, 1 / tl.sum(tl.exp(score - highest), axis=0))
