"""Rows of random texts, as trainings pack them."""

from __future__ import annotations

import random

from engine.lab.training.rows import Encoded, RowDataset, TextRows, batches
from support.checkpoints import VOCAB_SIZE
from tests.engine.conftest import CPU

FIRST_TEXT_ID = 107


def random_source(rng: random.Random) -> Encoded:
    length = rng.randrange(30, 200)
    ids = [rng.randrange(FIRST_TEXT_ID, VOCAB_SIZE) for _ in range(length)]
    begin = rng.randrange(5, 20)
    return Encoded(ids, [0.0] * begin + [1.0] * (length - begin - 2) + [0.0] * 2)


def packed_rows(rows: int = 2, length: int = 256) -> TextRows:
    return next(batches(RowDataset(random_source, "rows", rows, length), rows, CPU))
