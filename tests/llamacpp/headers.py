"""Small files of llama.cpp's that only have a header."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import gguf
import numpy as np


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
