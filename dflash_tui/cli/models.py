"""Models to switch to within a chat: the same words as on the command line."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from functools import cache
from pathlib import Path

from dflash_tui.core.advice import as_command
from dflash_tui.core.conversation.start import Models
from dflash_tui.core.failures import Failure
from dflash_tui.core.settings.addresses import address_named
from dflash_tui.core.source import SourceFactory
from dflash_tui.sources import Target
from engine.commands import BUNDLED, DFLASH, MTP, NO_DRAFTER, EngineOptions
from engine.errors import EngineFailure

from .flags.chat_flags import Flags
from .invocation import Invocation
from .problems import Problem


def models_of(flags: Flags, invocation: Invocation) -> Models:
    """The models that a chat can switch to, with the flags that were typed for the first as far as they concern
    each."""

    def make(name: str, drafter: str) -> SourceFactory:
        try:
            target = _target(flags, name, drafter, invocation)
            if isinstance(target, EngineOptions):
                _check(target)
            return invocation.source(target)
        except Problem as problem:
            raise Failure(str(problem), problem.hint) from None
        except EngineFailure as failure:
            raise Failure(*failure.in_words(as_command)) from None

    names = cache(lambda: tuple(_names(invocation)))
    return Models(make, names, flags.server or flags.model or BUNDLED, _free)


def _free() -> None:
    from engine.service import free_memory  # there was an engine, or there is nothing to free

    free_memory()


def _target(flags: Flags, name: str, drafter: str, invocation: Invocation) -> Target:
    """What is to answer for the name of a model or server, with another drafter where one is named. Raises
    :class:`Problem` and ``Failure``."""
    if name in invocation.config.servers:
        if drafter:
            raise Problem(f"{name} is a server, which chose its drafter when it was started.", "Leave it out.")
        return address_named(name, invocation.config, None)
    same = name == (flags.model or BUNDLED)
    chosen = replace(
        flags,
        model=None if name == BUNDLED else name,
        draft=drafter or (flags.draft if same else None),
        settings=replace(flags.settings, speculation=flags.settings.speculation or bool(drafter)),
        server=None,
        dialect=None,
    )
    return chosen.target(("model",), ("draft",) if drafter else (), invocation.config)


def _check(options: EngineOptions) -> None:
    """Raise ``WeightsFailure`` for a name that can't be found, before the model that answers now is let go."""
    from engine.hub.pairs import INSTEAD_OF_DRAFTER, check_name  # all families' configs: not before the first frame

    if options.target is not None:
        check_name(options.target)
    if options.drafter is not None and options.drafter not in (DFLASH, MTP, NO_DRAFTER):
        check_name(options.drafter, INSTEAD_OF_DRAFTER)


def _names(invocation: Invocation) -> Iterator[str]:
    """Yields the names that can be typed: the bundled pair, servers, models in this folder and those of the hub."""
    from engine.hub.names import cached_names, known_names

    yield BUNDLED
    yield from invocation.config.servers
    try:
        here = sorted(Path().iterdir())
    except OSError:  # a folder that may not be read
        here = []
    yield from (str(path) for path in here if path.suffix == ".gguf" or (path / "config.json").is_file())
    yield from dict.fromkeys((*cached_names(), *known_names()))
