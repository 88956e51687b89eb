"""What can go wrong with a server, in words: what happened, and what to do next."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping
from typing import Any

from dflash_tui.core.failures import Failure
from dflash_tui.core.settings.addresses import KEY_VARIABLE

from .error_texts import quoted, status_in, words_of
from .names import CUT
from .untrusted import sentence


class ServerFailure(Failure):
    """A server that can't be reached, refuses, or says what can't be understood."""

    def __init__(self, message: str, hint: str, words: str = "", vague: bool = False) -> None:
        """``words``: what the server said of the question, where asking differently may help. ``vague``: whether it
        need not name what it objects to."""
        super().__init__(message, hint)
        self.words, self.vague = words, vague


class Loading(ServerFailure):
    """The server has not loaded its model yet."""


class Unusable(ServerFailure):
    """There is nothing at this place of the server, or no JSON, or it says nothing more."""


class BrokenOff(ServerFailure):
    """The stream ended before its answer did."""


class NoModel(ServerFailure):
    """The server has other models."""


ANOTHER = "Ask again; if it happens again, look into the server's log."


def refused(where: str, status: int, headers: Mapping[str, str], body: Any, proxy: str = "") -> ServerFailure:
    """The failure for a status that is no success, with what the server said of it: a body, or its JSON. ``proxy``: its
    name, where it may speak in the server's place."""
    words = words_of(body)
    text = f": {words}" if words else "."
    if status == 407:
        return ServerFailure(f"The proxy {proxy or 'in between'} wants a user and a password{text}", PROXIES)
    if status in (401, 403):
        return ServerFailure(
            f"{where} wants another key (status {status}){text}",
            f"Put its key into {KEY_VARIABLE}, or where key_variable or key_command of [servers.NAME] says.",
        )
    if (status in (400, 404) and _NO_MODEL.search(words)) or (status == 404 and "model" in words.lower()):
        return NoModel(f"{where} does not have this model{text}", "Name one of its models.")
    if status in (404, 405, 410, 501):
        return Unusable(
            f"{where} has nothing at this place (status {status}){text}",
            "Is it an OpenAI-compatible server? The URL is what stands before /v1.",
        )
    if status == 429:
        return ServerFailure(f"{where} takes no more questions for now (status 429){text}", _when(headers))
    if status == 503 and re.search(r"\bload(ing|ed)\b", words.lower()):
        return Loading(f"{where} is still loading its model.", "Ask again in a moment.")
    if status in (502, 503, 504):
        through = f" The proxy {proxy} stands in between. {PROXIES}" if proxy else ""
        return ServerFailure(f"{where} is not available (status {status}){text}", _when(headers) + through)
    if status >= 500:
        return ServerFailure(f"{where} failed (status {status}){text}", ANOTHER, words)
    if "context" in words.lower() and re.search(r"token(?!i)|\blong|length|exceed", words.lower()):
        return ServerFailure(
            f"The conversation is too long for {where}{text}", "Start a new chat, or ask something shorter."
        )
    return ServerFailure(
        f"{where} does not take the question (status {status}){text}",
        "Change the setting that it names, or ask anew." if words else ANOTHER,
        words,
        vague=status in (400, 422),
    )


_NO_MODEL = re.compile(r"\bmodel\b.{0,80}\b(not exist|not found|not available|unknown)\b", re.IGNORECASE)
PROXIES = "Look at HTTP_PROXY, HTTPS_PROXY and ALL_PROXY; NO_PROXY names hosts to reach without."


def in_stream(where: str, error: Any, begun: bool) -> ServerFailure:
    """The failure for an error inside a stream whose status was a success. ``begun``: whether it came behind a part of
    the answer."""
    if not begun and (status := status_in(error, 0)):
        return refused(where, status, {}, error)
    words = words_of(error)
    how = "broke the answer off" if begun else "does not answer"
    return ServerFailure(f"{where} {how}: {words or 'it does not say why.'}", ANOTHER, "" if begun else words)


def _when(headers: Mapping[str, str]) -> str:
    seconds = headers.get("retry-after", "").strip()
    if seconds.isdigit():
        return f"It says: ask again in {int(seconds[:6])} seconds."
    return f"It says: ask again at {sentence(seconds)}" if seconds else "Ask again in a moment."


def transport(where: str, error: Exception, proxy: str = "") -> ServerFailure:
    """The failure for a connection that could not be made, or broke. ``proxy``: the one that it was made through."""
    import socket
    import ssl

    causes = list(_causes(error))
    text = " ".join(str(cause) for cause in causes)
    kinds = {type(cause).__name__ for cause in causes}
    if proxy and kinds & {"ProxyError", "ConnectError", "ConnectTimeout"} and "CERTIFICATE" not in text:
        refusal = f"refuses: {sentence(str(error))}" if "ProxyError" in kinds else "can't be reached."
        return ServerFailure(f"The proxy {proxy}, between here and {where}, {refusal}", PROXIES)
    if any(isinstance(cause, socket.gaierror) for cause in causes):
        return ServerFailure(f"No machine goes by the name in {where}.", "Look for a typing error, or use its number.")
    if any(isinstance(cause, ssl.SSLError) for cause in causes):
        return _tls(where, text)
    if "ConnectTimeout" in kinds:
        return ServerFailure(f"{where} does not answer.", "Is it the right host, and does a firewall stand in between?")
    if "ConnectError" in kinds:
        return ServerFailure(f"Nothing listens at {where}.", "Start the server, or look at host and port.")
    if any(isinstance(cause, TimeoutError) for cause in causes) or "ReadTimeout" in kinds:
        return silent(where)
    if "RemoteProtocolError" in kinds and "illegal" in text.lower():
        return ServerFailure(f"{where} does not speak HTTP.", "Is it the right port? https:// where it wants TLS.")
    return ServerFailure(
        f"The connection to {where} broke.", "Ask again; the next question connects anew. Is the server still running?"
    )


def silent(where: str, seconds: float | None = None, what: str = "nothing") -> ServerFailure:
    """The failure for ``what`` having come for so many seconds."""
    text = "" if seconds is None else f": {what} came for {seconds:g} seconds"
    return Unusable(
        f"{where} has fallen silent{text}.",
        "Ask again; the next question connects anew. Its log may say what it does.",
    )


def endless(where: str) -> ServerFailure:
    return ServerFailure(f"{where} sends something endless that is no answer.", "Is it an OpenAI-compatible server?")


def _tls(where: str, text: str) -> ServerFailure:
    if "CERTIFICATE_VERIFY_FAILED" in text:
        return ServerFailure(
            f"The certificate of {where} is not trusted here.",
            "SSL_CERT_FILE names a file with the certificate to trust, of the server or of who signed it.",
        )
    return ServerFailure(f"{where} does not speak TLS as it should.", "Try http:// in the place of https://")


def _causes(error: BaseException | None) -> Iterator[BaseException]:
    seen: set[int] = set()
    waiting = [error]
    while waiting:
        cause = waiting.pop()
        if cause is None or id(cause) in seen:
            continue
        seen.add(id(cause))
        yield cause
        waiting += [cause.__cause__, cause.__context__, *getattr(cause, "exceptions", ())]


def unreadable(where: str, text: str | bytes) -> ServerFailure:
    """The failure for something else where JSON should be; it quotes it."""
    raw = text if isinstance(text, bytes) else text.encode("utf-8", "replace")
    words = words_of(raw)
    detail = f": {words}" if words else "."
    if raw.lstrip().startswith(b"<"):
        return Unusable(
            f"{where} answers with a web page{detail}",
            "The URL is that of the interface, what stands before /v1; a login page may stand in between.",
        )
    return Unusable(
        f"{where} answers with something that is no JSON{detail}", "Is it an OpenAI-compatible server? Look at the URL."
    )


def broke_off(where: str, unread: str = "") -> ServerFailure:
    """The failure for a stream that ended in the middle. ``unread``: what it sent that was not understood."""
    words = quoted(unread) if unread else ""
    return BrokenOff(
        f"{where} ended the answer in the middle{f': {words}' if words else '.'}",
        "Ask again; the next question connects anew. Is the server still running?",
    )


def no_answer(where: str, why: str, tools: Iterable[str], unshown: Iterable[str], thought: bool) -> ServerFailure:
    """The failure for an answer that came to its end without any text. ``why``: the server's finish reason."""
    called, kinds = list(tools), ", ".join(unshown)
    if called:
        named = " ".join(filter(None, called))
        return ServerFailure(
            f"The model called {f'the tool {named}' if named else 'a tool'} in the place of an answer.",
            "This chat has no tools: ask for an answer in words, or look which ones the server adds.",
        )
    if kinds:
        return ServerFailure(f"The answer is {kinds}, which can't be shown here.", "Ask for text.")
    if thought:
        return ServerFailure(
            f"The model thought, and gave no answer{': it was cut off' if why in CUT else ''}.",
            "Allow more with --max-new-tokens, or switch thinking off where the server can.",
        )
    return ServerFailure(f"{where} sent an empty answer.", "Ask again, or in other words; its log may say more.")


def unread_alone(where: str, unread: str) -> ServerFailure:
    """The failure for an answer of which nothing was understood."""
    return ServerFailure(
        f"{where} sent nothing that this chat understands: {quoted(unread)}",
        "Is it an OpenAI-compatible server? Look at the URL, or for a newer dflash-chat.",
    )


def stopped_there(where: str) -> ServerFailure:
    return ServerFailure(
        f"{where} stopped this answer before its end.",
        "Ask again; the next question connects anew. Is the server still running?",
    )


def filtered(where: str, why: str) -> ServerFailure:
    return ServerFailure(
        f"A filter of {where} ended the answer ({sentence(why).rstrip('.')}).", "Ask in other words, or another model."
    )
