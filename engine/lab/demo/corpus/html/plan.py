"""What a page is asked to be: the slots a prompt can set, and how the rest is chosen freely."""

from __future__ import annotations

import random
from collections.abc import Callable, Iterable
from dataclasses import dataclass

COLORS = {
    "red": "#ff4d4d",
    "coral": "#ff7a5c",
    "orange": "#ff9f1c",
    "gold": "#ffd23f",
    "yellow": "#fff04d",
    "lime": "#a8ff3e",
    "green": "#2ee66b",
    "teal": "#14d8c4",
    "cyan": "#22e0ff",
    "blue": "#3d8bff",
    "purple": "#a566ff",
    "magenta": "#ff3df0",
    "pink": "#ff7ab8",
    "silver": "#c7d0e0",
    "white": "#ffffff",
}
RAINBOW = "rainbow"

BACKGROUNDS = {
    "black": "#000000",
    "navy": "#0a1030",
    "midnight blue": "#050b24",
    "dark blue": "#081a3c",
    "charcoal": "#16181d",
    "dark gray": "#24272e",
    "dark green": "#04150c",
    "dark purple": "#170a2b",
    "dark red": "#1d0508",
    "dark teal": "#03191c",
    "white": "#ffffff",
}
DARK = tuple(name for name in BACKGROUNDS if name != "white")
READABLE_ON_WHITE = ("red", "coral", "teal", "blue", "purple", "magenta")

SPEEDS = {"slow": (0.4, 0.5, 0.6), "normal": (1, 1.2, 1.5), "fast": (2.5, 3, 3.5)}

TITLE_FIRST = (
    "Silent", "Electric", "Night", "Golden", "Neon", "Velvet", "Crystal", "Lunar", "Hidden", "Paper", "Winter",
    "Summer", "Quiet", "Cosmic", "Northern", "Distant", "Little", "Wild", "Frozen", "Gentle",
)  # fmt: skip
TITLE_SECOND = (
    "Sky", "Lights", "Dance", "Garden", "Dream", "Motion", "Harbour", "Parade", "Signal", "Ocean", "Field", "Echo",
    "Storm", "Meadow", "Circuit", "Horizon", "Playground", "Symphony", "Valley", "Lab",
)  # fmt: skip

ASKED_COUNT_WEIGHTS = (14, 20, 25, 20, 13, 8)
"""How often a prompt sets 0, 1, 2, ... slots."""

COSTS = {"links": 3, "stars": 2, "click": 2, "mouse": 3}
"""How much of a page's room a part takes, where it is not 1."""


@dataclass(frozen=True, slots=True)
class Plan:
    """Every decision about one page; `asked` names those which the prompt makes."""

    family: Family
    title: str
    color: str
    background: str
    count: int = 0
    shape: str = ""
    style: str = ""
    speed: str = "normal"
    trails: bool = False
    mouse: str = ""
    modules: tuple[str, ...] = ()
    asked: tuple[str, ...] = ()

    def has(self, module: str) -> bool:
        return module in self.modules

    def value(self, slot: str) -> str:
        """One slot as a word, for the name of the combination."""
        if slot in self.family.modules:
            return slot
        if slot == "trails":
            return "trails" if self.trails else "no trails"
        return str(getattr(self, slot))

    @property
    def combination(self) -> str:
        """A bare request leaves everything open, so it is told apart by what was chosen for it."""
        slots = self.asked or ("color", "background", "style")
        return "/".join(("html", self.family.name, *(self.value(slot) for slot in slots)))


@dataclass(frozen=True, slots=True)
class Family:
    """One kind of page: how people name it, which slots it offers and who writes its document."""

    name: str
    subjects: tuple[str, ...]
    """Ways to name the page in a request, with its article: "a drone swarm"."""
    things: str
    """What there are `count` of; empty when the page has nothing to count."""
    group: str
    """Noun phrase around the things, "a swarm of {}", where {} is "80 cyan drones"."""
    titles: tuple[str, ...]
    write: Callable[[Plan, random.Random], str]
    """The whole document, from <!DOCTYPE html> to </html>."""
    counts: tuple[int, int] = (0, 0)
    shapes: tuple[str, ...] = ()
    styles: tuple[str, ...] = ()
    modules: tuple[str, ...] = ()
    habits: tuple[str, ...] = ()
    """Modules (or "trails") that the page has without being asked."""
    sometimes: tuple[str, ...] = ()
    """Modules that an open request gets one time in three."""
    mice: tuple[str, ...] = ()
    colors: tuple[str, ...] = ()
    """Colours chosen when the prompt names none; empty means any."""
    rainbow: bool = False
    fades: bool = False
    """Whether trails can be asked for."""
    moves: bool = True
    """Whether a speed can be asked for."""
    canvas: bool = True
    script: bool = True
    room: int = 5
    """The cost of the parts that fit into a page of reasonable length."""
    weight: int = 4

    @property
    def slots(self) -> tuple[str, ...]:
        offered = {
            "count": bool(self.things),
            "color": True,
            "background": True,
            "shape": bool(self.shapes),
            "style": bool(self.styles),
            "trails": self.fades,
            "mouse": bool(self.mice),
            "speed": self.moves,
            "title": True,
        }
        return tuple(slot for slot, there in offered.items() if there) + self.modules


def draw_plan(rng: random.Random, family: Family) -> Plan:
    """Choose which slots the prompt sets, then a value for every slot."""
    wanted = rng.choices(range(len(ASKED_COUNT_WEIGHTS)), ASKED_COUNT_WEIGHTS)[0]
    asked = _draw_asked(rng, family, wanted)
    background = _draw_background(rng, "background" in asked)
    color = _draw_color(rng, family, background, "color" in asked)
    trails, modules = _draw_modules(rng, family, asked)
    return Plan(
        family=family,
        title=_draw_title(rng, family, "title" in asked),
        color=color,
        background=background,
        count=_draw_count(rng, family),
        shape=rng.choice(family.shapes) if "shape" in asked else (family.shapes or ("",))[0],
        style=rng.choice(family.styles or ("",)),
        speed=rng.choice(("slow", "fast")) if "speed" in asked else "normal",
        trails=trails,
        mouse=rng.choice(family.mice) if "mouse" in asked else "",
        modules=modules,
        asked=asked,
    )


def _draw_asked(rng: random.Random, family: Family, wanted: int) -> tuple[str, ...]:
    """Slots in the family's order, with no more of the costly ones than a page has room for."""
    chosen = rng.sample(family.slots, min(wanted, len(family.slots)))
    costly = {slot for slot in chosen if slot == "mouse" or slot in family.modules}
    kept = _that_fit(family, [slot for slot in chosen if slot in costly])
    return tuple(slot for slot in family.slots if slot in kept or (slot in chosen and slot not in costly))


def _that_fit(family: Family, parts: Iterable[str]) -> list[str]:
    """The parts that a page has room for, first come, first served."""
    room, kept = family.room, []
    for part in dict.fromkeys(parts):
        if (cost := COSTS.get(part, 1)) <= room:
            room -= cost
            kept.append(part)
    return kept


def _draw_title(rng: random.Random, family: Family, asked: bool) -> str:
    return f"{rng.choice(TITLE_FIRST)} {rng.choice(TITLE_SECOND)}" if asked else rng.choice(family.titles)


def _draw_background(rng: random.Random, asked: bool) -> str:
    return rng.choice(tuple(BACKGROUNDS)) if asked else rng.choice(DARK)


def _draw_color(rng: random.Random, family: Family, background: str, asked: bool) -> str:
    if background == "white":
        return rng.choice(READABLE_ON_WHITE)
    if asked and family.rainbow and rng.random() < 0.15:
        return RAINBOW
    return rng.choice(tuple(COLORS) if asked or not family.colors else family.colors)


def _draw_count(rng: random.Random, family: Family) -> int:
    low, high = family.counts
    round_number = high >= 40 and rng.random() < 0.7
    return rng.randrange(low, high + 1, 10) if round_number else rng.randint(low, high)


def _draw_modules(rng: random.Random, family: Family, asked: tuple[str, ...]) -> tuple[bool, tuple[str, ...]]:
    """Whether the page leaves trails, and its optional modules in the family's order."""
    usual = "trails" in family.habits
    trails = rng.random() < (0.7 if usual else 0.9) if "trails" in asked else usual
    free = [name for name in family.sometimes if len(asked) < 3 and rng.random() < 1 / 3]
    parts = [name for name in (*asked, *family.habits, *free) if name == "mouse" or name in family.modules]
    kept = _that_fit(family, parts)
    return trails, tuple(name for name in family.modules if name in kept)
