"""The table of actions. A new one is a row in one of these modules; nothing else has to know it."""

from __future__ import annotations

from . import branching, conversation, saving, sessions, settings, showing, stepping, viewing
from .action import Action

MODULES = (conversation, branching, sessions, settings, viewing, stepping, showing, saving)

ACTIONS: dict[str, Action] = {action.id: action for module in MODULES for action in module.ACTIONS}
"""By id, in the order of the help screen."""

SLASH: dict[str, Action] = {action.slash: action for action in ACTIONS.values() if action.slash}
"""By the name of the slash command."""
