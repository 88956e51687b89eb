"""Arithmetic: bare drills and word problems, answered step by step."""

from __future__ import annotations

import random

from engine.lab.demo.corpus.maths import drills, stories
from engine.lab.demo.corpus.maths.answers import check
from engine.lab.demo.corpus.sample import Sample

__all__ = ["check", "generate"]

DRILL_SHARE = 0.42


def generate(rng: random.Random) -> Sample:
    """One drill or word problem with its worked answer."""
    return drills.generate(rng) if rng.random() < DRILL_SHARE else stories.generate(rng)
