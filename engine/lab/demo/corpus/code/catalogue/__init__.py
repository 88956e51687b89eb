"""Every program of the domain, by theme."""

from __future__ import annotations

from ..program import Program
from . import (
    classes,
    containers,
    conversions,
    decorators,
    duplicates,
    everyday,
    functional,
    games,
    graphs,
    grouping,
    lists,
    matrices,
    more_sorting,
    numbers,
    primes,
    recursion,
    searching,
    sorting,
    strings,
    tables,
    words,
)

_THEMES = (
    sorting,
    more_sorting,
    searching,
    duplicates,
    primes,
    numbers,
    strings,
    words,
    lists,
    grouping,
    containers,
    classes,
    decorators,
    functional,
    recursion,
    tables,
    matrices,
    graphs,
    conversions,
    everyday,
    games,
)

PROGRAMS: tuple[Program, ...] = tuple(program for theme in _THEMES for program in theme.PROGRAMS)
BY_NAME: dict[str, Program] = {program.name: program for program in PROGRAMS}
