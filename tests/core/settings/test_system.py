"""System prompts, typed or in files."""

from __future__ import annotations

from pathlib import Path

import pytest

from dflash_tui.core.attachments.attachment_reader import AttachmentError
from dflash_tui.core.settings.system import read_system, typed_system


def test_system_prompts_in_files(tmp_path: Path) -> None:
    (tmp_path / "tutor.md").write_text("Ask back.\n")
    (tmp_path / "empty.md").write_text("\n")
    assert read_system(f"@{tmp_path}/tutor.md") == "Ask back." and read_system("@@me") == "@me"
    for named, words in (("empty.md", "is empty"), ("gone.md", "There is no file")):
        with pytest.raises(AttachmentError, match=words):
            read_system(f"@{tmp_path}/{named}")
    with pytest.raises(AttachmentError, match="No file is named"):
        read_system("@")
    assert read_system("plain") == typed_system("plain") == "plain" and typed_system("off") is None
