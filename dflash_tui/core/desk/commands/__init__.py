"""The table of commands that the screen and the lines share. A new one is a row in one of these modules; nothing else
has to know it."""

from __future__ import annotations

from ..command import Command
from ..desk import Desk
from . import branches, conversation, figures, files, sessions, settings

MODULES = (conversation, branches, sessions, settings, figures, files)

COMMANDS: dict[str, Command[Desk]] = {command.id: command for module in MODULES for command in module.COMMANDS}
"""Every command by its id, in the order of the help."""
