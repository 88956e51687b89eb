"""Reuses a prefix: what the KV caches hold of a conversation need not be run again in its next turn."""

from __future__ import annotations

from collections.abc import Sequence

from ..speculation.lookup import num_agreed
from .cache import Cache, Snapshot

MOST_SNAPSHOTS = 8
"""The most snapshots that are kept."""
SPARE_BYTES = 256 * 2**20
"""Bytes that snapshots may take beyond the one that every memory plan counts: large models keep that one, the bundled
pair all."""


class Prefix:
    """The text of one conversation in the target's cache and perhaps the drafter's, which may hold less. Along it lie
    snapshots, where earlier turns began: going back to one of them, to ask it otherwise, runs only what is new."""

    def __init__(self, target: Cache, drafter: Cache | None):
        self.tokens: list[int] = []
        """The token ids that the target's cache holds."""
        self.snapshots: list[dict[Cache, Snapshot]] = []
        """Snapshots of ``tokens``, those of shorter prefixes first."""
        self._target = target
        self.caches = [target] if drafter is None else [target, drafter]
        room = SPARE_BYTES // max(sum(cache.nbytes for cache in self.caches), 1)
        self._most = min(max(room, 1), MOST_SNAPSHOTS)

    def reuse(self, prompt: Sequence[int], caches: Sequence[Cache]) -> int:
        """Takes ``caches`` back to the longest prefix of the prompt that all can rewind to, else to the longest that is
        remembered; returns its length. At least the prompt's last token is left to run."""
        same = num_agreed(self.tokens, prompt[:-1])
        length = min(same, *(cache.length for cache in caches))
        if all(cache.can_rewind_to(length) for cache in caches):
            self._rewind(length)
        elif (shots := self._remembered(caches, same)) is not None:
            for cache in caches:
                cache.restore(shots[cache])
            length = shots[self._target].length
            self._rewind(length)
        else:
            length = 0
            self.clear()
        return length

    def remember(self, caches: Sequence[Cache], length: int) -> None:
        """Snapshots the caches as of ``length``, where the next turn's prompt will part from this one's. Where there
        are too many snapshots, the one goes between whose neighbours the fewest tokens lie."""
        others = [shots for shots in self.snapshots if shots[self._target].length != length]
        while len(others) >= self._most:
            starts = [0, *(shots[self._target].length for shots in others), length]
            gaps = [after - before for before, after in zip(starts, starts[2:], strict=False)]
            del others[gaps.index(min(gaps))]
        self.snapshots = [*others, {cache: cache.snapshot(length) for cache in caches}]

    def _remembered(self, caches: Sequence[Cache], same: int) -> dict[Cache, Snapshot] | None:
        """The longest snapshot that all of ``caches`` have within the first ``same`` tokens."""
        fits = (
            shots
            for shots in reversed(self.snapshots)
            if all(cache in shots and shots[cache].length <= same for cache in caches)
        )
        return next(fits, None)

    def commit(self, ids: Sequence[int]) -> None:
        """Keeps the first rows of the target's last pass: exactly those of ``ids``."""
        self.tokens.extend(ids)
        self._target.commit(len(self.tokens))

    def note_rows_by_kernels(self, ids: Sequence[int], written: int) -> None:
        """Notes that kernels ran rows of the target up to ``written`` and committed those of ``ids`` by themselves."""
        self.tokens.extend(ids)
        self._target.note_rows_by_kernels(len(self.tokens), written)

    def set_length_for_timing(self, ids: Sequence[int]) -> None:
        """For measuring: takes this text to have been run, whatever the layers hold, and moves the caches' cursors
        behind it."""
        self.clear()
        self.tokens.extend(ids)
        for cache in self.caches:
            cache.set_length_for_timing(len(ids))

    def clear(self) -> None:
        """Forgets the conversation."""
        self.snapshots.clear()
        self.tokens.clear()
        for cache in self.caches:
            cache.clear()

    def _rewind(self, length: int) -> None:
        self.snapshots = [shots for shots in self.snapshots if shots[self._target].length <= length]
        for cache in self.caches:
            if cache.length > length:
                if cache.can_rewind_to(length):
                    cache.rewind(length)
                else:
                    cache.clear()
        del self.tokens[length:]
