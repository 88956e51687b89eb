"""How much tests look at: all of it in CI, a sample elsewhere. Whole proofs that wait for CI carry its marker."""

from __future__ import annotations

import os
from collections.abc import Sequence
from typing import Any

import pytest

IN_CI = os.environ.get("CI") == "true"


def sampled(items: Sequence[Any], every: int) -> Sequence[Any]:
    """Elsewhere every so-manieth of them, and the last."""
    return items if IN_CI else [*items[:-1:every], items[-1]]


def only_in_ci(*values: object) -> object:
    """A parameter of a test that CI alone looks at."""
    return pytest.param(*values, marks=pytest.mark.ci)


def examples(count: int) -> int:
    """Of a property: elsewhere a quarter of them, at least five."""
    return count if IN_CI else max(5, count // 4)
