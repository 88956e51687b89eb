"""Drafters that were made with this program, for published targets that had none: in a clone they lie in
``engine/drafters``, elsewhere in a package of their own. ``python -m engine.hub.own_drafters FOLDER`` packs one.

Their weights are kept a third smaller, to the bit: the upper bytes of bf16 numbers are much alike, the lower ones can't
be compressed, so each half is compressed by itself. Once unpacked they stay in the cache."""

from __future__ import annotations

import lzma
import shutil
import sys
from collections.abc import Callable
from contextlib import suppress
from hashlib import sha256
from importlib.util import find_spec
from pathlib import Path
from tempfile import TemporaryDirectory

from ..commands import NO_DRAFTER
from ..errors import Option, WeightsFailure
from ..files.cache_folder import cache_folder
from ..files.headers import damaged
from ..files.shards import SINGLE_FILE
from ..models.registry import FAMILIES

HERE = Path(__file__).parents[1] / "drafters"
PACKED = f"{SINGLE_FILE}.halves.xz"
"""The file of packed weights: the even bytes of the original file, then the odd ones."""
PACKAGES = {pair.drafter: pair.drafter_package for family in FAMILIES for pair in family.pairs if pair.drafter_package}
"""The package that carries each drafter, by the drafter's name."""


def _kept_in(name: str) -> Path:
    """The folder of a drafter: in a clone, else in its package, else where a clone would have it."""
    spec = None if (HERE / name).is_dir() else find_spec(PACKAGES[name])
    places = [] if spec is None else list(spec.submodule_search_locations or ())
    return Path(places[0], name) if places else HERE / name


OWN_DRAFTERS = {name: _kept_in(name) for name in PACKAGES}
"""Folders of config and packed weights, which need not be fetched. The folder of one that isn't installed doesn't
exist."""


def is_installed(name: str) -> bool:
    """Whether a drafter's weights are on this machine, packed or not."""
    return any((OWN_DRAFTERS[name] / file).is_file() for file in (SINGLE_FILE, PACKED))


def own_drafter(name: str) -> Path:
    """The drafter's folder in the form in which checkpoints are published. Raises ``WeightsFailure`` where it isn't
    installed, is damaged, or can't be unpacked."""
    source = OWN_DRAFTERS[name]
    if (source / SINGLE_FILE).is_file():
        return source
    if not is_installed(name):
        package = PACKAGES[name].replace("_", "-")
        hint = (f"pip install {package}   (", Option("drafter", NO_DRAFTER), " goes without a drafter)")
        raise WeightsFailure(f"The drafter {name} is not installed.", hint)
    status = (source / PACKED).stat()
    state = sha256(f"{source}\0{status.st_size}\0{status.st_mtime_ns}".encode()).hexdigest()[:16]
    folder = cache_folder("models") / f"{name}-{state}"
    if not folder.is_dir():
        made_whole(folder, lambda target: _unpack(source, target))
    return folder


def made_whole(folder: Path, fill: Callable[[Path], None]) -> None:
    """Makes a folder of the cache appear whole or not at all, since another start may make the same: ``fill`` writes
    into a temporary one, which is then renamed. Raises ``WeightsFailure`` where that can't be written."""
    try:
        folder.parent.mkdir(parents=True, exist_ok=True)
        with TemporaryDirectory(dir=folder.parent, ignore_cleanup_errors=True) as temporary:
            fill(Path(temporary))
            with suppress(OSError):
                Path(temporary).rename(folder)
    except OSError as error:
        raise WeightsFailure(
            f"The cache {folder.parent} can't be written: {error.strerror or error}.",
            "Make room there, or set XDG_CACHE_HOME to a folder that you may write to.",
        ) from None


def _unpack(source: Path, target: Path) -> None:
    packed = source / PACKED
    try:
        halves = lzma.decompress(packed.read_bytes())
    except (lzma.LZMAError, EOFError) as error:
        raise damaged(packed, str(error) or "it ends early") from None
    whole, even = bytearray(len(halves)), (len(halves) + 1) // 2
    whole[0::2], whole[1::2] = halves[:even], halves[even:]
    (target / SINGLE_FILE).write_bytes(whole)
    shutil.copy(source / "config.json", target)


def pack(folder: Path) -> Path:
    """Replaces the weights in a folder by packed ones; returns the file."""
    data = (folder / SINGLE_FILE).read_bytes()
    (folder / PACKED).write_bytes(lzma.compress(data[0::2] + data[1::2]))
    (folder / SINGLE_FILE).unlink()
    return folder / PACKED


if __name__ == "__main__":
    print(pack(Path(sys.argv[1])))
