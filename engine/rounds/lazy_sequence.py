"""Sequences whose items are made when somebody asks for them."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Sequence
from typing import TypeVar, overload

Item = TypeVar("Item", covariant=True)


class LazySequence(Sequence[Item]):
    """A sequence that holds its items in fewer bytes than they take: a subclass has a length, and makes the item at a
    place. Slices are lists."""

    __slots__ = ()

    @abstractmethod
    def item_at(self, index: int) -> Item:
        """The item at ``index``, counted from 0 and below the length."""

    @overload
    def __getitem__(self, index: int) -> Item: ...

    @overload
    def __getitem__(self, index: slice) -> list[Item]: ...

    def __getitem__(self, index: int | slice) -> Item | list[Item]:
        places = range(len(self))[index]
        return self.item_at(places) if isinstance(places, int) else [self.item_at(index) for index in places]
