"""Tells which events of a stream are which rounds, by the server's own count of its rounds. Pure.

A server that sends one event per step may merge events when it falls behind, may step without a draft, and may cut its
last round off. All ways to match are considered at once, as bit sets; a role is given where all of them agree."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Role:
    """What an event is in every way to match: its round's ``drafted`` and ``accepted`` tokens, None where ways differ.
    Both are 0 for a step without a draft."""

    drafted: int | None
    accepted: int | None


@dataclass(frozen=True, slots=True)
class RoundCount:
    """A round as a server counts it."""

    drafted: int
    accepted: int

    @property
    def size(self) -> int:
        return self.accepted + 1


ALONE, OPEN = Role(0, 0), Role(None, None)


def by_order(sizes: Sequence[int], rounds: Sequence[RoundCount]) -> list[Role] | None:
    """A role for every event behind the first token's, from rounds in their order. ``sizes``: tokens per event, each of
    which is one step; the last may be cut off. None where no way fits."""
    total, end = len(rounds), len(sizes)
    if not end:
        return None if rounds else []
    of_size: dict[int, int] = {}
    for place, each in enumerate(rounds):
        of_size[each.size] = of_size.get(each.size, 0) | 1 << place
    fits = [of_size.get(size, 0) for size in sizes]
    if rounds and rounds[-1].size > sizes[-1]:
        fits[-1] |= 1 << (total - 1)
    ahead = [1]
    """Bit k is set where k rounds may lie before this event."""
    for size, fit in zip(sizes, fits, strict=True):
        ahead.append((ahead[-1] & fit) << 1 | (ahead[-1] if size == 1 else 0))
    behind = 1 << total
    if not ahead[end] & behind:
        return None
    roles: list[Role] = []
    for place in range(end - 1, -1, -1):
        here, fit = ahead[place], fits[place]
        drafted = here & fit & behind >> 1
        alone = sizes[place] == 1 and bool(here & behind)
        roles.append(_role(rounds, drafted, alone))
        behind = (behind >> 1 & fit) | (behind if sizes[place] == 1 else 0)
    return roles[::-1]


def _role(rounds: Sequence[RoundCount], places: int, alone: bool) -> Role:
    """The role of an event that may be any round in the bit set ``places``, or, if ``alone``, a step without a
    draft."""
    if alone:
        return OPEN if places else ALONE
    drafted, accepted = set(), set()
    while places:
        each = rounds[(places & -places).bit_length() - 1]
        drafted.add(each.drafted)
        accepted.add(each.accepted)
        places &= places - 1
    return Role(drafted.pop() if len(drafted) == 1 else None, accepted.pop() if len(accepted) == 1 else None)


def by_tokens(num_tokens: int, sizes: Sequence[int], rounds: Sequence[RoundCount]) -> list[int] | None:
    """How many tokens each round has where every step drafted, whatever events were merged. None unless rounds and
    events both fill the ``num_tokens`` behind the first token, with the last round cut off, and every event ends with a
    round."""
    left, lengths, ends = num_tokens, [], set()
    for each in rounds:
        if left <= 0:
            return None
        lengths.append(min(each.size, left))
        left -= lengths[-1]
        ends.add(num_tokens - left)
    reached = 0
    for size in sizes:
        reached += size
        if reached not in ends:
            return None
    return lengths if left == 0 and reached == num_tokens else None


def by_tally(sizes: Sequence[int], histogram: Sequence[int], drafted: int | None) -> list[Role] | None:
    """A role for every event behind the first token's, from a histogram: entry k counts the rounds that accepted k
    drafts. ``sizes`` as in :func:`by_order`; ``drafted`` is what every round drafted, None where that isn't known. None
    where the tallies differ."""
    if not sizes:
        return None if any(histogram) else []
    left = Counter({accepted: times for accepted, times in enumerate(histogram) if accepted and times})
    left.subtract(size - 1 for size in sizes[:-1] if size > 1)
    over = [accepted for accepted, times in left.items() for _ in range(times)]
    if any(times < 0 for times in left.values()) or len(over) > 1:
        return None
    if (over and over[0] < sizes[-1] - 1) or (not over and sizes[-1] > 1):
        return None
    singles, empty = sizes[:-1].count(1) + (not over), histogram[0] if histogram else 0
    if empty > singles:
        return None
    single = Role(drafted, 0) if empty == singles else OPEN if empty else ALONE
    roles = [single if size == 1 else Role(drafted, size - 1) for size in sizes]
    return [*roles[:-1], Role(drafted, over[0])] if over else roles
