"""``--block-size``: a number, or ``auto``."""

from __future__ import annotations

import click
from click.shell_completion import CompletionItem

from engine.commands import AUTO, MAX_BLOCK_SIZE, MIN_BLOCK_SIZE, BlockSize

METAVAR = f"{AUTO}|{MIN_BLOCK_SIZE}-{MAX_BLOCK_SIZE}"


class BlockSizeType(click.ParamType):  # type: ignore[type-arg]  # older clicks have no type arguments
    """Which numbers are block sizes is for ``GenerationSettings`` to say."""

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
