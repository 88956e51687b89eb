"""Every program of the domain, by theme."""

from __future__ import annotations

from ..program import Program
from . import classes, functional, lists, numbers, searching, sorting, strings

PROGRAMS: tuple[Program, ...] = (
    *sorting.PROGRAMS,
    *searching.PROGRAMS,
    *numbers.PROGRAMS,
    *strings.PROGRAMS,
    *lists.PROGRAMS,
    *classes.PROGRAMS,
    *functional.PROGRAMS,
)
BY_NAME: dict[str, Program] = {program.name: program for program in PROGRAMS}
