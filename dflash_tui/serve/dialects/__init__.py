"""How clients ask and are answered, a file for each way. All are one request and one stream of pieces inside."""

from .chat import Chat, Text
from .dialect import About, Dialect, Json, encoded
from .messages import Messages
from .ollama import OllamaChat, OllamaGenerate
from .responses import Responses

DIALECTS: tuple[type[Dialect], ...] = (Chat, Text, Responses, Messages, OllamaChat, OllamaGenerate)


def dialect_at(path: str) -> type[Dialect]:
    """The dialect in which an error at this address is told."""
    if path.startswith(f"{Messages.path}/"):
        return Messages
    return next((each for each in DIALECTS if each.path == path), OllamaChat if path.startswith("/api/") else Chat)


__all__ = ["DIALECTS", "About", "Dialect", "Json", "dialect_at", "encoded"]
