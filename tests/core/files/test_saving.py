from __future__ import annotations

import errno
import os
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from dflash_tui.core.files.saving import SavingError, save_block
from dflash_tui.core.text.fences import CodeBlock
from tests.pace import examples


def block(content: str, filename: str | None = "index.html") -> CodeBlock:
    return CodeBlock(3, "html", "html", filename, content, closed=True)


def files(directory: Path) -> list[str]:
    return sorted(str(path.relative_to(directory)) for path in directory.rglob("*") if not path.is_dir())


def test_bytes_are_verbatim_and_the_directory_is_created(tmp_path: Path) -> None:
    content = "<p>é😀\r\n\tno newline at the end"
    path = save_block(block(content), tmp_path / "a" / "b")
    assert path == tmp_path / "a" / "b" / "index.html"
    assert path.read_bytes() == content.encode()
    assert files(tmp_path) == ["a/b/index.html"]


def test_nothing_is_overwritten_and_the_same_bytes_are_kept_once(tmp_path: Path) -> None:
    paths = [save_block(block(content), tmp_path).name for content in ("one", "two", "one", "two", "three")]
    assert paths == ["index.html", "index-2.html", "index.html", "index-2.html", "index-3.html"]
    assert {name: (tmp_path / name).read_text() for name in files(tmp_path)} == {
        "index.html": "one",
        "index-2.html": "two",
        "index-3.html": "three",
    }


def test_a_file_is_readable_as_the_umask_says(tmp_path: Path) -> None:
    mask = os.umask(0o022)
    try:
        assert save_block(block("x"), tmp_path).stat().st_mode & 0o777 == 0o644
    finally:
        os.umask(mask)


@pytest.mark.parametrize(
    "name",
    ["../x", "a/../../x", "/etc/x", "..", ".", "", "a\\..\\..\\x", "C:\\x", "C:/x", "a\nb", "a\0b", "..\\x", "//x"],
)
def test_names_that_lead_out_are_refused(tmp_path: Path, name: str) -> None:
    inside = tmp_path / "out"
    with pytest.raises(SavingError) as caught:
        save_block(block("x"), inside, filename=name or "/")
    assert caught.value.hint
    assert files(tmp_path) == []


@pytest.mark.parametrize(
    ("name", "saved"),
    [
        ("/app/main.py", "main.py"),
        ("../../lib/x.js", "x.js"),
        ("C:\\Users\\me\\x.py", "x.py"),
        ("~/x.py", "x.py"),
        ("~root/x.py", "x.py"),
        ("a\0b.py", "ab.py"),
        ("..", "block-3.txt"),
        ("/", "block-3.txt"),
        ("/etc/.html", "block-3.html"),
        ("/{.html", "block-3.html"),
        (f"{'a' * 300}.py", f"{'a' * 60}.py"),
        ("link/x.py", "x.py"),
        ("taken/x.py", "x.py"),
    ],
)
def test_a_name_that_a_model_chose_and_that_can_not_be_had(tmp_path: Path, name: str, saved: str) -> None:
    inside = tmp_path / "out"
    inside.mkdir()
    (inside / "link").symlink_to(tmp_path)
    (inside / "taken").write_text("a file")
    path = save_block(block("x", name), inside)
    assert path == inside / saved and path.read_text() == "x"
    assert files(tmp_path) == sorted([f"out/{saved}", "out/taken"])


_path_parts = st.sampled_from(["..", ".", "/", "\\", "a", "link", "b.html", "~", " ", "\n", "C:"])


@given(parts=st.lists(_path_parts, min_size=1, max_size=6))
@settings(suppress_health_check=[HealthCheck.function_scoped_fixture], deadline=None, max_examples=examples(200))
def test_no_name_escapes(tmp_path: Path, parts: list[str]) -> None:
    inside, outside = tmp_path / "in", tmp_path / "outside"
    inside.mkdir(exist_ok=True)
    outside.mkdir(exist_ok=True)
    if not (inside / "link").is_symlink():
        (inside / "link").symlink_to(outside)
    try:
        path = save_block(block("x", "".join(parts)), inside)
    except SavingError:
        pass
    else:
        assert path.resolve().is_relative_to(inside.resolve())
    assert files(outside) == []
    assert all(name.startswith("in/") for name in files(tmp_path))


def test_a_symbolic_link_is_neither_followed_nor_replaced(tmp_path: Path) -> None:
    outside = tmp_path / "outside.html"
    outside.write_text("mine")
    inside = tmp_path / "out"
    inside.mkdir()
    (inside / "index.html").symlink_to(outside)
    assert save_block(block("mine"), inside).name == "index-2.html"
    assert (outside.read_text(), (inside / "index.html").is_symlink()) == ("mine", True)


def test_an_unwritable_directory_is_explained(tmp_path: Path) -> None:
    (tmp_path / "out").write_text("a file, not a folder")
    with pytest.raises(SavingError, match="was not written") as caught:
        save_block(block("x"), tmp_path / "out")
    assert "another folder" in caught.value.hint


def test_a_full_disk_leaves_no_half_file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def full(_descriptor: int) -> None:
        raise OSError(errno.ENOSPC, "No space left on device")

    monkeypatch.setattr(os, "fsync", full)
    with pytest.raises(SavingError, match="No space left"):
        save_block(block("x"), tmp_path)
    assert files(tmp_path) == []


def test_file_systems_without_hard_links_get_the_file_too(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def no_links(*_: object) -> None:
        raise OSError(errno.EPERM, "Operation not permitted")

    monkeypatch.setattr(os, "link", no_links)
    assert [save_block(block(c), tmp_path).name for c in ("one", "two")] == ["index.html", "index-2.html"]
    assert (tmp_path / "index-2.html").read_text() == "two"
