"""``[presets.NAME]`` of a configuration file: a system prompt and settings of decoding under one name, by the names of
their flags. ``system = "@tutor.md"`` reads a file beside the configuration; ``"@@..."`` begins with a plain @."""

from __future__ import annotations

import json
import os
from collections.abc import Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass, replace
from difflib import get_close_matches
from pathlib import Path
from typing import Any

from engine.commands import GenerationSettings

from ..attachments.attachment_reader import AttachmentError, read_file
from ..failures import Failure
from .config import PRESETS_TABLE, Config, Entry, no_such
from .decoding import SETTINGS, WORDS, of_flags

SYSTEM = "system"
_SETTINGS = {setting.flag: setting for setting in SETTINGS}
_SETTINGS_BY_NAME = {setting.name: setting for setting in SETTINGS}
_KNOWN = (SYSTEM, *_SETTINGS)
"""What a preset may say."""
NONE = "none"
"""Stands for no preset: what the program was started with."""
OF_MODEL = "model"
"""Stands for the settings with which the model's makers sample, where they say so."""
_NO_SYSTEM = (NONE, "off")


class PresetError(Failure):
    """There is no such preset, or it can't be used."""


@dataclass(frozen=True, slots=True)
class Preset:
    """A system prompt and settings under one name."""

    name: str
    values: Mapping[str, Any]
    """The system prompt and settings, by the names of their flags; what is not in it stays as it is."""

    @property
    def system(self) -> str | None:
        """The system prompt; None: it has none of its own."""
        return self.values.get(SYSTEM)

    def applied(self, settings: GenerationSettings) -> GenerationSettings:
        return replace(settings, **of_flags(self.values))

    def holds(self, system: str | None, settings: GenerationSettings) -> bool:
        """Whether this is what is in force; otherwise something was changed since."""
        return self.applied(settings) == settings and (self.system is None or self.system == system)


def find_preset(name: str, config: Config) -> Preset:
    """The preset of that name. Raises :class:`PresetError` where there is none, or its file can't be read."""
    table = config.presets.get(name)
    if table is None:
        example = 'system = "You are patient and ask back."'
        raise PresetError(*no_such("preset", PRESETS_TABLE, name, config.presets, example))
    values = {key: entry.value for key, entry in table.items()}
    if SYSTEM in values:
        values[SYSTEM] = _system(name, table[SYSTEM])
    return Preset(name, values)


def preset_of_model(sampling: Mapping[str, float]) -> Preset:
    """The settings with which a model's makers sample, as a preset; ``sampling`` as in ``EngineReady``."""
    flags = {_SETTINGS_BY_NAME[name].flag: value for name, value in sampling.items() if name in _SETTINGS_BY_NAME}
    return Preset(OF_MODEL, flags)


def preset_in_force(config: Config, system: str | None, settings: GenerationSettings) -> Preset | None:
    """The preset whose system prompt is in force: the first whose settings are, too, or else the first of them; None
    where none is."""
    matching = []
    for name in config.presets:
        with suppress(PresetError):
            preset = find_preset(name, config)
            if preset.system is not None and preset.system == system:
                matching.append(preset)
    return next((preset for preset in matching if preset.holds(system, settings)), matching[0] if matching else None)


def read_system(text: str, folder: Path | None = None) -> str:
    """A system prompt, or what is in the file that ``@path`` names. Raises ``AttachmentError``."""
    if not text.startswith("@") or text.startswith("@@"):
        return text.removeprefix("@") if text.startswith("@@") else text
    name = text.removeprefix("@")
    if not name.strip():
        raise AttachmentError(
            "No file is named after the @.", "Name one, such as @tutor.md; @@ begins a text with an @."
        )
    prompt = read_file((folder or Path()) / os.path.expanduser(name), name).text.strip("\n")
    if not prompt.strip():
        raise AttachmentError(f"{name} is empty.", "Write the system prompt into it.")
    return prompt


def typed_system(words: str) -> str | None:
    """The system prompt that ``/system`` is told, or None if it is told that there is none. Raises as
    ``read_system``."""
    return None if words in _NO_SYSTEM else read_system(words)


def preset_problems(name: str, table: Mapping[str, Entry]) -> Iterator[str]:
    """What is wrong with a ``[presets.NAME]`` table, in words that begin with file and line."""
    location = next(iter(table.values())).location if table else "the configuration"
    if name == NONE or not name.strip() or not name.isprintable():
        yield f"{location}: {PRESETS_TABLE}.{name!r} can't be a preset's name"
    if not table:
        yield f"{location}: {PRESETS_TABLE}.{name} says nothing; it may have {', '.join(_KNOWN)}"
    for key, entry in table.items():
        where = f"{entry.location}: {PRESETS_TABLE}.{name}"
        if key not in _KNOWN:
            near = get_close_matches(key, _KNOWN, 1, cutoff=0.5)
            hint = f"do you mean {near[0]}?" if near else f"it may have {', '.join(_KNOWN)}"
            yield f"{where} has no setting {key}; {hint}"
        elif key == SYSTEM and not (isinstance(entry.value, str) and entry.value.strip()):
            yield f"{where}: {key} must be {WORDS['choice']}, not {json.dumps(entry.value, default=str)}"
        elif key != SYSTEM and (complaint := _SETTINGS[key].complaint(entry.value)):
            yield f"{where}: {key} {complaint}"


def _system(name: str, entry: Entry) -> str:
    """The system prompt of a preset's entry."""
    try:
        return read_system(entry.value, entry.path.parent)
    except (AttachmentError, RuntimeError, OSError) as error:
        hint = error.hint if isinstance(error, AttachmentError) else "Name another file."
        raise PresetError(f"{entry.location}: {PRESETS_TABLE}.{name}: {error}", hint) from None
