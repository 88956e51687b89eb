"""The bundled pair as GGUF, converted once for all workers, and small files that only have a header."""

from __future__ import annotations

import os
from pathlib import Path
from typing import TYPE_CHECKING, Any

import gguf
import numpy as np
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


def write_gguf(path: Path, architecture: str = "llama", vocabulary: int = 10, **keys: Any) -> Path:
    """A file with a header and one small tensor; dots in keys are written as two underscores."""
    writer = gguf.GGUFWriter(path, architecture)
    counts = {"block_count": 4, "embedding_length": 64, "context_length": 4096, "attention__head_count": 4} | keys
    for key, value in counts.items():
        name = f"{architecture}.{key.replace('__', '.')}"
        writer.add_array(name, value) if isinstance(value, list) else writer.add_uint32(name, value)
    if vocabulary:
        writer.add_token_list([f"t{index}" for index in range(vocabulary)])
    writer.add_tensor("output_norm.weight", np.ones(64, np.float32))
    writer.write_header_to_file()
    writer.write_kv_data_to_file()
    writer.write_tensors_to_file()
    writer.close()
    return path
