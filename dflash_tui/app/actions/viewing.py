"""Actions on what the screen shows."""

from __future__ import annotations

from difflib import get_close_matches
from typing import get_args

from dflash_tui.core.conversation.slash import Argument, SlashError
from dflash_tui.core.desk.command import Command
from dflash_tui.core.settings.config import Gauges

from ..chat.screen import ChatScreen

VERSIONS = "the version before, or behind, of the newest question or answer that has some"

QUESTIONS = "the transcript, from question to question"


def show_help(screen: ChatScreen, _: Argument) -> None:
    screen.show_help()


def toggle_thoughts(screen: ChatScreen, _: Argument) -> None:
    screen.conversation.transcript.toggle_thoughts()


def toggle_rendered(screen: ChatScreen, _: Argument) -> None:
    if screen.conversation.rendered:
        screen.conversation.show_tokens()
    elif screen.chat.answers:
        screen.conversation.show_rendered()
    else:
        raise SlashError("There is no finished answer to render yet.")


def choose_gauges(screen: ChatScreen, argument: Argument) -> None:
    """Show the gauges as wide as the word says, or else in the next of the widths."""
    widths: tuple[Gauges, ...] = get_args(Gauges)
    following = widths[(widths.index(screen.gauges) + 1) % len(widths)]
    chosen = argument.choice(*widths) if argument.text else following
    screen.gauges = next(each for each in widths if each == chosen)
    screen.show_gauges()
    screen.say(f'Gauges: {chosen}. F2 goes on; gauges = "{chosen}" in config.toml keeps it.')


def page_up(screen: ChatScreen, _: Argument) -> None:
    screen.conversation.scrolling.action_page_up()


def page_down(screen: ChatScreen, _: Argument) -> None:
    screen.conversation.scrolling.action_page_down()


def top(screen: ChatScreen, _: Argument) -> None:
    screen.conversation.scrolling.scroll_home(animate=False)


def follow(screen: ChatScreen, _: Argument) -> None:
    if screen.conversation.rendered:
        screen.conversation.scrolling.scroll_end(animate=False)
    else:
        screen.conversation.transcript.action_follow()


def question_before(screen: ChatScreen, _: Argument) -> None:
    screen.conversation.go_to_question(-1)


def question_behind(screen: ChatScreen, _: Argument) -> None:
    screen.conversation.go_to_question(1)


def theme_names(screen: ChatScreen) -> list[str]:
    return sorted(screen.app.available_themes)


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


def version_back(screen: ChatScreen, _: Argument) -> None:
    screen.desk.turn_over(*screen.desk.turnable(-1), -1)


def version_forward(screen: ChatScreen, _: Argument) -> None:
    screen.desk.turn_over(*screen.desk.turnable(1), 1)


COMMANDS = {
    "tree": (
        Command("version-back", "Version before", VERSIONS, version_back, "alt+j", priority=True),
        Command("version-forward", "Next version", VERSIONS, version_forward, "alt+k", priority=True),
    ),
    "statistics": (
        Command("help", "Help", "keys and commands", show_help, "f1", "help"),
        Command(
            "thoughts", "Fold thoughts", "fold thoughts away, or show them", toggle_thoughts, "alt+h", priority=True
        ),
        Command(
            "rendered",
            "Draw the answers",
            "answers drawn, or in the colours of their tokens",
            toggle_rendered,
            "ctrl+t",
            "rendered",
            priority=True,
        ),
        Command(
            "gauges",
            "Gauges",
            "gauges in full, narrow or none",
            choose_gauges,
            "f2,alt+m",
            "gauges",
            "[full|narrow|off]",
            priority=True,
        ),
        Command("page-up", "Page up", "scroll the transcript", page_up, "pageup", listed=False),
        Command("page-down", "Page down", "scroll the transcript", page_down, "pagedown", listed=False),
        Command("top", "To the beginning", "the beginning of the transcript", top, "ctrl+home"),
        Command("follow", "Back to the end", "follow the end of the transcript", follow, "ctrl+end"),
        Command("question-before", "Question before", QUESTIONS, question_before, "ctrl+up"),
        Command("question-behind", "Next question", QUESTIONS, question_behind, "ctrl+down"),
    ),
    "steps": (
        Command(
            "theme",
            "Colours (theme)",
            "other colours; without a name, look at them first",
            choose_theme,
            slash="theme",
            takes="[name]",
            choices=theme_names,
        ),
    ),
}
