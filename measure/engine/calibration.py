"""``python -m measure.engine.calibration`` prints what the bundled drafter's confidence says about its drafts, from
``drafts.xz``: the numbers in ``engine.lab.bench.policy``."""

from __future__ import annotations

import random
from pathlib import Path

from engine.lab.judging.record import DraftRecording
from measure.engine.recordings import load_recordings

DOMAINS = ("chat", "code", "explain", "html", "maths")
DRAWN, PARTS = 20_000, 20


def by_fate(recordings: list[DraftRecording]) -> tuple[list[float], list[float], list[float]]:
    """Confidences of drafts that were accepted, of those at which their block failed, and of those behind."""
    fates: tuple[list[float], list[float], list[float]] = ([], [], [])
    for anchor in (anchor for recording in recordings for anchor in recording.anchors):
        for place, confidence in enumerate(anchor.confidences):
            fates[(place >= anchor.num_right) + (place > anchor.num_right)].append(confidence)
    return fates


def parts_by_fate() -> dict[str, tuple[float, ...]]:
    """Twenty quantiles of each of these, smallest first; domains count alike."""
    rng = random.Random(0)
    recordings = load_recordings(Path(__file__).with_name("drafts.xz"))
    domains = [by_fate([each for each in recordings if each.domain == domain]) for domain in DOMAINS]
    found = {}
    for name, fates in zip(("ACCEPTED", "FALLEN", "BEHIND"), zip(*domains, strict=True), strict=True):
        drawn = sorted(value for fate in fates for value in rng.choices(fate, k=DRAWN))
        found[name] = tuple(round(drawn[round(part / PARTS * (len(drawn) - 1))], 3) for part in range(PARTS + 1))
    return found


if __name__ == "__main__":
    for name, parts in parts_by_fate().items():
        print(name, "=", parts)
