"""Fetches the models of a pair from the hub: which files they need, whether there is room, and one progress for all."""

from __future__ import annotations

import shutil
from collections import deque
from collections.abc import Sequence
from dataclasses import dataclass
from json import JSONDecodeError
from pathlib import Path
from threading import Event, Lock
from time import monotonic
from typing import Protocol

from huggingface_hub import HfApi, constants, hf_hub_download, try_to_load_from_cache

from ..errors import WeightsFailure
from ..files.headers import UNPICKLE
from ..files.json_fields import read_json
from ..files.shards import INDEX, SINGLE_FILE, missing_weights, shard_names
from ..models.drafter_formats import is_dspine
from ..threads import NativeThread
from .blobs import TIMEOUT, RemoteFile, cache_directory, fetch_file, fetch_small_file, patient_session
from .failures import explained, no_hub
from .fetching import FetchCancelled, Fetching
from .names import names_in

CONNECTIONS = 4
"""How many files are received at a time."""

REPORT_SECONDS = 0.1
RATE_SECONDS = 10.0
"""Seconds over which a rate is averaged."""

TEXT_SUFFIXES = (".json", ".jinja", "tokenizer.model")
"""Endings of the files that loading needs beside the weights."""


@dataclass(frozen=True, slots=True)
class Repository:
    """A model on the hub at its newest revision, whose config and index of weights are on this machine."""

    name: str
    files: dict[str, RemoteFile]
    folder: Path

    @classmethod
    def open(cls, name: str) -> Repository:
        """Asks the hub for a model. Raises ``WeightsFailure``, even when it may be listed but not downloaded."""
        with explained(name):
            files = list_files(name)
            if "config.json" not in files:
                raise WeightsFailure(
                    f"{name} has no config.json: it is no checkpoint for transformers.",
                    "Name the original model, not one converted for another program.",
                )
            folder = fetch_small_file(files["config.json"]).parent
            if INDEX in files:
                fetch_small_file(files[INDEX])
        return cls(name, files, folder)

    def wanted(self) -> list[RemoteFile]:
        """The files that loading the text model needs, small ones first."""
        weights = shard_names(self.folder / INDEX) if INDEX in self.files else [SINGLE_FILE]
        absent = next((name for name in weights if name not in self.files), None)
        if absent is not None:
            if pickles := sorted(name for name in self.files if name.endswith(".bin")):
                what = f"{self.name} has its weights as pickles ({pickles[0]}) on the hub."
                raise WeightsFailure(what, f"Fetch its files into a folder, and name that. {UNPICKLE}")
            raise WeightsFailure(f"{self.name} has no {absent} on the hub.", "Name a model with safetensors weights.")
        if is_dspine(read_json(self.folder / "config.json")):  # whose second file no index names
            weights += [name for name in self.files if name.endswith(".safetensors") and "/" not in name]
        texts = [name for name in self.files if name.endswith(TEXT_SUFFIXES) and "/" not in name]
        return [self.files[name] for name in dict.fromkeys((*texts, *weights))]

    def finish(self) -> None:
        """Makes this revision the one that offline programs find, now that it is whole."""
        with explained(self.name):
            hf_hub_download(self.name, "config.json", etag_timeout=TIMEOUT)


def list_files(name: str) -> dict[str, RemoteFile]:
    """A repository's files by name, at its newest revision. Raises what the hub's client raises."""
    patient_session()
    try:
        info = HfApi().model_info(name, files_metadata=True, timeout=TIMEOUT)
    except (JSONDecodeError, UnicodeDecodeError, LookupError, TypeError, AttributeError):
        raise no_hub("it answered something else than a list of files") from None
    return {
        each.rfilename: RemoteFile(
            name, str(info.sha), each.rfilename, each.size or 0, each.lfs.sha256 if each.lfs else None, each.blob_id
        )
        for each in info.siblings or ()
    }


def is_offline() -> bool:
    """Whether ``HF_HUB_OFFLINE`` is set."""
    return bool(constants.HF_HUB_OFFLINE)


def cached_folder(name: str) -> Path | None:
    """The cached snapshot of a model's main branch; its weights may be missing."""
    with explained(name):
        config = try_to_load_from_cache(name, "config.json")
    return Path(config).parent if isinstance(config, str) else None


class Wanted(Protocol):
    """Files of a repository that belong together."""

    def wanted(self) -> list[RemoteFile]:
        """The files to fetch, small ones first."""

    def finish(self) -> None:
        """Called when all of them are on this machine."""


@dataclass(frozen=True, slots=True)
class CachedModel:
    name: str
    num_bytes: int
    whole: bool
    """Whether all its weights are here."""


def cached_models() -> list[CachedModel]:
    """The models in the cache that have, or should have, safetensors weights; unfinished downloads included."""
    models = []
    for name in names_in(cache_directory()):
        folder = cache_directory() / f"models--{name.replace('/', '--')}"
        sizes = [blob.stat().st_size for blob in (folder / "blobs").glob("*")]
        snapshot = cached_folder(name)
        whole = snapshot is not None and missing_weights(snapshot) is None
        if whole or any((folder / "blobs").glob("*.incomplete")):
            models.append(CachedModel(name, sum(sizes), whole))
    return models


def fetch(repositories: Sequence[Wanted], fetching: Fetching) -> None:
    """Fetches the missing files under one progress. Raises ``WeightsFailure``, or ``FetchCancelled`` when stopped."""
    files = [file for repository in repositories for file in repository.wanted()]
    _check_disk(sum(file.size - file.bytes_here() for file in files))
    _Transfer(files, fetching).run()
    for repository in repositories:
        repository.finish()


def free_bytes() -> int:
    """Bytes that are free on the disk of the hub's cache, which need not exist yet."""
    cache = cache_directory()
    return shutil.disk_usage(next(folder for folder in (cache, *cache.absolute().parents) if folder.exists())).free


def _check_disk(needed: int) -> None:
    free = free_bytes()
    if needed > free:
        raise WeightsFailure(
            f"The download needs {needed / 1e9:.1f} GB, and {cache_directory()} has {free / 1e9:.1f} GB free.",
            "Make room (hf cache ls shows what is there), or set HF_HOME to a folder on a larger disk.",
        )


class _Transfer:
    """Files under way: threads fetch one after the other, while the calling thread reports progress."""

    def __init__(self, files: Sequence[RemoteFile], fetching: Fetching) -> None:
        self._fetching = fetching
        self._waiting = deque(file for file in files if not file.here)
        self._total = sum(file.size for file in files)
        self._arrived = sum(file.bytes_here() for file in files)
        self._rate = _Rate(self._arrived)
        self._counting = Lock()
        self._stopping = Event()
        self._failures: list[Exception] = []

    def run(self) -> None:
        # Daemons: a connection that hangs must not keep the program from ending.
        threads = [NativeThread(self._work, "download") for _ in range(CONNECTIONS)]
        for thread in threads:
            thread.start()
        try:
            for thread in threads:
                while thread.is_alive():
                    thread.join(REPORT_SECONDS)
                    self._report()
        finally:
            self._stopping.set()
        if self._failures:
            raise self._failures[0]  # the first failure is the cause of the others

    def _report(self) -> None:
        if self._fetching.cancelled():
            raise FetchCancelled
        self._fetching.progress(self._arrived, self._total, self._rate.update(self._arrived))

    def _work(self) -> None:
        while not self._stopping.is_set():
            try:
                file = self._waiting.popleft()
            except IndexError:
                return
            try:
                with explained(file.repository):
                    fetch_file(file, self._count, self._stopping)
            except Exception as error:
                self._failures.append(error)
                self._stopping.set()

    def _count(self, num_bytes: int) -> None:
        with self._counting:
            self._arrived += num_bytes


class _Rate:
    """Bytes per second over the last seconds."""

    def __init__(self, arrived: int) -> None:
        self._marks = deque([(monotonic(), arrived)])

    def update(self, arrived: int) -> float:
        now = monotonic()
        self._marks.append((now, arrived))
        while now - self._marks[0][0] > RATE_SECONDS and len(self._marks) > 2:
            self._marks.popleft()
        then, before = self._marks[0]
        return max(0.0, (arrived - before) / (now - then)) if now > then else 0.0
