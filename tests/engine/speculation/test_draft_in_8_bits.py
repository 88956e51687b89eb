"""The bundled drafter in 8 bits: it drafts as well as with all of them.

On 60 held-out answers its drafts agree with the others in 98.6 % of 144 255 tokens, or in 99.6 % where only the head
has 8 bits, and rounds yield 7.44 tokens instead of 7.33 (``python -m measure.engine.draft_in_8_bits --prompts 10``).
The bounds here leave room for few answers.
"""

from __future__ import annotations

from itertools import islice
from pathlib import Path
from statistics import fmean

import pytest
import torch
from torch import Tensor

from engine.demo.confirm import questions
from engine.kernels.decode.head import HeadOutput, head_rows, pick_rows
from engine.kernels.decode.tiles import Tiles
from engine.kernels.toolchain.jit import INTERPRETED, MAX_ROWS
from engine.kernels.weights.int8 import Int8Weight
from engine.loading.checkpoint import load_drafter, load_target
from engine.models.dflash.modules import DFlashDrafter
from engine.models.gemma4.modules import Gemma4
from measure.engine.draft_in_8_bits import drafted_by_both, rounded_drafter
from tests.engine.conftest import CPU, no_progress
from tests.pace import only_in_ci

TILES = Tiles(columns=512, depth=64)
"""Few programs, for the interpreter."""


@pytest.fixture(scope="module")
def pair(bundled_pair: Path) -> tuple[Gemma4, DFlashDrafter]:
    target = load_target(bundled_pair / "target", CPU, no_progress)
    return target, load_drafter(bundled_pair / "drafter", target, no_progress)


@pytest.mark.parametrize(
    ("head_alone", "least"), [only_in_ci(True, 0.99), (False, 0.97)], ids=["head", "whole drafter"]
)
def test_it_drafts_what_all_bits_draft(head_alone: bool, least: float, pair: tuple[Gemma4, DFlashDrafter]) -> None:
    rounded = pair[1] if head_alone else rounded_drafter(pair[1])
    answers = [drafted_by_both(*pair, rounded, ids, max_new_tokens=60) for _, ids in questions(1)]
    agreed, drafted = (sum(each) for each in zip(*(answer.agreement() for answer in answers), strict=True))
    assert drafted > 4000 and agreed >= least * drafted
    full, eighth = (
        fmean(count for answer in answers for count in answer.num_right(drafts(answer)))
        for drafts in (lambda answer: answer.full, lambda answer: answer.eighth)
    )
    assert full > 3 and abs(eighth - full) < 0.1


@pytest.mark.skipif(not INTERPRETED, reason="needs Triton's interpreter")
def test_the_kernels_pick_what_it_drafts(pair: tuple[Gemma4, DFlashDrafter]) -> None:
    target, drafter = pair
    blocks: list[Tensor] = []
    rounded = rounded_drafter(drafter)
    rounded.norm.register_forward_hook(lambda norm, inputs, rows: blocks.append(rows[1:].clone()))
    (_, ids), *_ = islice(questions(1), 1)
    answer = drafted_by_both(target, drafter, rounded, ids, max_new_tokens=12)
    copy = Int8Weight.of(target.head)
    out = HeadOutput.allocate(copy.shape[0], TILES, CPU, keep_logits=False)
    for rows, drafted in zip(blocks, answer.eighth, strict=True):
        padded = torch.zeros(MAX_ROWS, rows.shape[1])
        padded[: len(rows)] = rows
        head_rows(padded, copy, drafter.config.logit_softcap, out, TILES)
        pick_rows(out)
        assert tuple(out.token[: len(rows)].tolist()) == drafted
