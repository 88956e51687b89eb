"""Headers of GGUF files: what is read of them, and what is said of damaged ones."""

from __future__ import annotations

from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from engine.errors import WeightsFailure
from engine.files.gguf_header import read_header
from tests.llamacpp.headers import write_gguf
from tests.pace import examples


def test_what_a_header_says(tmp_path: Path) -> None:
    header = read_header(
        write_gguf(tmp_path / "some-model-Q4_K_M.gguf", vocabulary=5000, attention__head_count_kv=[2, 1])
    )
    assert (header.architecture, header.name, header.vocabulary) == ("llama", "some-model-Q4_K_M", 5000)
    assert (header.count("context_length"), header.of("attention.head_count_kv")) == (4096, [2, 1])
    assert header.tensors == {"output_norm.weight"}


def test_a_file_cut_anywhere_is_told(tmp_path: Path) -> None:
    whole = write_gguf(tmp_path / "whole.gguf").read_bytes()
    cut = tmp_path / "cut.gguf"
    for length in range(len(whole)):
        cut.write_bytes(whole[:length])
        with pytest.raises(WeightsFailure) as caught:
            read_header(cut)
        assert "cut.gguf" in str(caught.value) and caught.value.hint, length
    cut.write_bytes(whole)
    read_header(cut)


@given(st.lists(st.tuples(st.integers(0, 10**6), st.integers(0, 255)), min_size=1, max_size=4))
@settings(max_examples=examples(200), suppress_health_check=[HealthCheck.function_scoped_fixture])
def test_damage_is_a_failure_with_words_or_nothing(tmp_path: Path, changes: list[tuple[int, int]]) -> None:
    path, whole = tmp_path / "damaged.gguf", tmp_path / "whole.gguf"
    data = bytearray((whole if whole.exists() else write_gguf(whole)).read_bytes())
    for place, value in changes:
        data[place % len(data)] = value
    path.write_bytes(data)
    try:
        read_header(path)
    except WeightsFailure as failure:
        assert failure.hint


def test_parts_belong_together(tmp_path: Path) -> None:
    first, second = (write_gguf(tmp_path / f"big-0000{part}-of-00002.gguf") for part in (1, 2))
    assert read_header(first).num_bytes == first.stat().st_size + second.stat().st_size
    assert read_header(first).name == "big"
    with pytest.raises(WeightsFailure, match="part 2 of 2") as caught:
        read_header(second)
    assert first.name in caught.value.hint
    second.unlink()
    with pytest.raises(WeightsFailure, match=f"no file .*{second.name}"):
        read_header(first)


@pytest.mark.parametrize(
    ("content", "words"),
    [
        (b"\x80\x02ckpt", "is no GGUF file"),
        (b"", "is cut off: it has 0 bytes"),
        (b"GGUF", "is cut off"),
        (b"GGUF\x01\0\0\0", "version 1"),
    ],
)
def test_other_files(tmp_path: Path, content: bytes, words: str) -> None:
    path = tmp_path / "other.gguf"
    path.write_bytes(content)
    with pytest.raises(WeightsFailure, match=words):
        read_header(path)
