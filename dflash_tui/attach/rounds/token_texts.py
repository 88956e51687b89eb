"""Shares the text of an event out among the tokens that it stands for."""

from __future__ import annotations

from collections.abc import Sequence

from engine.events import EmittedToken

from ..reading import Logprob, Piece
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
        told = list(logprobs) if len(logprobs) == number else []
        own: list[str | None] = [each.text for each in told]
        own = own or [None if name is None else self._known.get(name) for name in named]
        pieces = texts.take_all()
        if number == 1 and len(pieces) == 1 and named[0] is not None:
            self._known[named[0]] = pieces[0][1]
        carried, left = carry(pieces, own)
        texts.put(left)
        return [
            EmittedToken(name, text, "unknown", channel, told[place].probability if told and odds else None)
            for place, (name, (channel, text)) in enumerate(zip(named, carried, strict=True))
        ]


def carry(pieces: Sequence[Piece], own: Sequence[str | None]) -> tuple[list[Piece], list[Piece]]:
    """Cuts ``pieces`` into one for each token, by the tokens' ``own`` texts where those are known. Also returns what no
    token can carry, since a token's text is of one channel. A token without a text is ``control``."""
    rest, carried, end, place = list(pieces), list[Piece](), 0, 0
    for share in shared("".join(text for _, text in pieces), own):
        end += len(share)
        if not rest or end == place:
            carried.append(("control", ""))
            continue
        channel, text = rest.pop(0)
        taken = text[: end - place]
        carried.append((channel, taken))
        place += len(taken)
        rest = [(channel, text[len(taken) :]), *rest] if len(taken) < len(text) else rest
    return carried, rest


def shared(text: str, own: Sequence[str | None]) -> list[str]:
    """Cuts ``text`` into as many parts as there are tokens: tokens whose ``own`` text is known take it from both ends,
    and the first token between those takes what is left. Example: ``shared("abc", ["a", None, None])`` is ``["a", "bc",
    ""]``."""
    shares: list[str] = [""] * len(own)
    start, stop = 0, len(text)
    first, last = 0, len(own)
    while first < last and (part := own[first]) is not None and text.startswith(part, start, stop):
        shares[first] = part
        start += len(part)
        first += 1
    while last > first and (part := own[last - 1]) is not None and text.endswith(part, start, stop):
        shares[last - 1] = part
        stop -= len(part)
        last -= 1
    if start < stop:
        shares[min(first, len(own) - 1)] += text[start:stop]
    return shares
