"""Every program of the domain, by theme."""

from __future__ import annotations

from ..program import Program
from . import searching, sorting

PROGRAMS: tuple[Program, ...] = sorting.PROGRAMS + searching.PROGRAMS
BY_NAME: dict[str, Program] = {program.name: program for program in PROGRAMS}
