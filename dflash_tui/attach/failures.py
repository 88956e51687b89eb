"""What can go wrong with a server, in words: what happened, and what to do next."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from typing import Any

from dflash_tui.core.failures import Failure
from dflash_tui.core.settings.addresses import KEY_VARIABLE

from .reading import mapping, sentence


class ServerFailure(Failure):
    """A server that can't be reached, refuses, or says what can't be understood."""


class Loading(ServerFailure):
    """The server has not loaded its model yet."""


class NoModel(ServerFailure):
    """The server has other models."""


class NotTaken(ServerFailure):
    """The server does not take the question as it was put; its words may name a field."""


ANOTHER = "Ask again; if it happens again, look into the server's log."


def refused(where: str, status: int, headers: Mapping[str, str], said: Any) -> ServerFailure:
    """A status that is no success, with what the server said of it: its JSON, or None."""
    words = said_error(said)
    told = f": {words}" if words else "."
    if status in (401, 403):
        return ServerFailure(
            f"{where} wants another key (status {status}){told}",
            f"Put its key into {KEY_VARIABLE}, or where key_variable or key_command of [servers.NAME] says.",
        )
    if status == 404:
        if "model" in words.lower():
            return NoModel(f"{where} does not have this model{told}", "Name one of its models.")
        return ServerFailure(
            f"{where} has nothing at this place (status 404){told}",
            "Is it an OpenAI-compatible server? The URL is what stands before /v1.",
        )
    if status == 429:
        return ServerFailure(f"{where} takes no more questions for now (status 429){told}", _when(headers))
    if status == 503 and re.search(r"\bload(ing|ed)\b", words.lower()):
        return Loading(f"{where} is still loading its model.", "Ask again in a moment.")
    if status in (502, 503, 504):
        return ServerFailure(f"{where} is not available (status {status}){told}", _when(headers))
    if status >= 500:
        return ServerFailure(f"{where} failed (status {status}){told}", ANOTHER)
    if "context" in words.lower() and "token" in words.lower():
        return ServerFailure(
            f"The conversation is too long for {where}{told}", "Start a new chat, or ask something shorter."
        )
    return NotTaken(
        f"{where} does not take the question (status {status}){told}", "Change the setting that it names, or ask anew."
    )


def in_stream(where: str, said: Any) -> ServerFailure:
    """An error in the middle of a stream that began well."""
    words = said_error({"error": said}) or "it does not say why."
    return ServerFailure(f"{where} broke the answer off: {words}", ANOTHER)


def said_error(said: Any) -> str:
    """The words of an error as servers send it: ``{"error": {"message"}}``, ``{"detail"}`` and the like."""
    body = mapping(said)
    error = body.get("error", body)
    for words in (mapping(error).get("message"), error, body.get("detail"), body.get("message")):
        if isinstance(words, str) and words.strip():
            return sentence(words)
    return ""


def _when(headers: Mapping[str, str]) -> str:
    seconds = headers.get("retry-after", "").strip()
    if seconds.isdigit():
        return f"It says: ask again in {int(seconds[:6])} seconds."
    return f"It says: ask again at {sentence(seconds)}" if seconds else "Ask again in a moment."


def transport(where: str, error: Exception) -> ServerFailure:
    """A connection that could not be made, or broke."""
    import socket
    import ssl

    causes = list(_causes(error))
    text = " ".join(str(cause) for cause in causes)
    kinds = {type(cause).__name__ for cause in causes}
    if any(isinstance(cause, socket.gaierror) for cause in causes):
        return ServerFailure(f"No machine goes by the name in {where}.", "Look for a typing error, or use its number.")
    if any(isinstance(cause, ssl.SSLError) for cause in causes):
        return _tls(where, text)
    if "ProxyError" in kinds:
        return ServerFailure(
            f"The proxy between here and {where} refuses: {sentence(str(error))}",
            "Look at HTTP_PROXY and HTTPS_PROXY; NO_PROXY names hosts to reach without.",
        )
    if "ConnectTimeout" in kinds:
        return ServerFailure(f"{where} does not answer.", "Is it the right host, and does a firewall stand in between?")
    if "ConnectError" in kinds:
        return ServerFailure(f"Nothing listens at {where}.", "Start the server, or look at host and port.")
    if any(isinstance(cause, TimeoutError) for cause in causes) or "ReadTimeout" in kinds:
        return ServerFailure(
            f"{where} has fallen silent.", "Ask again; the next question connects anew. Its log may say what it does."
        )
    if "SSEError" in kinds:
        return ServerFailure(
            f"{where} sends something endless that is no answer.", "Is it an OpenAI-compatible server?"
        )
    if "RemoteProtocolError" in kinds and "illegal" in text.lower():
        return ServerFailure(f"{where} does not speak HTTP.", "Is it the right port? https:// where it wants TLS.")
    return ServerFailure(
        f"The connection to {where} broke.", "Ask again; the next question connects anew. Is the server still running?"
    )


def _tls(where: str, text: str) -> ServerFailure:
    if "CERTIFICATE_VERIFY_FAILED" in text:
        return ServerFailure(
            f"The certificate of {where} is not trusted here.",
            "SSL_CERT_FILE names a file with the certificate to trust, of the server or of who signed it.",
        )
    return ServerFailure(f"{where} does not speak TLS as it should.", "Try http:// in the place of https://")


def _causes(error: BaseException | None) -> Iterator[BaseException]:
    """An exception and what led to it."""
    seen: set[int] = set()
    waiting = [error]
    while waiting:
        cause = waiting.pop()
        if cause is None or id(cause) in seen:
            continue
        seen.add(id(cause))
        yield cause
        waiting += [cause.__cause__, cause.__context__, *getattr(cause, "exceptions", ())]


def web_page(where: str, content_type: str, text: str | bytes) -> ServerFailure:
    """Something else where JSON should be."""
    start = text[:200] if isinstance(text, str) else text[:200].decode("utf-8", "replace")
    if "html" in content_type or start.lstrip().startswith("<"):
        return ServerFailure(
            f"{where} answers with a web page.",
            "The URL is that of the interface, what stands before /v1; a login page may stand in between.",
        )
    return ServerFailure(
        f"{where} answers with something that is no JSON.", "Is it an OpenAI-compatible server? Look at the URL."
    )


def broke_off(where: str) -> ServerFailure:
    """A stream that ended in the middle."""
    return ServerFailure(
        f"{where} ended the answer in the middle.",
        "Ask again; the next question connects anew. Is the server still running?",
    )
