"""[presets.NAME]: what they may say, and in which words the rest is refused."""

from __future__ import annotations

from pathlib import Path

import pytest

from dflash_tui.core.attachments.attachment_reader import AttachmentError
from dflash_tui.core.settings.config import Config, read_config
from dflash_tui.core.settings.presets import (
    PresetError,
    find_preset,
    preset_in_force,
    preset_problems,
    read_system,
)
from engine.commands import GenerationSettings


def config(folder: Path, text: str, name: str = "config.toml") -> Config:
    path = folder / name
    path.write_text(text)
    return read_config(path)


def test_a_preset_changes_what_it_says(tmp_path: Path) -> None:
    read = config(
        tmp_path, '[presets.tutor]\nsystem = "Ask back."\ntemperature = 1\nthinking = true\nno_speculation = true'
    )
    preset = find_preset("tutor", read)
    settings = preset.applied(GenerationSettings(seed=7))
    assert settings == GenerationSettings(seed=7, temperature=1, thinking=True, speculation=False)
    assert preset.holds("Ask back.", settings)
    assert not preset.holds("Other.", settings) and not preset.holds("Ask back.", GenerationSettings(seed=7))


@pytest.mark.parametrize(
    ("line", "words"),
    [
        ("temprature = 0.3", "line 2: presets.x has no setting temprature; do you mean temperature?"),
        ("block = 8", "no setting block; do you mean block_size?"),
        ('extends = "x"', "no setting extends"),
        ('temperature = "hot"', 'temperature must be a number, not "hot"'),
        ("temperature = 9", "temperature must be between 0 and 2, not 9"),
        ("temperature = nan", "temperature must be between 0 and 2"),
        ("block_size = 99", "block size must be between"),
        ('block_size = "large"', "block_size must be a whole number or"),
        ("thinking = 1", "thinking must be true or false"),
        ("top_k = true", "top_k must be a whole number"),
        ("seed = -1", "seed must be"),
        ('system = ""', "system must be text in quotes"),
        ("system = 5", "system must be text in quotes"),
        ("", "says nothing"),
    ],
)
def test_mistakes_are_told_with_their_line(tmp_path: Path, line: str, words: str) -> None:
    read = config(tmp_path, f"[presets.x]\n{line}")
    (problem,) = preset_problems("x", read.presets["x"])
    assert words in problem


@pytest.mark.parametrize("name", ["none", '" "', '"a\\u001bb"'])
def test_names_that_no_preset_can_have(tmp_path: Path, name: str) -> None:
    (read,) = config(tmp_path, f"[presets.{name}]\nseed = 1").presets.items()
    assert any("can't be a preset's name" in problem for problem in preset_problems(*read))


def test_one_that_is_not_there(tmp_path: Path) -> None:
    with pytest.raises(PresetError, match="Did you mean tutor"):
        find_preset("tuttor", config(tmp_path, "[presets.tutor]\nseed = 1"))
    with pytest.raises(PresetError, match="describes none"):
        find_preset("tutor", Config())


def test_system_prompts_in_files(tmp_path: Path) -> None:
    (tmp_path / "tutor.md").write_text("Ask back.\n")
    (tmp_path / "empty.md").write_text("\n")
    read = config(
        tmp_path, '[presets.a]\nsystem = "@tutor.md"\n[presets.b]\nsystem = "@@me"\n[presets.c]\nsystem = "@gone.md"'
    )
    assert find_preset("a", read).system == "Ask back." and find_preset("b", read).system == "@me"
    with pytest.raises(PresetError, match=r"line 6: presets.c: There is no file gone.md"):
        find_preset("c", read)
    with pytest.raises(AttachmentError, match="is empty"):
        read_system("@empty.md", tmp_path)
    with pytest.raises(AttachmentError, match=r"No file is named"):
        read_system("@", tmp_path)
    assert read_system("plain") == "plain"


def test_what_goes_on_under_a_preset_is_known_by_what_it_says(tmp_path: Path) -> None:
    read = config(
        tmp_path, '[presets.cold]\nseed = 0\n[presets.gone]\nsystem = "@gone.md"\n[presets.a]\nsystem = "Ask."'
    )
    found = preset_in_force(read, "Ask.", GenerationSettings())
    assert found is not None and found.name == "a"
    assert preset_in_force(read, None, GenerationSettings()) is None, "one without a prompt says nothing of its own"


def test_a_preset_whose_settings_were_changed_since_is_known_by_its_prompt(tmp_path: Path) -> None:
    text = '[presets.a]\nsystem = "Ask."\nseed = 1\n[presets.b]\nsystem = "Ask."\nseed = 2'
    read = config(tmp_path, text)
    names = {seed: preset_in_force(read, "Ask.", GenerationSettings(seed=seed)) for seed in (1, 2, 3)}
    assert {seed: preset and preset.name for seed, preset in names.items()} == {1: "a", 2: "b", 3: "a"}
    assert preset_in_force(read, "Tell.", GenerationSettings(seed=1)) is None
