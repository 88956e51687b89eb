"""Goes from a GGUF's name to its file: on this machine, or on the hub, where the file that suits the memory is chosen
and fetched. ``hub/name-GGUF`` leaves the choice to us; ``hub/name-GGUF:Q4_K_M`` and ``hub/name-GGUF:file.gguf`` make
it."""

from __future__ import annotations

import os
import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from ..errors import DeviceFailure, Option, WeightsFailure
from .environment import require_settings
from .fetching import Fetching

if TYPE_CHECKING:
    from .blobs import RemoteFile

SUFFIX = ".gguf"
MOST_LISTED = 16
MARGIN, SPARE = 1.05, 1 << 30
"""What a model takes beyond its file's size, mostly for caches: a factor, and bytes."""
COMPANION_PART = 0.4
"""The most that a file which drafts may have of the target's size."""

_HUB_NAME = re.compile(r"(?P<repository>[\w.-]+/[\w.-]+)(?::(?P<file>.+))?")
_SHARD = re.compile(r"-(\d{5})-of-(\d{5})$")
_TAG = re.compile(r"(?:^|[-._/])((?:UD-)?(?:I?Q\d\w*|BF16|F16|F32|MXFP4\w*))(?=$|[-.])", re.IGNORECASE)
_NO_MODEL = re.compile(r"mmproj|imatrix", re.IGNORECASE)
_BEST = ("qat.*q4_0", "q4_k_m", "q4_k", "q4_0", "i?q4|mxfp4", "q5", "q6", "q8", "i?q3", "i?q2|iq1", "f16|bf16", "")
"""Patterns of quantisations, best first. Four bits lose little, and every token reads all of them; a model that was
trained for them loses nothing."""

IsCompanion = Callable[[str], bool]
"""Whether a file's name says that it drafts for another."""


@dataclass(frozen=True, slots=True)
class GgufFile:
    """A model of a repository: one file, or several parts."""

    name: str
    """The name of the first part."""
    parts: tuple[str, ...]
    num_bytes: int

    @property
    def stem(self) -> str:
        return _SHARD.sub("", self.name[: -len(SUFFIX)])

    @property
    def tag(self) -> str:
        """The quantisation in the name, such as ``Q4_K_M``; empty where it has none."""
        match = _TAG.search(self.stem)
        return match[1] if match else ""

    @property
    def model(self) -> str:
        """The name without the quantisation."""
        return _TAG.sub("", self.stem.rpartition("/")[2])


def is_gguf(name: str | None) -> bool:
    """Whether a model's name means a GGUF: a file, or a repository of such files on the hub."""
    if name is None or os.path.isdir(name):  # not Path's, which raises for a name that is too long
        return False
    match = _HUB_NAME.fullmatch(name)
    return name.lower().endswith(SUFFIX) or (match is not None and "gguf" in match["repository"].lower())


def named_file(name: str) -> Path | None:
    """The file on this machine that a GGUF's name means, whether it exists or not; None for one on the hub."""
    path, match = Path(name).expanduser(), _HUB_NAME.fullmatch(name)
    local = path.exists() or match is None or (match["file"] is None and name.lower().endswith(SUFFIX))
    return path if local else None


def find_gguf(name: str, memory: int, is_companion: IsCompanion, fetching: Fetching) -> tuple[Path, tuple[str, ...]]:
    """The file that a name means, fetched where it is missing, and remarks on how it was chosen. A file of the
    repository that drafts is fetched along. ``memory``: bytes that a model may take. Raises an ``EngineFailure`` when
    no file, or several, could be meant."""
    path, match = named_file(name), _HUB_NAME.fullmatch(name)
    if path is not None:
        return path, ()
    assert match is not None
    repository, wanted = match["repository"], match["file"]
    here = _here(repository, wanted, is_companion)
    if here is not None and not fetching.refresh:
        return here, ()
    return _fetch(repository, wanted, memory, is_companion, fetching)


def choose(
    repository: str, files: Sequence[GgufFile], wanted: str | None, memory: int
) -> tuple[GgufFile, tuple[str, ...]]:
    """The file of a repository that is meant, and remarks on the choice."""
    if wanted is not None:
        return _named(repository, files, wanted), ()
    if not files:
        raise WeightsFailure(f"{repository} has no GGUF files.", "Name a repository that has.")
    fitting = [file for file in files if file.num_bytes * MARGIN + SPARE <= memory]
    if not fitting:
        smallest = min(files, key=lambda file: file.num_bytes)
        raise DeviceFailure(
            f"No file of {repository} fits into the {memory / 1e9:.1f} GB that are free; the smallest,"
            f" {smallest.name}, has {smallest.num_bytes / 1e9:.1f} GB.",
            _list(repository, files),
        )
    rank = min(_rank(repository, file) for file in fitting)
    best = [file for file in fitting if _rank(repository, file) == rank]
    if len({file.model for file in best}) > 1:
        raise WeightsFailure(f"{repository} holds several models.", _list(repository, files))
    chosen = max(best, key=lambda file: file.num_bytes)
    others = f" of {len(files)} files; another: {repository}:FILE" if len(files) > 1 else ""
    return chosen, (f"{chosen.name}, {chosen.num_bytes / 1e9:.1f} GB{others}",)


def companion_of(target: GgufFile, files: Iterable[GgufFile], memory: int) -> GgufFile | None:
    """The file to draft with, among those whose names say that they draft; None for none. DFlash comes first, which
    drafts a whole block at once."""
    room = min(memory - target.num_bytes * MARGIN - SPARE, target.num_bytes * COMPANION_PART)
    small = [file for file in files if file.num_bytes <= room]

    def order(file: GgufFile) -> tuple[bool, bool, int]:
        return "dflash" not in file.name.lower(), file.tag.upper() != "Q8_0", file.num_bytes

    return min(small, key=order, default=None)


def grouped(sizes: Mapping[str, int]) -> list[GgufFile]:
    """The models among a repository's files, each with all of its parts."""
    parts: dict[str, list[str]] = {}
    for name in sorted(sizes):
        if name.lower().endswith(SUFFIX) and not _NO_MODEL.search(name):
            parts.setdefault(_SHARD.sub("", name[: -len(SUFFIX)]), []).append(name)
    return [GgufFile(names[0], tuple(names), sum(sizes[name] for name in names)) for names in parts.values()]


def _named(repository: str, files: Sequence[GgufFile], wanted: str) -> GgufFile:
    exact = [file for file in files if wanted in file.parts or wanted.lower() == file.tag.lower()]
    matching = exact or [file for file in files if wanted.lower() in file.name.lower()]
    if len(matching) == 1:
        return matching[0]
    if not matching:
        raise WeightsFailure(f"{repository} has no GGUF file {wanted}.", _list(repository, files))
    raise WeightsFailure(
        f"{len(matching)} files of {repository} could be meant by {wanted}.", _list(repository, matching)
    )


def _rank(repository: str, file: GgufFile) -> int:
    name = ("qat " if "qat" in repository.lower() else "") + file.stem.lower()
    return next(rank for rank, pattern in enumerate(_BEST) if re.search(pattern, name))


def _list(repository: str, files: Sequence[GgufFile]) -> str:
    shown = sorted(files, key=lambda file: file.num_bytes)[:MOST_LISTED]
    lines = [f"  {repository}:{file.name}   {file.num_bytes / 1e9:.1f} GB" for file in shown]
    more = [f"  and {len(files) - len(shown)} more"] if len(files) > len(shown) else []
    return "\n".join(["Name one of:", *lines, *more])


def _here(repository: str, wanted: str | None, is_companion: IsCompanion) -> Path | None:
    """The file that is meant, where the cache holds it and no other can be meant; otherwise None."""
    folder = _snapshot(repository)
    if folder is None:
        return None
    sizes = {str(path.relative_to(folder)): path.stat().st_size for path in folder.rglob(f"*{SUFFIX}") if path.exists()}
    files = [file for file in grouped(sizes) if wanted is not None or not is_companion(file.name)]
    try:
        chosen = _named(repository, files, wanted) if wanted is not None else files[0] if len(files) == 1 else None
    except WeightsFailure:
        return None
    return None if chosen is None or not _whole(chosen) else folder / chosen.name


def _whole(file: GgufFile) -> bool:
    match = _SHARD.search(file.name[: -len(SUFFIX)])
    return match is None or int(match[2]) == len(file.parts)


def _snapshot(repository: str) -> Path | None:
    """The cached files of a repository's main branch; None where there are none."""
    require_settings()
    from .blobs import storage

    store = storage(repository)
    try:
        return store / "snapshots" / (store / "refs" / "main").read_text().strip()
    except OSError:
        return None


def _fetch(
    repository: str, wanted: str | None, memory: int, is_companion: IsCompanion, fetching: Fetching
) -> tuple[Path, tuple[str, ...]]:
    require_settings()
    from .download import fetch, is_offline, list_files
    from .failures import explained

    if fetching.offline or is_offline():
        what = repository if wanted is None else f"{repository}:{wanted}"
        raise WeightsFailure(
            f"{what} is not on this machine, and offline mode forbids to fetch it.",
            ("Ask without ", Option("offline", True), " and HF_HUB_OFFLINE."),
        )
    with explained(repository):
        listed = list_files(repository)
    files = grouped({name: file.size for name, file in listed.items()})
    models = [file for file in files if wanted is not None or not is_companion(file.name)]
    chosen, remarks = choose(repository, models, wanted, memory)
    companion = companion_of(chosen, [file for file in files if is_companion(file.name) and file != chosen], memory)
    parts = [*chosen.parts, *(companion.parts if companion is not None else ())]
    wholes = _Files(repository, [listed[name] for name in parts])
    fetch([wholes], fetching)
    return wholes.folder / chosen.name, remarks


class _Files:
    """Some files of a repository."""

    def __init__(self, name: str, files: list[RemoteFile]) -> None:
        self.name = name
        self._files = files
        self.folder = Path()
        """Where the files lie, once they were fetched."""

    def wanted(self) -> list[RemoteFile]:
        return self._files

    def finish(self) -> None:
        require_settings()
        from huggingface_hub import hf_hub_download

        from .blobs import TIMEOUT
        from .failures import explained

        first = self._files[0].name
        with explained(self.name):
            path = Path(hf_hub_download(self.name, first, etag_timeout=TIMEOUT))
        self.folder = path.parents[len(Path(first).parts) - 1]
