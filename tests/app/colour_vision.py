"""How far apart colours look to people with each type of colour vision, and how well they stand out.

Contrast is WCAG 2's ratio. Colour blindness is simulated with the matrices for full dichromacy of Machado, Oliveira
and Fernandes (2009), which act on linear RGB; distances are CIE76 in L*a*b* under D65.
"""

from __future__ import annotations

from itertools import combinations, pairwise
from math import dist
from typing import Literal, get_args

from textual.color import Color

Vision = Literal["normal", "protan", "deutan", "tritan"]
Triple = tuple[float, float, float]

VISIONS: tuple[Vision, ...] = get_args(Vision)
_SIMULATION: dict[Vision, tuple[Triple, Triple, Triple]] = {
    "normal": ((1.0, 0.0, 0.0), (0.0, 1.0, 0.0), (0.0, 0.0, 1.0)),
    "protan": ((0.152286, 1.052583, -0.204868), (0.114503, 0.786281, 0.099216), (-0.003882, -0.048116, 1.051998)),
    "deutan": ((0.367322, 0.860646, -0.227968), (0.280085, 0.672501, 0.047413), (-0.011820, 0.042940, 0.968881)),
    "tritan": ((1.255528, -0.076749, -0.178779), (-0.078411, 0.930809, 0.147602), (0.004733, 0.691367, 0.303900)),
}
_TO_XYZ = ((0.4124564, 0.3575761, 0.1804375), (0.2126729, 0.7151522, 0.0721750), (0.0193339, 0.1191920, 0.9503041))
_WHITE = (0.95047, 1.0, 1.08883)


def contrast(first: str, second: str) -> float:
    """From 1 (the same luminance) to 21 (black on white)."""
    light, dark = sorted((_luminance(first), _luminance(second)), reverse=True)
    return (light + 0.05) / (dark + 0.05)


def closest(colours: dict[str, str], vision: Vision) -> tuple[float, str, str]:
    """The smallest distance between two of the colours, and their names."""
    seen = {name: _lab(_simulated(_linear(colour), vision)) for name, colour in colours.items()}
    return min((dist(seen[one], seen[other]), one, other) for one, other in combinations(seen, 2))


def neighbours(colours: list[str], vision: Vision) -> list[tuple[float, float]]:
    """From each colour to the next: the distance, and how much lighter that one is (L*)."""
    seen = [_lab(_simulated(_linear(colour), vision)) for colour in colours]
    return [(dist(one, other), other[0] - one[0]) for one, other in pairwise(seen)]


def _luminance(colour: str) -> float:
    return _times(_TO_XYZ, _linear(colour))[1]


def _linear(colour: str) -> Triple:
    red, green, blue = (
        value / 12.92 if value <= 0.04045 else ((value + 0.055) / 1.055) ** 2.4
        for value in (channel / 255 for channel in Color.parse(colour).rgb)
    )
    return red, green, blue


def _simulated(linear: Triple, vision: Vision) -> Triple:
    red, green, blue = (min(max(value, 0.0), 1.0) for value in _times(_SIMULATION[vision], linear))
    return red, green, blue


def _lab(linear: Triple) -> Triple:
    x, y, z = (
        value ** (1 / 3) if value > 0.008856 else 7.787 * value + 16 / 116
        for value in (value / white for value, white in zip(_times(_TO_XYZ, linear), _WHITE, strict=True))
    )
    return 116 * y - 16, 500 * (x - y), 200 * (y - z)


def _times(matrix: tuple[Triple, Triple, Triple], vector: Triple) -> Triple:
    first, second, third = (sum(a * b for a, b in zip(row, vector, strict=True)) for row in matrix)
    return first, second, third
