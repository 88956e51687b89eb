"""What a person asked for and what could not be done."""

from __future__ import annotations


class Failure(Exception):
    """An error for people: ``str()`` says what happened, ``hint`` what to do next."""

    def __init__(self, message: str, hint: str) -> None:
        super().__init__(message)
        self.hint = hint
