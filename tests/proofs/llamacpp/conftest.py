"""The bundled pair as GGUF, converted once for all workers."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING

import pytest
from filelock import FileLock

if TYPE_CHECKING:
    from engine.lab.demo.to_gguf import PairFiles


@pytest.fixture(scope="session")
def pair(tmp_path_factory: pytest.TempPathFactory) -> PairFiles:
    from engine.lab.demo.to_gguf import PairFiles, convert_pair  # loads torch

    root = tmp_path_factory.getbasetemp()
    if "PYTEST_XDIST_WORKER" in os.environ:
        root = root.parent
    folder = root / "gguf-pair"
    with FileLock(root / "gguf-pair.lock"):
        if not folder.exists():
            convert_pair(root / "gguf-pair-in-the-making").target.parent.rename(folder)
    return PairFiles(folder / "target.gguf", folder / "drafter.gguf")
