"""Flags that take an amount: a number above zero."""

from __future__ import annotations

from math import isfinite
from typing import Any

import click


class Amount(click.FloatRange):
    """Above zero and, unlike click's own, a number: "inf" and "nan" are floats, too."""

    def __init__(self, most: float | None = None) -> None:
        super().__init__(min=0, min_open=True, max=most)

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> float:
        number: float = super().convert(value, param, ctx)
        if not isfinite(number):
            self.fail(f"{value} is no amount", param, ctx)
        return number
