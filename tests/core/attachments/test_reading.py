"""What can go with a question, and in which words everything else is refused: at once, whatever a path leads to."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from dflash_tui.core.attachments.attachment import Attachment, one_line, with_files, without_files
from dflash_tui.core.attachments.attachment_reader import (
    MAX_FILES,
    AttachmentError,
    AttachmentReader,
    checked,
    read_file,
)
from dflash_tui.core.text.fences import find_blocks
from dflash_tui.core.text.harmless import is_harmless


def no_tokenizer(_text: str) -> int | None:
    return None


@pytest.mark.parametrize("data", [b"plain\n", b"", "Grüße 😀".encode(), b"\xef\xbb\xbfmark", "wide".encode("utf-16")])
def test_texts(tmp_path: Path, data: bytes) -> None:
    path = tmp_path / "text"
    path.write_bytes(data)
    wide = data.startswith((b"\xff\xfe", b"\xfe\xff"))
    assert read_file(path).text == (data.decode("utf-16") if wide else data.decode("utf-8-sig"))


@pytest.mark.parametrize(
    ("make", "words"),
    [
        (lambda path: path.mkdir(), "is a folder"),
        (lambda path: os.mkfifo(path), "a pipe or a device"),
        (lambda path: path.write_bytes(b"a\0b"), "binary"),
        (lambda path: path.write_bytes(b"\x89PNG\r\n\x1a\n"), "a picture"),
        (lambda path: path.write_bytes(b"%PDF-1.7"), "a PDF"),
        (lambda path: path.write_bytes(b"\xfe\xfe\xff"), "no UTF-8"),
        (lambda path: path.write_bytes(b"caf\xe9"), "no UTF-8"),
        (lambda path: path.symlink_to(path), "in a circle"),
        (lambda path: path.symlink_to("gone"), "There is no file"),
        (lambda path: path.symlink_to("/dev/zero"), "a pipe or a device"),
        (lambda path: path.symlink_to("/proc/self/mem"), "can't be read"),
        (lambda path: os.truncate(os.open(path, os.O_CREAT | os.O_WRONLY), 2 << 30), "2.1 GB"),
        (lambda path: None, "There is no file"),
    ],
)
def test_what_is_refused(tmp_path: Path, make: object, words: str) -> None:
    assert callable(make)
    path = tmp_path / "strange \x1b[31m\u202e\nname"
    make(path)
    with pytest.raises(AttachmentError, match=words) as caught:
        read_file(path)
    assert caught.value.hint and is_harmless(str(caught.value)) and "\n" not in str(caught.value)


@pytest.mark.parametrize("name", ["a\0b", "x" * 5000, "~nobody-such/x", "a/" * 3000])
def test_paths_that_are_none(name: str) -> None:
    with pytest.raises(AttachmentError):
        read_file(Path(name))


@pytest.mark.skipif(os.geteuid() == 0, reason="root may read everything")
def test_a_file_that_may_not_be_read(tmp_path: Path) -> None:
    path = tmp_path / "secret"
    path.write_text("x")
    path.chmod(0)
    with pytest.raises(AttachmentError, match="permission denied"):
        read_file(path)


def test_nothing_in_a_file_ends_its_fence() -> None:
    text = "```python\nx\n```\n`````\n# not a heading of mine"
    prompt = with_files("What is it?", [Attachment("a.md", text), Attachment("empty", "")])
    first, second = find_blocks(prompt)
    assert (first.content, second.content) == (f"{text}\n", "")
    assert prompt.endswith("\n\nWhat is it?")


def test_a_recording_shows_the_question_and_folds_its_files() -> None:
    files = (Attachment("a.md", "```\nx\n```\n"), Attachment("empty", ""), Attachment("b.txt", "no newline"))
    question, found = without_files(with_files("File x:\nWhat is it?", files))
    assert question == "File x:\nWhat is it?"
    assert [(file.name, file.text.rstrip("\n")) for file in found] == [(f.name, f.text.rstrip("\n")) for f in files]
    assert without_files("File a.txt:\n```\nopen") == ("File a.txt:\n```\nopen", ())


def test_names_are_one_harmless_line() -> None:
    name = one_line("a\nb\x1b]0;x\x07`\u202e" + "long" * 100)
    assert is_harmless(name) and "\n" not in name and "`" not in name and len(name) <= 120


def test_tokens_against_the_context() -> None:
    file = Attachment("big.txt", "word " * 1000)
    assert checked([file, file], 5000, lambda text: 1000) == (Attachment("big.txt", file.text, 1000),)
    with pytest.raises(AttachmentError, match=r"big.txt has 1,000 tokens, and the context holds 1,000"):
        checked([file], 1000, lambda text: 1000)
    with pytest.raises(AttachmentError, match="about 1,250 tokens"):
        checked([file], 1200, no_tokenizer)
    assert checked([file], 0, no_tokenizer)[0].num_tokens is None, "nobody knows what fits"
    with pytest.raises(AttachmentError, match="too many"):
        checked([Attachment("x", str(n)) for n in range(MAX_FILES + 1)], 0, no_tokenizer)


def test_what_is_obviously_too_long_is_not_counted() -> None:
    asked: list[str] = []

    def count(text: str) -> int:
        asked.append(text)
        return len(text)

    with pytest.raises(AttachmentError):
        checked([Attachment("x", "word " * 100_000)], 100, count)
    assert not asked


def test_a_reader_reads_again_what_has_changed(tmp_path: Path) -> None:
    path, counts = tmp_path / "a.txt", list[str]()

    def count(text: str) -> int:
        counts.append(text)
        return 7

    reader = AttachmentReader(count)
    for text in ("one", "one", "another"):
        if not path.exists() or path.read_text() != text:
            path.write_text(text)
        (file,) = reader.counted([reader.read(path, "a.txt")], 100)
        assert (file.text, file.num_tokens) == (text, 7)
    assert counts == ["one", "another"]
    path.unlink()
    with pytest.raises(AttachmentError):
        reader.read(path, "a.txt")
