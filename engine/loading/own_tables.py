"""Which tables a drafter brings: an embedding, a head, and the tokens among which it drafts where these are few. What
equals its target's is not held twice."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import torch
from torch import Tensor

from ..errors import Option, WeightsFailure
from ..files.headers import Headers, TensorHeader, opened, same_bytes
from ..models.family import DrafterConfig, TargetConfig
from ..models.registry import family_of
from ..models.target import TargetModel
from .layout import EMBEDDING, HEAD, PLACES, tensor_names
from .stored_format import read_files

OFFSETS, IN_USE = "d2t", "t2d"
"""Tensors of a reduced vocabulary: how far each of the drafter's tokens lies from the target's own (d2t, which must be
there), and for each of the target's whether the drafter has it (t2d, by which d2t is checked)."""
ROWS = 1 << 12
"""Rows of two tables that are compared at a time."""
ANOTHER = ("Name another drafter with ", Option("drafter"), ", or download this one again.")

IsTargets = Callable[[str, TensorHeader], bool]
"""Whether a table of this name in a drafter's files is its target's again."""


def with_own_tables(config: DrafterConfig, headers: Headers, target: TargetConfig, same: IsTargets) -> DrafterConfig:
    """The config with the tables that the drafter's files hold and its target doesn't; raises ``WeightsFailure`` for a
    vocabulary of its own whose tokens make no sense."""

    def brings(name: str) -> bool:
        return name in headers and not name.startswith(config.leftovers) and not same(name, headers[name])

    reduced = config.tables.vocabulary is not None
    if reduced or OFFSETS in headers:
        tokens = draft_tokens(config, headers, target)
        if not reduced and not torch.equal(tokens, torch.arange(len(tokens))):
            raise _refused(f"{OFFSETS} gives its tokens another order than the target's")
    tables = replace(config.tables, embedding=brings(EMBEDDING), head=reduced or brings(HEAD))
    return replace(config, tables=tables, vocab_size=config.vocab_size or target.vocab_size).with_files(headers)


def in_files(target: Path) -> IsTargets:
    """Compares with a target's files, by a sample of bytes: enough for a plan."""

    def same(name: str, header: TensorHeader) -> bool:
        files = read_files(target)
        embedding = tensor_names(family_of(files.config), files.headers)(EMBEDDING)
        heads = [begin + HEAD for begin in PLACES.values()] if name == HEAD else []
        theirs = next((files.headers[each] for each in (*heads, embedding) if each in files.headers), None)
        return theirs is not None and same_bytes(header, theirs)

    return same


def in_memory(target: TargetModel) -> IsTargets:
    """Compares with a loaded target, row by row."""

    def same(name: str, header: TensorHeader) -> bool:
        table = target.embed_tokens.weight if name == EMBEDDING else target.head
        if header.shape != tuple(table.shape):
            return False
        with opened(header.path, "pt") as file:
            rows = file.get_slice(name)
            starts = range(0, len(table), ROWS)
            return all(torch.equal(rows[at : at + ROWS].to(table), table[at : at + ROWS]) for at in starts)

    return same


def left_on_disk(config: DrafterConfig) -> tuple[str, ...]:
    """Beginnings of the names of tensors in the drafter's files that are no parameters of its modules."""
    tables = config.tables
    borrowed = (*((EMBEDDING,) if not tables.embedding else ()), *((HEAD,) if not tables.head else ()))
    return (*config.leftovers, *borrowed, OFFSETS, IN_USE)


def draft_tokens(config: DrafterConfig, headers: Headers, target: TargetConfig) -> Tensor:
    """int64 [vocabulary]: the target's id of each token that the drafter drafts among. Raises ``WeightsFailure`` unless
    they differ from one another, are in the target's vocabulary, and are those that the files say are in use."""
    count = config.tables.vocabulary or target.vocab_size
    offsets = _read(headers, OFFSETS, (count,), ("I64", "I32"))
    tokens = torch.arange(count) + offsets
    wrong = (tokens < 0) | (tokens >= target.vocab_size)
    if wrong.any():
        token = int(wrong.nonzero()[0])
        raise _refused(
            f"{OFFSETS} sends its token {token} to {int(tokens[token])}, and the target has {target.vocab_size} tokens"
        )
    if (tokens.sort().values.diff() == 0).any():
        raise _refused(f"{OFFSETS} sends two of its tokens to one of the target's")
    if IN_USE in headers:
        used = _read(headers, IN_USE, (target.vocab_size,), ("BOOL", "U8", "I8", "I32", "I64")) != 0
        if not torch.equal(used.nonzero()[:, 0], tokens.sort().values):
            raise _refused(f"{IN_USE} says that the drafter has other tokens than {OFFSETS} says")
    return tokens


def _read(headers: Headers, name: str, shape: tuple[int, ...], dtypes: tuple[str, ...]) -> Tensor:
    header = headers.get(name)
    if header is None:
        raise _refused(f"{name}, which says what its {shape[0]} tokens are, is missing")
    if header.shape != shape or header.dtype not in dtypes:
        raise _refused(f"{name} is {header}, the config asks for {dtypes[0]}{list(shape)}")
    with opened(header.path, "pt") as file:
        tensor: Tensor = file.get_tensor(name)
    return tensor.long() if header.dtype != "BOOL" else tensor


def _refused(why: str) -> WeightsFailure:
    return WeightsFailure(f"This drafter's vocabulary is damaged: {why}.", ANOTHER)
