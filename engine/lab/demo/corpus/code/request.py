"""What one prompt asks for: a program, and the controls that change the answer."""

from __future__ import annotations

import random
from dataclasses import dataclass

from .catalogue import PROGRAMS
from .program import Program, Variant
from .values import split

CONCISE = 0.25
"""Share of prompts in the style of a search box."""
PLAIN = 0.15
"""Share of the other prompts that have no control at all, beside those where none happens to be drawn."""
UNASKED_VARIANT = 0.12
"""Share of answers that are not the program's default way although the prompt does not say how."""

LIST_NAMES = {
    name: name.removesuffix("s")
    for name in split(
        "scores prices ages grades points weights heights distances temperatures speeds votes ratings marks amounts "
        "lengths costs"
    )
}
"""What a list may hold, and the name of one element."""

VERBS = split(
    "do run make get find solve compute handle process build apply try start check use take give show quick fast "
    "simple tiny smart main"
)
NOUNS = split(
    "work task job thing it this result answer values data list stuff demo example helper tool step case problem "
    "magic trick block piece part"
)
CLASS_PREFIXES = split("My Simple Tiny Fast Basic Small Smart Mini Handy Demo Plain Custom Little Clean New")
CLASS_NAMES = split("Box Thing Tool Helper Widget Keeper Holder Store Shelf Robot Basket Machine Gadget Vault Drawer")


@dataclass(frozen=True, slots=True)
class Request:
    """The controls of one prompt; what is false, empty or equal to the default is not mentioned in it."""

    program: Program
    variant: Variant
    arguments: tuple[str, ...]
    name: str
    parameter: str
    concise: bool = False
    says_how: bool = False
    typed: bool = False
    documented: bool = False
    tested: bool = False
    commented: bool = False
    guarded: bool = False
    gives_arguments: bool = False

    @property
    def named(self) -> bool:
        return self.name != self.program.name

    @property
    def names_list(self) -> bool:
        return self.parameter != self.program.parameter

    @property
    def combination(self) -> str:
        """Program, way and the controls that are set, e.g. "quicksort/in_place/name+typed"."""
        controls = {
            "how": self.says_how,
            "name": self.named,
            "list": self.names_list,
            "typed": self.typed,
            "doc": self.documented,
            "test": self.tested,
            "comment": self.commented,
            "main": self.guarded,
            "values": self.gives_arguments,
        }
        return f"{self.program.name}/{self.variant.label}/{'+'.join(k for k, on in controls.items() if on) or 'basic'}"


def draw_request(rng: random.Random) -> Request:
    """A request drawn over programs first, so that one with many variants is not asked for more often."""
    program = rng.choice(PROGRAMS)
    concise = rng.random() < CONCISE
    weight = 0.4 if concise else float(rng.random() >= PLAIN)  # a concise prompt rarely has more than one control
    says_how = rng.random() < 0.4 * weight
    other_way = says_how or rng.random() < UNASKED_VARIANT
    arguments = program.arguments(rng)
    return Request(
        program,
        rng.choice(program.variants) if other_way else program.variants[0],
        arguments,
        _name(program, rng) if rng.random() < 0.3 * weight else program.name,
        rng.choice(tuple(LIST_NAMES)) if program.parameter and rng.random() < 0.25 * weight else program.parameter,
        concise,
        says_how,
        typed=rng.random() < 0.22 * weight,
        documented=rng.random() < 0.2 * weight,
        tested=rng.random() < 0.2 * weight,
        commented=rng.random() < 0.12 * weight,
        guarded=program.kind != "decorator" and rng.random() < 0.08 * weight,
        gives_arguments=bool(arguments) and rng.random() < 0.25 * weight,
    )


def _name(program: Program, rng: random.Random) -> str:
    if program.kind == "class":
        if rng.random() < 0.5:
            return rng.choice(CLASS_PREFIXES) + program.name
        return rng.choice(CLASS_PREFIXES) + rng.choice(CLASS_NAMES)
    if rng.random() < 0.3:
        return f"my_{program.name}"
    return f"{rng.choice(VERBS)}_{rng.choice(NOUNS)}"
