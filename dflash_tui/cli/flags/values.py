"""Values of flags that click knows no type for: a model, a block size, and an amount."""

from __future__ import annotations

from math import isfinite
from typing import Any

import click
from click.shell_completion import CompletionItem

from engine.commands import AUTO, MAX_BLOCK_SIZE, MIN_BLOCK_SIZE, BlockSize


class ModelName(click.ParamType):  # type: ignore[type-arg]  # older clicks have no type arguments
    """A model's name, a folder or a server's address, or several with commas between. The address of a page on the hub
    stands for the model's name, not for a server."""

    name = "model"

    def convert(self, value: object, param: click.Parameter | None, ctx: click.Context | None) -> str:
        if "://" not in str(value):
            return str(value)
        from engine.hub.names import name_of_page  # imported here: few paste an address

        return ",".join(map(name_of_page, str(value).split(",")))


class BlockSizeType(click.ParamType):  # type: ignore[type-arg]  # older clicks have no type arguments
    """A whole number or ``auto``. Which numbers are block sizes is for ``GenerationSettings`` to say."""

    name = "block size"

    def convert(self, value: object, param: click.Parameter | None, ctx: click.Context | None) -> BlockSize:
        if value == AUTO:
            return AUTO
        try:
            return int(str(value))
        except ValueError:
            self.fail(f"{value!r} is neither a whole number nor {AUTO}", param, ctx)

    def shell_complete(self, ctx: click.Context, param: click.Parameter, incomplete: str) -> list[CompletionItem]:
        sizes = (AUTO, *map(str, range(MIN_BLOCK_SIZE, MAX_BLOCK_SIZE + 1)))
        return [CompletionItem(size) for size in sizes if size.startswith(incomplete)]


class Amount(click.FloatRange):
    """A number above zero, and none of "inf" and "nan", which click takes for numbers."""

    def __init__(self, most: float | None = None) -> None:
        super().__init__(min=0, min_open=True, max=most)

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> float:
        number: float = super().convert(value, param, ctx)
        if not isfinite(number):
            self.fail(f"{value} is no amount", param, ctx)
        return number
