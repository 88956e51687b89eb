"""Shares the text of an event out among the tokens that it stands for."""

from __future__ import annotations

from collections.abc import Sequence

from engine.events import EmittedToken

from ..reading import ChannelText, Logprob
from .steps import Texts


class TokenTexts:
    """Shares out the text of events among their tokens. Servers send it in one piece: each token's own text is known
    from the list of probabilities, or from an earlier event of that token alone. Where neither tells, the first of the
    unknown tokens carries it."""

    def __init__(self) -> None:
        self._known: dict[int, str] = {}
        """Texts by id, of tokens that came alone."""

    def tokens(
        self, texts: Texts, number: int, ids: Sequence[int], logprobs: Sequence[Logprob], odds: bool
    ) -> list[EmittedToken]:
        """Makes ``number`` tokens that carry the text which waits in ``texts``. ``odds``: whether to keep their
        probabilities."""
        named: list[int | None] = list(ids) if len(ids) == number else [None] * number
        odds_of = list(logprobs) if len(logprobs) == number else []
        own: list[str | None] = [each.text for each in odds_of]
        own = own or [None if name is None else self._known.get(name) for name in named]
        pieces = texts.take_all()
        if number == 1 and len(pieces) == 1 and named[0] is not None:
            self._known[named[0]] = pieces[0][1]
        carried, left = carry(pieces, own)
        texts.put(left)
        return [
            EmittedToken(name, text, "unknown", channel, odds_of[index].probability if odds_of and odds else None)
            for index, (name, (channel, text)) in enumerate(zip(named, carried, strict=True))
        ]


def carry(pieces: Sequence[ChannelText], own: Sequence[str | None]) -> tuple[list[ChannelText], list[ChannelText]]:
    """Cuts ``pieces`` into one for each token, by the tokens' ``own`` texts where those are known. Also returns what no
    token can carry, since a token's text is of one channel. A token without a text is ``control``."""
    rest, carried, end, offset = list(pieces), list[ChannelText](), 0, 0
    for share in shared("".join(text for _, text in pieces), own):
        end += len(share)
        if not rest or end == offset:
            carried.append(("control", ""))
            continue
        channel, text = rest.pop(0)
        taken = text[: end - offset]
        carried.append((channel, taken))
        offset += len(taken)
        rest = [(channel, text[len(taken) :]), *rest] if len(taken) < len(text) else rest
    return carried, rest


def shared(text: str, own: Sequence[str | None]) -> list[str]:
    """Cuts ``text`` into as many parts as there are tokens: tokens whose ``own`` text is known take it from both ends,
    and the first token between those takes what is left. Example: ``shared("abc", ["a", None, None])`` is ``["a", "bc",
    ""]``."""
    shares: list[str] = [""] * len(own)
    start, stop = 0, len(text)
    first, last = 0, len(own)
    while first < last and (own_text := own[first]) is not None and text.startswith(own_text, start, stop):
        shares[first] = own_text
        start += len(own_text)
        first += 1
    while last > first and (own_text := own[last - 1]) is not None and text.endswith(own_text, start, stop):
        shares[last - 1] = own_text
        stop -= len(own_text)
        last -= 1
    if start < stop:
        shares[min(first, len(own) - 1)] += text[start:stop]
    return shares
