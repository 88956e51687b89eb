"""What the commands of one run of the program share."""

from __future__ import annotations

from dataclasses import dataclass

from dflash_tui.core.settings.config import Config
from dflash_tui.core.settings.servers import ServerAddress
from dflash_tui.core.source import SourceFactory
from dflash_tui.sources import Attach, Engine, Target

COMPLETION = "_DFLASH_CHAT_COMPLETE"
"""A shell sets it when it asks how a line may go on; click's convention."""


@dataclass(frozen=True, slots=True)
class Invocation:
    """What every command of one run of the program shares: click hands it to them as its object."""

    engine: Engine
    attach: Attach
    config: Config
    """What the configuration files say."""

    def source(self, target: Target) -> SourceFactory:
        """The source for what is to answer: the engine with a pair, or a server."""
        return self.attach(target) if isinstance(target, ServerAddress) else self.engine(target)
