"""The table of actions. A new one is a row in one of these modules; nothing else has to know it."""

from __future__ import annotations

from . import asking, keeping, presenting, recalling, stepping, tracing, tuning, viewing
from .action import Action

MODULES = (asking, recalling, tuning, viewing, stepping, presenting, tracing, keeping)

ACTIONS: dict[str, Action] = {action.id: action for module in MODULES for action in module.ACTIONS}
"""By id, in the order of the help screen."""

SLASH: dict[str, Action] = {action.slash: action for action in ACTIONS.values() if action.slash}
"""By the name of the slash command."""
