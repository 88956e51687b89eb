"""What the slash commands do on the chat screen."""

from __future__ import annotations

from typing import TYPE_CHECKING

from dflash_tui.core.reducer import Span, statistics_table
from dflash_tui.core.slash import SlashCommand, SlashError

from .widgets.prompt import Prompt
from .widgets.token_log import TokenLog

if TYPE_CHECKING:
    from .screens.chat import ChatScreen


def run_command(screen: ChatScreen, command: SlashCommand) -> None:
    """Raises ``SlashError`` or ``ValueError`` with a message for the user, who gets the command back."""
    match command.name:
        case "help":
            screen.action_help()
        case "new":
            screen.action_new_chat()
        case "retry":
            _retry(screen)
        case "edit":
            _edit(screen)
        case "think":
            _think(screen, command.switch())
        case "save":
            screen.action_save(command.integer() if command.argument else None)
        case "temp":
            screen.set_temperature(command.number())
        case "block":
            screen.set_block(command.integer())
        case "seed":
            screen.chat.reseed(command.integer())
        case "system":
            screen.chat.system = command.argument or None
        case "stats":
            _show_statistics(screen)
        case "theme":
            _choose_theme(screen, command.argument)
        case "quit":
            screen.app.exit()


def _take_back(screen: ChatScreen) -> str:
    """The newest question, which is no longer part of the conversation."""
    if screen.chat.busy:
        raise SlashError("An answer is on its way. Esc stops it first.")
    exchange = screen.chat.take_back()
    if exchange is None:
        raise SlashError("There is no question to take back yet.")
    screen.queue.log.take_back(exchange.turn)
    screen.query_one(TokenLog).append([Span("↺ taken back\n\n", "note")])
    return exchange.question


def _retry(screen: ChatScreen) -> None:
    """The same seed would give the same answer, so the next one is used; greedy decoding has none."""
    question = _take_back(screen)
    if screen.chat.settings.temperature > 0:
        screen.chat.reseed(screen.chat.settings.seed + 1)
    else:
        screen.notify("At temperature 0 the same question has the same answer; /temp 0.7 lets it vary.", timeout=6)
    screen.ask(question)


def _edit(screen: ChatScreen) -> None:
    question = _take_back(screen)
    prompt = screen.query_one(Prompt)
    prompt.insert(question)


def _think(screen: ChatScreen, thinking: bool) -> None:
    screen.chat.think(thinking)
    screen.notify(f"Thinking is {'on' if thinking else 'off'} from the next question on.", timeout=3)


def _show_statistics(screen: ChatScreen) -> None:
    turn = screen.chat.reducer.turn
    if turn is None or turn.statistics is None:
        raise SlashError("There are no numbers before the first answer has ended.")
    screen.query_one(TokenLog).append([Span(f"{statistics_table(turn.statistics)}\n\n", "note")])


def _choose_theme(screen: ChatScreen, name: str) -> None:
    themes = sorted(screen.app.available_themes)
    if name not in themes:
        raise SlashError(f"Themes: {', '.join(themes)}")
    screen.app.theme = name
