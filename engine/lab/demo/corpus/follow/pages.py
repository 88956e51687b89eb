"""Wishes about the page that was just made: another colour, faster, more of them, a title.

Both pages are written with the same choices, so that they differ by the wish alone.
"""

from __future__ import annotations

import random
import re
from collections.abc import Callable
from dataclasses import dataclass, replace

from engine.lab.demo.corpus import html
from engine.lab.demo.corpus.edit.content import nonsense
from engine.lab.demo.corpus.html.page import number
from engine.lab.demo.corpus.html.plan import (
    BACKGROUNDS,
    COLORS,
    DARK,
    RAINBOW,
    READABLE_ON_WHITE,
    TITLE_FIRST,
    TITLE_SECOND,
    Plan,
    draw_plan,
)
from engine.lab.demo.corpus.html.prompts import ADJECTIVES, MODULES, announce, write_prompt
from engine.lab.demo.corpus.sample import Sample
from engine.lab.demo.corpus.steady import Steady
from engine.lab.demo.corpus.wording import capitalised, phrase, pick

LONGEST_PAGE = 2450
"""Characters: with the page before it, the conversation stays within what the model was trained on."""
MOST_CHANGED = 18
"""Lines; a change that touches more has moved something else, too."""

CSS_COLORS = (
    "brown", "gray", "violet", "turquoise", "maroon", "olive", "indigo", "crimson", "salmon", "khaki", "orchid",
    "tomato", "chocolate", "lavender", "beige", "ivory", "navy", "aqua", "plum", "tan", "wheat", "black", "peachpuff",
    "hotpink", "skyblue", "seagreen", "slateblue", "limegreen", "firebrick", "aquamarine", "mintcream", "steelblue",
)  # fmt: skip
"""Colours that a page takes by their name."""


@dataclass(frozen=True, slots=True)
class Change:
    """A wish, what the answer says about it, and what becomes of plan and page."""

    wish: str
    says: str
    plan: Plan
    rewrite: Callable[[str], str] = str


Wish = Callable[[random.Random, Plan, str], Change | None]
"""A change of this plan and its page; None where the page has no such thing."""


def _color(rng: random.Random, plan: Plan, page: str) -> Change | None:
    if plan.color == RAINBOW:
        return None
    old = COLORS[plan.color]
    things = plan.family.things if plan.family.things not in ("", "step") else "it"
    named = rng.random() < 0.2 and 'color + "' not in page
    names = CSS_COLORS if named else READABLE_ON_WHITE if plan.background == "white" else tuple(COLORS)
    new = pick(rng, [name for name in names if name != plan.color])
    wish = phrase(
        rng,
        pick(
            rng,
            (
                "[Make|Paint|Turn|Colour] [it|them|{t}|everything] {c}[.|!| please.| instead.|]", "make it {c}",
                "Make it {c}", "[Change|Set] the [colour|color] to {c}[.|]", "[Now |]in {c}[, please|.|]",
                "{c}[ please|]",
                "[Can|Could] you make [it|them|the {t}] {c}?", "I want [it|them|the {t}] [in |]{c}[.|]",
                "{c} instead[ of {o}|][.|]", "The [colour|color] should be {c}[.|]", "[Use|Take] {c}[.|]",
                "Make the [colour|color] {c}[.|]", "[and |]now {c}", "The {t} should be {c}[.|]",
                "[make|paint] the {t} {c}",
            ),
        ),
        c=new, o=plan.color, t=things if things != "it" else "page",
    )  # fmt: skip
    if named:
        return Change(wish, f"in {new}", plan, lambda text: text.replace(old, new))
    return Change(wish, f"in {new}", replace(plan, color=new))


def _background(rng: random.Random, plan: Plan, page: str) -> Change | None:
    allowed = BACKGROUNDS if plan.color in READABLE_ON_WHITE else DARK
    new = pick(rng, [name for name in allowed if name != plan.background])
    if plan.background == "white" or new == "white":
        return None  # what lies behind stars and links changes, too
    wish = phrase(
        rng,
        pick(
            rng,
            (
                "[Make|Paint] the background {b}[.|]", "[Change|Set] the background[ colour| color|] to {b}[.|]",
                "[Now |]on a {b} background[, please|.|]", "[Put|Show] it on {b}[.|]", "{b} background[ please|.|]",
                "[Can|Could] you make the background {b}?", "I want a {b} background[.|]",
                "The background should be {b}[.|]", "use a {b} background",
            ),
        ),
        b=new,
    )  # fmt: skip
    return Change(wish, f"on a {new} background", replace(plan, background=new))


def _speed(rng: random.Random, plan: Plan, page: str) -> Change | None:
    if not plan.family.moves:
        return None
    faster = rng.random() < 0.6
    new = "fast" if faster else "slow"
    if plan.speed == new:
        return None
    things = plan.family.things or "page"
    words = (
        (
            "[Make|Let] it [faster|go faster|move faster]", "faster", "Faster[!|, please|.]",
            "[Speed it up|Speed up][.|]",
            "[Make|Let] the {t} [faster|move faster][.|]", "[It is|It's|That is] too slow[.|]",
            "[much |]quicker[, please|]",
            "[Can|Could] [it|they] move faster?", "more speed", "Can you make it faster?",
        )
        if faster
        else (
            "[Make|Let] it [slower|go slower|move slower]", "slower", "Slower[, please|.]",
            "[Slow it down|Slow down][.|]",
            "[Make|Let] the {t} [slower|move slower][.|]", "[It is|It's|That is] too fast[.|]",
            "Can you make it slower?",
            "[Can|Could] [it|they] move slower?", "more slowly, please", "calmer[, please|]",
        )
    )  # fmt: skip
    return Change(phrase(rng, pick(rng, words), t=things), "faster" if faster else "slower", replace(plan, speed=new))


def _count(rng: random.Random, plan: Plan, page: str) -> Change | None:
    family = plan.family
    if not family.things or family.things == "step":
        return None
    chance = rng.random()
    words: tuple[str, ...]
    if chance < 0.3:
        new = plan.count * 2
        words = ("[Twice|Double] as many[.|, please.|]", "Double the [{t}|number of {t}][.|]", "More {t}[, please|.|]",
                 "more", "[Make|Show] more {t}", "more of them", "I want more {t}[.|]",
                 "Can you add more {t}?")  # fmt: skip
    elif chance < 0.5 and plan.count % 2 == 0 and plan.count >= 10:
        new = plan.count // 2
        words = ("Half as many[.|, please.|]", "[Fewer|Less] {t}[, please|.|]", "fewer",
        "[Too many|That is too many] {t}[.|]",
                 "not so many {t}", "Use fewer {t}[.|]")  # fmt: skip
    else:
        low, high = family.counts
        new = rng.randint(low, high)
        words = (
            "[Make|Show|Use|Draw] {n}[ {t}| of them][.|]", "[Now |]with {n} {t}[, please|.|]", "{n} {t}[ please|.|]",
            "[Change|Set] the [count|number][ of {t}|] to {n}[.|]", "I want {n} {t}[.|]", "Can you show {n} {t}?",
            "There should be {n} {t}[.|]", "make it {n}", "{n} instead of {o}[.|]",
        )  # fmt: skip
    if new == plan.count:
        return None
    wish = phrase(rng, pick(rng, words), n=new, o=plan.count, t=family.things)
    return Change(wish, f"with {new} {family.things}", replace(plan, count=new))


def _title(rng: random.Random, plan: Plan, page: str) -> Change | None:
    first = pick(rng, TITLE_FIRST) if rng.random() < 0.5 else capitalised(nonsense(rng))
    title = f"{first} {pick(rng, TITLE_SECOND)}" if rng.random() < 0.7 else first
    wish = phrase(
        rng,
        pick(
            rng,
            (
                '[Change|Set] the title to [{t}|"{t}"][.|]', '[Call|Name] it [{t}|"{t}"][.|, please.|]',
                'The title should be [{t}|"{t}"][.|]', 'Give it the title [{t}|"{t}"][.|]', 'Title: "{t}"',
                'title it "{t}"', '[Can|Could] you call [it|the page] "{t}"?', 'rename [it|the page] to "{t}"',
            ),
        ),
        t=title,
    )  # fmt: skip
    return Change(wish, f'with the title "{title}"', replace(plan, title=title))


def _shape(rng: random.Random, plan: Plan, page: str) -> Change | None:
    others = [shape for shape in plan.family.shapes if shape != plan.shape and ADJECTIVES.get(shape)]
    if not others:
        return None
    new = pick(rng, others)
    wish = phrase(
        rng,
        pick(
            rng,
            (
                "[Make|Draw] them [as |]{s}s[.|]", "[Use|Draw|Show] {s}s[ instead| please|][.|]", "as {s}s[, please|]",
                "[Make|Draw] the {t} as {s}s[.|]", "[Can|Could] they be {s}s?", "{s}s instead of {o}s[.|]",
                "[Change|Set] the shape to {s}[.|]", "Make them {a}[.|]",
            ),
        ),
        s=new, o=plan.shape, a=ADJECTIVES[new], t=plan.family.things or "things",
    )  # fmt: skip
    return Change(wish, f"drawn as {new}s", replace(plan, shape=new))


def _trails(rng: random.Random, plan: Plan, page: str) -> Change | None:
    if not plan.family.fades:
        return None
    words = (
        ("[Remove|Drop|Take away] the trails[.|]", "[Without|No] trails[, please|.|]", "I do not want trails[.|]")
        if plan.trails
        else ("[Add|Give them|Draw] trails[.|, please.|]", "[Now |]with trails[.|]", "[Can|Could] they leave trails?")
    )
    says = f"with{'out' if plan.trails else ''} trails"
    return Change(phrase(rng, pick(rng, words)), says, replace(plan, trails=not plan.trails))


def _module(rng: random.Random, plan: Plan, page: str) -> Change | None:
    missing = [name for name in plan.family.modules if not plan.has(name) and name in MODULES]
    if not missing:
        return None
    name = pick(rng, missing)
    phrases, noun = MODULES[name]
    wish = phrase(
        rng,
        pick(rng, ("Add {n}[.|, please.|]", "[Now |]{p}[, please|.|]", "[Can|Could] you add {n}?", "I want {n}[.|]",
                   "make it {p}", "Give it {n}[.|]")),
        n=noun, p=pick(rng, phrases),
    )  # fmt: skip
    order = plan.family.modules
    modules = tuple(module for module in order if module in plan.modules or module == name)
    return Change(wish, f"with {noun}", replace(plan, modules=modules))


_SIZE = re.compile(r"(?<!font-)size: ([\d.]+) \+ Math\.random\(\) \* ([\d.]+)|const size = (\d+);")
_FONT = re.compile(r"(font: \d+ )(\d+)(px|vw)")


def _size(rng: random.Random, plan: Plan, page: str) -> Change | None:
    """Twice or half the size, where the page has one number for it."""
    pattern = _SIZE if _SIZE.search(page) else _FONT
    if len(pattern.findall(page)) != 1:
        return None
    bigger = rng.random() < 0.6
    factor = 2 if bigger else 0.5
    things = plan.family.things if plan.family.things not in ("", "step") else "page"
    words = (
        ("[Make|Draw] [it|them|the {t}] [bigger|larger][.|!|]", "[bigger|larger][, please|!|]",
        "They are too small[.|]",
         "[Can|Could] you make [it|them|the {t}] [bigger|larger]?", "[Bigger|Larger] {t}[, please|.|]",
         "make it bigger", "Increase the size[.|]", "Twice as big[.|]")
        if bigger
        else ("[Make|Draw] [it|them|the {t}] smaller[.|!|]", "smaller[, please|!|]", "They are too [big|large][.|]",
              "[Can|Could] you make [it|them|the {t}] smaller?", "Smaller {t}[, please|.|]", "make it smaller",
              "[Reduce|Decrease] the size[.|]", "Half as big[.|]")
    )  # fmt: skip

    def resized(match: re.Match[str]) -> str:
        if pattern is _FONT:
            return f"{match[1]}{number(float(match[2]) * factor)}{match[3]}"
        if match[3]:
            return f"const size = {number(float(match[3]) * factor)};"
        return f"size: {number(float(match[1]) * factor)} + Math.random() * {number(float(match[2]) * factor)}"

    says = "bigger" if bigger else "smaller"
    return Change(phrase(rng, pick(rng, words), t=things), says, plan, lambda text: pattern.sub(resized, text))


WISHES: tuple[Wish, ...] = (
    _color, _color, _color, _color, _background, _background, _speed, _speed, _count, _count, _title, _title, _shape,
    _trails, _module, _size, _size,
)  # fmt: skip
_INTROS = ("Here it is {says}:", "Now {says}:", "The same page {says}:")
_LONELY = 0.85
"""Share of pages with one wish; the others had one before."""


def generate(rng: random.Random) -> Sample:
    """A page, a wish, and the page again; sometimes with a wish that was granted before."""
    while True:
        plan = draw_plan(rng, rng.choices(html.FAMILIES, [family.weight for family in html.FAMILIES])[0])
        writer = Steady(str(rng.random()))
        page = plan.family.write(plan, writer)
        if len(page) > LONGEST_PAGE:
            continue
        first = (write_prompt(rng, plan), f"{announce(rng, plan)}\n\n```html index.html\n{page}\n```")
        before = [first]
        granted = _granted(rng, plan, page, writer)
        if granted and rng.random() > _LONELY:
            change, page = granted
            before.append((change.wish, _answer(rng, change, page)))
            plan = change.plan
            # What was rewritten in the page is not in its plan.
            granted = None if change.rewrite is not str else _granted(rng, plan, page, writer)
        if granted:
            break
    change, result = granted
    old = page.split("\n")
    facts = {
        "kind": "html",
        "facts": {"script": plan.family.script, "canvas": plan.family.canvas, "slots": {}},
        "text": result,
        "changed": [line for line in result.split("\n") if line not in old],
    }
    combination = f"follow/{plan.family.name}/{plan.color}/{change.says}"
    return Sample("follow", change.wish, _answer(rng, change, result), combination, facts, tuple(before))


def _granted(rng: random.Random, plan: Plan, page: str, writer: Steady) -> tuple[Change, str] | None:
    """A change and the page after it, if the page differs by little and is not too long."""
    change = pick(rng, WISHES)(rng, plan, page)
    if change is None:
        return None
    result = change.rewrite(plan.family.write(change.plan, writer))
    changed = len(set(result.split("\n")) ^ set(page.split("\n")))
    return (change, result) if 0 < changed <= MOST_CHANGED and len(result) <= LONGEST_PAGE else None


def _answer(rng: random.Random, change: Change, page: str) -> str:
    return f"{pick(rng, _INTROS).format(says=change.says)}\n\n```html index.html\n{page}\n```"
