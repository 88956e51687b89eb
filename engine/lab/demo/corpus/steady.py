"""A generator whose choice depends on what there is to choose from, and not on what was chosen before."""

from __future__ import annotations

import random
import zlib
from collections.abc import Sequence
from typing import Any, TypeVar

T = TypeVar("T")


class Steady(random.Random):
    """Chooses the same from the same options every time, so that a text written twice with one setting changed is the
    same text but for that setting."""

    def __init__(self, key: str) -> None:
        super().__init__(key)
        self._key = key

    def choice(self, seq: Sequence[T]) -> T:  # type: ignore[override]
        return seq[self._hash(seq) % len(seq)]

    def sample(self, population: Sequence[T], k: int, **_: Any) -> list[T]:
        return sorted(population, key=lambda member: self._hash((member, len(population))))[:k]

    def random(self) -> float:
        raise NotImplementedError("only choices can be steady")

    def _hash(self, options: object) -> int:
        return zlib.crc32(f"{self._key}/{options}".encode())
