"""Reusing a prefix: what the KV caches hold of a conversation need not be run again in its next turn."""

from __future__ import annotations

from collections.abc import Sequence

from .cache import Cache, Snapshot


class Prefix:
    """The text of one conversation in the target's cache and perhaps the drafter's, which may hold less."""

    def __init__(self, target: Cache, drafter: Cache | None):
        self.tokens: list[int] = []
        """The token ids that the target's cache holds."""
        self.snapshots: dict[Cache, Snapshot] = {}
        self._target = target
        self.caches = [target] if drafter is None else [target, drafter]

    def reuse(self, prompt: Sequence[int], caches: Sequence[Cache]) -> int:
        """Takes ``caches`` back to the longest prefix of the prompt that all can rewind to, else the remembered one;
        returns its length. At least the prompt's last token is left to run."""
        same = _common_prefix(self.tokens, prompt[:-1])
        length = min(same, *(cache.length for cache in caches))
        if all(cache.can_rewind_to(length) for cache in caches):
            self._rewind(length)
        elif all(cache in self.snapshots and self.snapshots[cache].length <= same for cache in caches):
            for cache in caches:
                cache.restore(self.snapshots[cache])
            length = self.snapshots[self._target].length
            self._rewind(length)
        else:
            length = 0
            self.clear()
        return length

    def remember(self, caches: Sequence[Cache], length: int) -> None:
        """Snapshots the caches where the next turn's prompt will part from this one's: here, or a little way back."""
        self.snapshots = {cache: cache.snapshot(length) for cache in caches}

    def commit(self, ids: Sequence[int]) -> None:
        """Keeps the first rows of the target's last pass: exactly those of ``ids``."""
        self.tokens.extend(ids)
        self._target.commit(len(self.tokens))

    def follow(self, ids: Sequence[int], written: int) -> None:
        """The same behind kernels that have committed these rows, of those up to ``written``, by themselves."""
        self.tokens.extend(ids)
        self._target.follow(len(self.tokens), written)

    def pretend(self, ids: Sequence[int]) -> None:
        """For measuring: as if this text had been run, whatever the layers hold."""
        self.clear()
        self.tokens.extend(ids)
        for cache in self.caches:
            cache.pretend(len(ids))

    def clear(self) -> None:
        """Forgets the conversation."""
        self.snapshots.clear()
        self.tokens.clear()
        for cache in self.caches:
            cache.clear()

    def _rewind(self, length: int) -> None:
        self.snapshots = {cache: shot for cache, shot in self.snapshots.items() if shot.length <= length}
        for cache in self.caches:
            if cache.length > length:
                if cache.can_rewind_to(length):
                    cache.rewind(length)
                else:
                    cache.clear()
        del self.tokens[length:]


def _common_prefix(a: Sequence[int], b: Sequence[int]) -> int:
    for index, (x, y) in enumerate(zip(a, b, strict=False)):
        if x != y:
            return index
    return min(len(a), len(b))
