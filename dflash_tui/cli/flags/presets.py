"""``--preset``, ``--system @FILE`` and ``--file``: flags that stand for what is in files."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

import click
from click.core import ParameterSource

from dflash_tui.core.attachments.attachment import Attachment
from dflash_tui.core.attachments.reading import read_file
from dflash_tui.core.settings.config import Config
from dflash_tui.core.settings.presets import Preset, find_preset, read_system

from ..problems import Problem
from .chat_flags import Flags

_TYPED = (ParameterSource.COMMANDLINE, ParameterSource.ENVIRONMENT)


def apply_preset(flags: Flags, config: Config) -> Flags:
    """``flags`` with what ``--preset`` says where nothing was typed, and with the system prompt itself in the place of
    its file's name. Raises ``PresetError`` and ``AttachmentError``."""
    if flags.system is not None:
        flags = replace(flags, system=read_system(flags.system))
    if flags.preset is None:
        return flags
    context = click.get_current_context()
    preset = find_preset(flags.preset, config)
    said = {name: value for name, value in preset.values.items() if context.get_parameter_source(name) not in _TYPED}
    restricted = Preset(preset.name, said)
    return replace(flags, system=restricted.system or flags.system, settings=restricted.applied(flags.settings))


def attached_files(names: Sequence[str]) -> tuple[Attachment, ...]:
    """The files of ``--file``. Raises ``AttachmentError``, and :class:`Problem` for stdin and for no name."""
    if "-" in names:
        raise Problem("--file takes files.", "What is piped in goes with the prompt by itself.")
    if "" in names:  # which a path would read as the current folder
        raise Problem("The name of the file behind --file is empty.", "Name a file, or leave the flag out.")
    return tuple(read_file(Path(name)) for name in names)
