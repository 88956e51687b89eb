"""Reads JSON files that may be damaged: every field is checked for its type and range before anything uses it."""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from ..errors import WeightsFailure
from .pointers import refuse_pointer

DOWNLOAD_AGAIN = "Config and weights must belong together; download the checkpoint again."


def read_json(path: Path) -> dict[str, Any]:
    """The JSON object in a file. Raises ``WeightsFailure`` when it can't be read or holds something else."""
    refuse_pointer(path)
    try:
        content = json.loads(path.read_text("utf-8-sig"))
    except OSError as error:
        raise WeightsFailure(
            f"{path} can't be read: {error.strerror}.", "The folder must hold a whole checkpoint."
        ) from None
    except (ValueError, RecursionError) as error:
        raise WeightsFailure(f"{path} is not valid JSON: {error}.", "Download the checkpoint again.") from None
    if not isinstance(content, dict):
        raise WeightsFailure(f"{path} doesn't hold a JSON object.", "Download the checkpoint again.")
    return content


class Fields:
    """The fields of a JSON object; a method raises ``WeightsFailure`` with the field and what is wrong. A missing or
    null field is its ``default``, if it has one."""

    def __init__(self, values: Mapping[str, Any], where: str) -> None:
        """``where`` names the object in messages, such as ``config.json``."""
        self._values = values
        self.where = self._where = where

    def raw(self, name: str) -> Any:
        """A field's value as it stands; None for a missing one."""
        return self._values.get(name)

    def __contains__(self, name: str) -> bool:
        return self._values.get(name) is not None

    def given(self, name: str) -> bool:
        """Whether a field is there and neither zero, false nor empty."""
        return bool(self._values.get(name))

    def integer(self, name: str, low: int, high: int, default: int | None = None, multiple_of: int = 1) -> int:
        """A field's whole number from ``low`` to ``high``, a multiple of ``multiple_of``."""
        value = self._get(name, default)
        if isinstance(value, bool) or not isinstance(value, int) or not low <= value <= high or value % multiple_of:
            among = f", a multiple of {multiple_of}" if multiple_of > 1 else ""
            raise self._wrong(name, f"a whole number from {low} to {high}{among}", value)
        return value

    def number(self, name: str, low: float, high: float, default: float | None = None) -> float:
        """A field's number above ``low``, and at most ``high``."""
        value = self._get(name, default)
        if isinstance(value, bool) or not isinstance(value, int | float) or not low < value <= high:
            raise self._wrong(name, f"a number above {low:g}, at most {high:g}", value)
        return float(value)

    def flag(self, name: str, default: bool) -> bool:
        value = self._get(name, default)
        if not isinstance(value, bool):
            raise self._wrong(name, "true or false", value)
        return value

    def text(self, name: str, allowed: tuple[str, ...], default: str | None = None) -> str:
        """A field's word, which must be one of ``allowed``."""
        value = self._get(name, default)
        if value not in allowed:
            # A word is whole, and of a kind that isn't computed here; anything else is damaged.
            hint = "The engine computes with nothing else: name another checkpoint."
            raise self._wrong(name, " or ".join(allowed), value, hint if isinstance(value, str) else DOWNLOAD_AGAIN)
        return str(value)

    def integers(self, name: str, low: int, high: int) -> tuple[int, ...]:
        """A list, perhaps empty, of whole numbers from ``low`` to ``high``. A lone number is a list of one."""
        value = self._get(name, None)
        items = value if isinstance(value, list) else [value]
        return tuple(Fields({name: item}, self._where).integer(name, low, high) for item in items)

    def texts(self, name: str, allowed: tuple[str, ...], count: int) -> tuple[str, ...]:
        """A field's list of ``count`` words, each one of ``allowed``."""
        value = self._get(name, None)
        if not isinstance(value, list) or len(value) != count:
            raise self._wrong(name, f"a list of {count}", value)
        return tuple(Fields({name: item}, self._where).text(name, allowed) for item in value)

    def nested(self, name: str, default: Mapping[str, Any] | None = None) -> Fields:
        """A field's object, as fields of its own."""
        value = self._get(name, default)
        if not isinstance(value, Mapping):
            raise self._wrong(name, "an object", value)
        return Fields(value, f"{name} of {self._where}")

    def only(self, *names: str) -> Fields:
        """These fields, those of them that are there."""
        return Fields({name: self._values[name] for name in names if name in self}, self._where)

    def merged(self, other: Fields) -> Fields:
        """The fields of both objects; where both have one, that of ``other`` unless it is null."""
        given = {name: value for name, value in other._values.items() if value is not None}
        return Fields({**self._values, **given}, self._where)

    def _get(self, name: str, default: Any) -> Any:
        value = self._values.get(name)
        if value is not None:
            return value
        if default is None:
            raise WeightsFailure(f"{self._where} lacks {name}.", DOWNLOAD_AGAIN)
        return default

    def _wrong(self, name: str, expected: str, value: object, hint: str = DOWNLOAD_AGAIN) -> WeightsFailure:
        shown = repr(value) if len(repr(value)) <= 60 else f"{repr(value)[:60]}..."
        return WeightsFailure(f"{name} in {self._where} should be {expected}, not {shown}.", hint)
