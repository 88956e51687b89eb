"""Lists names of models that are worth offering, without asking anybody or importing the hub's library."""

from __future__ import annotations

import os
import re
from contextlib import suppress
from importlib.util import find_spec
from pathlib import Path

from ..files.cache_folder import home
from .pairs import KNOWN_PAIRS, SHORT_NAMES

_NAME = re.compile(r"(?!.*(?:--|\.\.|\.git$))\b[\w.-]+\b/\b[\w.-]{1,96}\b", re.ASCII)
"""Matches what the hub takes for a model's name."""


_PAGE = re.compile(
    r"https?://(?:www\.)?(?:huggingface\.co|hf\.co)/+([^/?#]+/[^/?#]+)(?:/tree/main)?/*(?:[?#].*)?", re.IGNORECASE
)
"""Matches the address of a model's page on the hub, as people paste it."""
NO_OWNERS = ("datasets", "spaces", "papers", "docs", "collections", "api", "settings", "blog")


def name_of_page(text: str) -> str:
    """The name of the model whose page on the hub has this address; any other text as it is."""
    page = _PAGE.fullmatch(text.strip())
    if page is None or not _NAME.fullmatch(page[1]) or page[1].split("/")[0].lower() in NO_OWNERS:
        return text
    return page[1]


def known_names() -> list[str]:
    """The targets of the published pairs, short names first."""
    return [*SHORT_NAMES, *(pair.target for pair in KNOWN_PAIRS)]


def names_at_hand() -> list[str]:
    """The models that are on this machine: those of installed packages by their short names, and the hub's."""
    installed = (each for each in SHORT_NAMES.values() if each.package and find_spec(each.package))
    return [*(each.word for each in installed), *cached_names()]


def cached_names() -> list[str]:
    """The models in the hub's cache on this machine, whole or not."""
    folder = os.environ.get("HF_HOME") or home() / ".cache" / "huggingface"
    cache = Path(os.environ.get("HF_HUB_CACHE") or Path(folder) / "hub")
    return names_in(cache)


def names_in(cache: Path) -> list[str]:
    """The models whose folders lie in a cache; a folder of another kind of name is somebody else's."""
    folders = []
    with suppress(OSError):  # of a cache that nobody may enter none is at hand
        folders = sorted(folder.name for folder in cache.glob("models--*--*"))
    names = (name.removeprefix("models--").replace("--", "/", 1) for name in folders)
    return [name for name in names if _NAME.fullmatch(name)]
