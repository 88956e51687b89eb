"""Fetches files of hub repositories into the cache that all ``huggingface_hub`` programs share. Only large files are
received here: a partial one stays as ``blobs/<sha256>.incomplete`` and is resumed, and any thread can stop it; the
hub's own download does neither."""

from __future__ import annotations

import hashlib
import logging
import warnings
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from threading import Event, local
from time import monotonic
from typing import IO, Any

from filelock import FileLock, SoftFileLock, Timeout
from huggingface_hub import constants, get_session, hf_hub_download, hf_hub_url, try_to_load_from_cache
from huggingface_hub.errors import HfHubHTTPError
from huggingface_hub.file_download import repo_folder_name
from huggingface_hub.utils import (
    WeakFileLock,
    build_hf_headers,
    disable_progress_bars,
    hf_raise_for_status,
    parse_ratelimit_headers,
)

from ..errors import WeightsFailure
from .failures import KEPT, SIGN_IN, TRANSPORT_ERROR, no_hub

TIMEOUT = 10.0
"""Seconds without a byte after which a connection counts as lost."""

LONGEST_SILENCE = 30.0
"""Seconds without an answer after which the hub's client asks no more: it waits for the second up to a minute."""
_silence = local()
"""When this thread first asked, of what nobody has answered yet."""

ATTEMPTS, RETRY_SECONDS = 5, 1.0
"""How often to connect without receiving anything new, and the seconds before trying again."""

TRANSIENT_STATUS = (408, 429, 500, 502, 503, 504)
READ_SIZE = 1 << 20

# Progress bars and warnings would go to stderr, which may be the screen of a chat.
disable_progress_bars()
logging.getLogger("huggingface_hub").setLevel(logging.ERROR)
warnings.filterwarnings("ignore", "flock not supported")  # another way to lock is taken then


@dataclass(frozen=True, slots=True)
class RemoteFile:
    """One file of a repository at one revision."""

    repository: str
    revision: str
    name: str
    size: int
    sha256: str | None
    """The content's hash; None for small files, which are kept in git."""
    blob_id: str | None = None
    """By which git knows it."""

    @property
    def here(self) -> bool:
        return isinstance(try_to_load_from_cache(self.repository, self.name, revision=self.revision), str)

    @property
    def blob(self) -> Path:
        """Where the cache keeps a large file's content; snapshots link to it."""
        return storage(self.repository) / "blobs" / str(self.sha256)

    @property
    def partial(self) -> Path:
        return self.blob.with_name(f"{self.sha256}.incomplete")

    @property
    def lock(self) -> Path:
        """The file that whoever fetches this one locks, the hub's own client, too."""
        return cache_directory() / ".locks" / storage(self.repository).name / f"{self.sha256 or self.blob_id}.lock"

    def bytes_here(self) -> int:
        """How many of its bytes are on this machine and need not be fetched."""
        if self.here or (self.sha256 is not None and self.blob.exists()):
            return self.size
        return min(self.partial.stat().st_size, self.size) if self.sha256 is not None and self.partial.exists() else 0


def cache_directory() -> Path:
    return Path(constants.HF_HUB_CACHE)


def storage(repository: str) -> Path:
    """The cache's folder for one model."""
    return cache_directory() / repo_folder_name(repo_id=repository, repo_type="model")


def fetch_file(file: RemoteFile, count: Callable[[int], None], stopping: Event) -> None:
    """Fetches a file unless it is here; returns early once ``stopping`` is set, keeping what arrived. ``count`` is
    called with numbers of bytes, negative ones when some are lost. Raises what network, hub and disk raise, and
    ``WeightsFailure`` for a wrong checksum."""
    if file.sha256 is None:
        fetch_small_file(file)
        count(file.size)
        return
    if not file.blob.exists():
        _fetch_blob(file, count, stopping)
    if not stopping.is_set():
        fetch_small_file(file)  # finds the content in its place, and links the snapshot to it


def patient_session() -> Any:
    """The HTTP client that all of the hub's functions share, as far as they don't wait in silence: by themselves they
    wait as long as a busy hub asks for, an hour perhaps, and ask one that is stuck for minutes. With this the first
    raises ``WeightsFailure``, the second ``TimeoutError``."""
    session = get_session()
    vars(_silence).clear()
    for kind, hook in (("request", _refuse_long_silence), ("response", _refuse_long_waits)):
        if hook not in (hooks := session.event_hooks)[kind]:
            session.event_hooks = {**hooks, kind: [*hooks[kind], hook]}
    return session


def _refuse_long_silence(_: Any) -> None:
    silence = monotonic() - vars(_silence).setdefault("began", monotonic())
    if silence > LONGEST_SILENCE:
        raise TimeoutError(f"no answer for {silence:.0f} seconds")


def _refuse_long_waits(response: Any) -> None:
    vars(_silence).clear()
    status, wait = response.status_code, response.headers.get("Retry-After", "")
    limit = parse_ratelimit_headers(response.headers)  # the hub tells it with every answer
    if status == 429 and limit is not None and not limit.remaining:
        wait = str(limit.reset_in_seconds)
    if status in TRANSIENT_STATUS and wait.isdecimal() and int(wait) > TIMEOUT:
        raise WeightsFailure(
            f"The hub is busy, and asks for {int(wait)} seconds of patience (HTTP {status}).",
            f"Run the same command again then; {KEPT}. Whoever is signed in may ask more often: {SIGN_IN}",
        )


def fetch_small_file(file: RemoteFile) -> Path:
    """Fetches a file in one go, behind another program that fetches it; returns its place in the snapshot. Raises
    ``filelock.Timeout`` where locks are files, and one was left behind: the client by itself would wait for ever."""
    patient_session()
    if not file.here:
        file.lock.parent.mkdir(parents=True, exist_ok=True)
        _wait_for(file.lock)
    return Path(hf_hub_download(file.repository, file.name, revision=file.revision, etag_timeout=TIMEOUT))


def _wait_for(lock: Path) -> None:
    while True:
        try:
            with WeakFileLock(lock, timeout=TIMEOUT):
                return
        except Timeout:
            if not _is_held(lock):
                raise


def _is_held(lock: Path) -> bool:
    """Whether a program that runs holds a lock. Where files can't be locked nobody knows, and it is none."""
    own = FileLock(lock, timeout=0)
    try:
        with own:
            return False
    except Timeout:
        return not isinstance(own, SoftFileLock)  # which it becomes where locks are files
    except (OSError, NotImplementedError):
        return False


def _fetch_blob(file: RemoteFile, count: Callable[[int], None], stopping: Event) -> None:
    for folder in (file.lock.parent, file.blob.parent):
        folder.mkdir(parents=True, exist_ok=True)
    with WeakFileLock(file.lock, timeout=RETRY_SECONDS):
        if file.blob.exists():  # another program has just fetched it
            return
        # Unbuffered: what has arrived survives the end of this process, however it ends.
        with open(file.partial, "a+b", buffering=0) as partial:
            digest = _Receiver(file, partial, count, stopping).receive()
        if stopping.is_set():
            return
        if digest != file.sha256:
            file.partial.unlink()
            raise WeightsFailure(
                f"{file.name} of {file.repository} arrived damaged: its checksum is wrong.",
                "Run the same command again; the other files are kept.",
            )
        file.partial.replace(file.blob)


class _Receiver:
    """Appends to a partial file until it is whole, reconnecting where the connection breaks."""

    def __init__(self, file: RemoteFile, partial: IO[bytes], count: Callable[[int], None], stopping: Event) -> None:
        self._file = file
        self._partial = partial
        self._count = count
        self._stopping = stopping
        self._have = 0
        self._digest = hashlib.sha256()

    def receive(self) -> str:
        """Receives the rest of the content; returns the sha256 of all of it, or of what there is when it was
        stopped."""
        self._read_beginning()
        attempts = 0
        while self._have < self._file.size and not self._stopping.is_set():
            before, failure = self._have, None
            try:
                self._connect()
            except (TRANSPORT_ERROR, OSError) as error:
                if not _is_transient(error):
                    raise
                failure = error
            if self._have < self._file.size:
                attempts = 1 if self._have > before else attempts + 1
                if attempts >= ATTEMPTS:
                    raise failure or no_hub(f"it sent {self._have} of the {self._file.size} bytes of {self._file.name}")
                self._stopping.wait(RETRY_SECONDS)
        return self._digest.hexdigest()

    def _read_beginning(self) -> None:
        self._partial.seek(0)
        while not self._stopping.is_set() and (piece := self._partial.read(READ_SIZE)):
            self._digest.update(piece)
            self._have += len(piece)

    def _connect(self) -> None:
        """Asks for the rest and appends it. A body that ends before its announced end is an error of the HTTP library;
        one that announces another length than the file's is a login page, or a proxy's."""
        file = self._file
        headers = build_hf_headers() | {"Accept-Encoding": "identity"}
        if self._have:
            headers["Range"] = f"bytes={self._have}-"
        url = hf_hub_url(file.repository, file.name, revision=file.revision)
        with patient_session().stream("GET", url, headers=headers, timeout=TIMEOUT) as response:
            hf_raise_for_status(response)
            if self._have and response.status_code != 206:
                self._start_over()
            length = str(file.size - self._have)
            encoded = "Content-Encoding" in response.headers
            if response.status_code not in (200, 206) or not (
                encoded or response.headers.get("Content-Length", length) == length
            ):
                raise no_hub(f"it answered {response.status_code} with something else than {file.name}")
            for piece in response.iter_bytes():
                if self._stopping.is_set() or self._have > file.size:
                    return
                self._partial.write(piece)
                self._digest.update(piece)
                self._have += len(piece)
                self._count(len(piece))

    def _start_over(self) -> None:
        """Begins anew, because the server sends the whole file, whatever it was asked for."""
        self._partial.truncate(0)
        self._digest = hashlib.sha256()
        self._count(-self._have)
        self._have = 0


def _is_transient(error: Exception) -> bool:
    """Whether another attempt may help: not where the answer would be the same, nor on a full disk."""
    if isinstance(error, HfHubHTTPError):
        return error.response.status_code in TRANSIENT_STATUS
    return isinstance(error, TRANSPORT_ERROR)
