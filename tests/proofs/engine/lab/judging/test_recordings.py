"""The bundled pair's own drafts under every policy: choosing the width must not lose to any width fixed beforehand.

``drafts.xz`` holds what the bundled drafter drafted behind every token of 144 held-out answers, six domains at three
temperatures: its four best choices for every position of a block. On dense
models ``auto`` verifies trees of them; fixed widths take chains.
"""

from __future__ import annotations

from copy import deepcopy
from itertools import groupby

import pytest
import torch
from torch import Tensor

from engine.commands import GenerationSettings
from engine.lab.judging.record import record_drafts
from engine.speculation.auto import Auto
from engine.speculation.policy import Fixed
from engine.speculation.trees import CHOICES
from support.checkpoints import VOCAB_SIZE
from tests.engine.conftest import TinyPair
from tests.proofs.engine.played_auto import AHEAD, TREES, behind, play_auto, tok_s
from tests.proofs.engine.recorded import recorded_drafts, recorded_tables

RECORDINGS = recorded_drafts()
CELLS = {
    f"{domain} T={temperature}": list(answers)
    for (domain, temperature), answers in groupby(
        sorted(RECORDINGS, key=lambda each: (each.domain, each.temperature)),
        key=lambda each: (each.domain, each.temperature),
    )
}


TABLES = recorded_tables()
SIZES = (1, 2, 4, 8, 16)
WHERE = [
    (cell, name, AHEAD[(row + column) % len(AHEAD)])
    for row, cell in enumerate(CELLS)
    for column, name in enumerate(TABLES)
    if (row + column) % 3
]


@pytest.mark.parametrize(("cell", "name", "ahead"), WHERE)
def test_auto_is_not_slower_than_any_fixed_width(cell: str, name: str, ahead: int) -> None:
    """``ahead``: so many tokens stand before the prompt."""
    table = TABLES[name]
    answers = [behind(ahead, each) for each in CELLS[cell]]
    fixed = {size: tok_s(lambda size=size: Fixed(size), answers, table) for size in SIZES}  # type: ignore[misc]
    played = [play_auto(name, table, each.blocks, each.prompt_length) for each in answers]
    auto = 1e3 * sum(each.tokens for each in played) / sum(each.milliseconds for each in played)
    assert auto >= 0.98 * max(fixed.values())
    if cell.split()[0] in ("chat", "explain"):
        # Rows that are verified in vain cost a mixture more: it reads more experts for them.
        assert auto >= (1.05 if name in TREES else 1.15) * fixed[16]


@pytest.mark.parametrize("name", TREES)
@pytest.mark.parametrize("cell", sorted(CELLS)[::2])
def test_auto_loses_nothing_with_chains_on_a_dense_model(cell: str, name: str) -> None:
    """So it is where nobody verifies trees."""
    table = TABLES[name]
    auto = tok_s(lambda: Auto(table), CELLS[cell], table)
    assert auto >= 0.99 * tok_s(lambda: Fixed(16), CELLS[cell], table)


def test_every_domain_and_temperature_is_there() -> None:
    assert len(CELLS) == 18 and all(len(answers) == 8 for answers in CELLS.values())


def test_drafts_are_there_with_their_choices() -> None:
    for recording in RECORDINGS:
        assert all(len(position) == CHOICES for block in recording.blocks for position in block.chances)


def test_a_self_test_counts_in_the_targets_ids(dense_pair: TinyPair) -> None:
    """A drafter that is always right, and numbers the tokens backwards."""
    target, drafter, wanted = dense_pair.target, deepcopy(dense_pair.drafter), GenerationSettings(max_new_tokens=12)
    text, _ = record_drafts(target, drafter, [5, 6, 7], wanted)
    drafter.token_ids, calls = torch.arange(VOCAB_SIZE).flip(0), iter(range(1, len(text) + 1))

    def right(_: object, rows: Tensor) -> Tensor:
        coming = torch.tensor([*text[next(calls) :], *[0] * len(rows)][: len(rows)])
        return torch.nn.functional.one_hot(VOCAB_SIZE - 1 - coming, VOCAB_SIZE).float()

    drafter.logits = right  # type: ignore[method-assign]
    _, drafts = record_drafts(target, drafter, [5, 6, 7], wanted)
    assert all(draft.num_right == len(draft.confidences) > 0 for draft in drafts) and len(drafts) == len(text) - 1
