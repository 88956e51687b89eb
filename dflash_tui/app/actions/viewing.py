"""Actions on what the screen shows."""

from __future__ import annotations

from difflib import get_close_matches
from typing import TYPE_CHECKING

from dflash_tui.core.conversation.slash import Argument, SlashError

from ..theming import own_first
from ..widgets.token_log import TokenLog
from .action import Action

if TYPE_CHECKING:
    from ..screens.chat import ChatScreen


def show_help(screen: ChatScreen, _: Argument) -> None:
    screen.show_help()


def toggle_thoughts(screen: ChatScreen, _: Argument) -> None:
    screen.query_one(TokenLog).toggle_thoughts()


def toggle_rendered(screen: ChatScreen, _: Argument) -> None:
    if screen.talk.rendered:
        screen.talk.show_tokens()
    elif screen.chat.answers:
        screen.talk.show_rendered()
    else:
        raise SlashError("There is no finished answer to render yet.")


def jump(screen: ChatScreen, _: Argument) -> None:
    screen.jump()


def page_up(screen: ChatScreen, _: Argument) -> None:
    screen.query_one(TokenLog).action_page_up()


def page_down(screen: ChatScreen, _: Argument) -> None:
    screen.query_one(TokenLog).action_page_down()


def follow(screen: ChatScreen, _: Argument) -> None:
    screen.query_one(TokenLog).action_follow()


def show_statistics(screen: ChatScreen, _: Argument) -> None:
    screen.show_statistics()


def theme_names(screen: ChatScreen) -> list[str]:
    return own_first(screen.app.available_themes)


def choose_theme(screen: ChatScreen, argument: Argument) -> None:
    themes = theme_names(screen)
    if not argument.text:
        screen.app.search_themes()
    elif argument.text not in themes:
        near = get_close_matches(argument.text, themes, 1)
        hint = f"Did you mean {near[0]}?" if near else "/theme shows them all."
        raise SlashError(f"There is no theme {argument.text}. {hint}")
    else:
        screen.app.theme = argument.text


ACTIONS = (
    Action("help", "keys and commands", show_help, "f1", "help"),
    Action("thoughts", "fold thoughts away, or show them", toggle_thoughts, "alt+h", priority=True),
    Action("rendered", "finished answers as Markdown, or as tokens", toggle_rendered, "ctrl+t", priority=True),
    Action("jump", "go to a part of the screen by its letter", jump, "ctrl+g", priority=True),
    Action("page-up", "scroll the transcript", page_up, "pageup", listed=False),
    Action("page-down", "scroll the transcript", page_down, "pagedown", listed=False),
    Action("follow", "follow the end of the transcript", follow, "ctrl+end"),
    Action("statistics", "the figures behind the gauges, as tables", show_statistics, slash="stats"),
    Action(
        "theme",
        "change the colours; without a name: look at them first",
        choose_theme,
        slash="theme",
        takes="[name]",
        choices=theme_names,
    ),
)
