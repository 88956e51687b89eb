from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path

import pytest

from engine.errors import WeightsFailure
from engine.files import fingerprint as module
from engine.files.fingerprint import fingerprint, fingerprint_of_code
from engine.files.pointers import refuse_pointer


def write(folder: Path, **files: bytes) -> Path:
    folder.mkdir()
    for name, content in files.items():
        (folder / name.replace("_", ".")).write_bytes(content)
    return folder


def test_the_same_weights_have_the_same_fingerprint(tmp_path: Path) -> None:
    weights = bytes(range(256)) * 64
    first = write(tmp_path / "a", config_json=b"{}", model_safetensors=weights, notes_txt=b"one")
    second = write(tmp_path / "b", config_json=b"{}", model_safetensors=weights, notes_txt=b"two")
    assert fingerprint(first) == fingerprint(second)
    assert len(fingerprint(first)) == 16


@pytest.mark.parametrize("whole", [True, False])
@pytest.mark.parametrize(
    "changed",
    [
        {"config_json": b"{ }", "model_safetensors": bytes(20_000)},
        {"config_json": b"{}", "model_safetensors": bytes(19_999)},
        {"config_json": b"{}", "model_safetensors": bytes(19_999) + b"x"},
        {"config_json": b"{}", "other_safetensors": bytes(20_000)},
    ],
)
def test_other_weights_have_another(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, changed: dict[str, bytes], whole: bool
) -> None:
    if not whole:
        monkeypatch.setattr(module, "WHOLE_FILE", 1000)
    first = write(tmp_path / "a", config_json=b"{}", model_safetensors=bytes(20_000))
    assert fingerprint(first) != fingerprint(write(tmp_path / "b", **changed))


def test_a_large_file_is_sampled_from_its_first_byte_to_its_last(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(module, "WHOLE_FILE", 1000)
    monkeypatch.setattr(module, "SAMPLES", 4)
    monkeypatch.setattr(module, "SAMPLE", 10)
    found = set()
    for number, changed in enumerate((None, 0, 500, 1999)):
        content = bytearray(2000)
        if changed is not None:
            content[changed] = 1
        found.add(fingerprint(write(tmp_path / f"{number}", model_safetensors=bytes(content))))
    assert len(found) == 3, "the first byte and the last count, and one between two samples doesn't"


def test_code_in_a_new_subfolder_is_other_code(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "ENGINE", tmp_path)
    seen = []
    for new in ("decoder.py", "kernels/weights/int8.py", "loading/plan.py", "lab/bench/shapes.py", "tools/doctor.py"):
        path = tmp_path / new
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(new)
        seen.append(fingerprint_of_code.__wrapped__())
    assert len(set(seen)) == 3 and len(set(seen[-3:])) == 1, "each counts, but what decodes nothing"


@pytest.mark.parametrize("make", [Path.mkdir, os.mkfifo])
def test_what_is_no_file_is_refused_where_one_is_read_and_passed_over_elsewhere(
    make: Callable[[Path], object], tmp_path: Path
) -> None:
    """A pipe would keep the program waiting for ever."""
    make(tmp_path / "tokenizer.json")
    with pytest.raises(WeightsFailure, match=r"tokenizer\.json can't be read: it is (a folder|no file)\."):
        refuse_pointer(tmp_path / "tokenizer.json")
    assert fingerprint(tmp_path) == fingerprint(write(tmp_path / "nothing"))
