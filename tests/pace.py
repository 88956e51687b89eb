"""How much tests look at: all of it in CI, a sample elsewhere. Whole proofs that wait for CI carry its marker."""

from __future__ import annotations

import os
import subprocess
from collections.abc import Sequence
from typing import Any

import pytest

IN_CI = os.environ.get("CI") == "true"


def sampled(items: Sequence[Any], every: int) -> Sequence[Any]:
    """Elsewhere every so-manieth of them, and the last."""
    return items if IN_CI else [*items[:-1:every], items[-1]]


def in_turn(items: Sequence[Any], parts: int) -> Sequence[Any]:
    """Every so-manieth of them, from another one on with every commit; all with ``make proofs CARDS=all``."""
    if os.environ.get("CARDS") == "all":
        return items
    counted = subprocess.run(["git", "rev-list", "--count", "HEAD"], capture_output=True, text=True)
    return items[int(counted.stdout or 0) % parts :: parts]


def only_in_ci(*values: object) -> object:
    """A parameter of a test that CI alone looks at."""
    return pytest.param(*values, marks=pytest.mark.ci)


def examples(count: int) -> int:
    """Of a property: elsewhere a quarter of them, at least five."""
    return count if IN_CI else max(5, count // 4)
