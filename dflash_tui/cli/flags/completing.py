"""What a shell is told of values that only this machine knows. Each is looked up when a
shell asks, and never for anything else."""

from __future__ import annotations

from collections.abc import Callable, Iterable

import click
from click.shell_completion import CompletionItem

Complete = Callable[[click.Context, click.Parameter, str], list[CompletionItem]]


def among(names: Callable[[], Iterable[str]], *, files: bool = False) -> Complete:
    """What click asks for values: those of ``names`` that go on with what was typed; the shell's ``files``, too."""

    def complete(_context: click.Context, _parameter: click.Parameter, typed: str) -> list[CompletionItem]:
        items = [CompletionItem(name) for name in names() if name.startswith(typed)]
        return [CompletionItem(typed, type="file"), *items] if files else items  # bash forgets what stands before it

    return complete


def models() -> list[str]:
    from engine.commands import BUNDLED
    from engine.hub.names import names_at_hand

    return [BUNDLED, *names_at_hand()]


A_MODEL = among(models, files=True)


def published() -> list[str]:
    from engine.hub.names import known_names

    return known_names()


def recordings() -> list[str]:
    from dflash_tui.core.replay.bundled import DEMO, bundled_recordings

    return [DEMO, *bundled_recordings()]
