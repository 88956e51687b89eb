"""What stands at the beginning of a checkpoint's files, and how tensors are told to be the same."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from safetensors.torch import save_file

from engine.errors import WeightsFailure
from engine.files import headers
from engine.files.headers import read_headers, same_bytes
from engine.files.shards import INDEX


def test_a_shard_that_lacks_what_the_index_names_is_damaged(tmp_path: Path) -> None:
    save_file({"a": torch.zeros(2)}, tmp_path / "1.safetensors")
    (tmp_path / INDEX).write_text(json.dumps({"weight_map": {"a": "1.safetensors", "b": "1.safetensors"}}))
    with pytest.raises(WeightsFailure, match="lacks b, which the index says it holds"):
        read_headers(tmp_path)


@settings(max_examples=20)
@given(st.integers(1, 64), st.integers(0, 63))
def test_one_byte_of_a_short_tensor_makes_another(
    tmp_path_factory: pytest.TempPathFactory, length: int, place: int
) -> None:
    folder = tmp_path_factory.mktemp("pair")
    one, other = torch.zeros(2, length, dtype=torch.uint8)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(headers, "SAMPLE", 5)
        for name, changed in (("same", False), ("other", True)):
            other[place % length] = changed
            save_file({"x": one.clone(), "y": other.clone()}, folder / f"{name}.safetensors")
            found = headers.read_file_headers(folder / f"{name}.safetensors")
            assert same_bytes(found["x"], found["y"]) is not changed
