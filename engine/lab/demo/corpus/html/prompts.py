"""The words around a page: how people ask for it, and the sentence that announces it."""

from __future__ import annotations

import random

from engine.lab.demo.corpus.html.plan import Plan

ANIMATION_OPENERS = (
    ("create a single-file HTML animation of {}", ""),
    ("Animate {} in a single HTML file", "."),
)
OPENERS = (
    ("Make an HTML page with {}", ""),
    ("Write a single-file HTML page that shows {}", "."),
    ("I'd like a web page with {}", "."),
    ("Can you build {} in one HTML file", "?"),
    ("Could you make a web page with {}", "?"),
    ("Generate an index.html with {}", "."),
    ("Build {} as a self-contained HTML page", "."),
    ("Code {} in HTML and JavaScript", ""),
    ("Show me {} in a single HTML file", "."),
    ("html page: {}", ""),
    ("Give me a one-file web page with {}", "."),
    ("I need {} as one HTML file", "."),
    ("Let's make {} in HTML", ""),
    ("Write the HTML for {}", "."),
)

MODULES: dict[str, tuple[tuple[str, ...], str]] = {
    "glow": (("with a glow", "with a glow effect", "with a soft glow", "with glow"), "a glow"),
    "links": (
        ("with lines between neighbours", "linked by thin lines", "with lines between neighbors"),
        "lines between neighbours",
    ),
    "pulse": (("with a pulse", "with a pulsing size", "gently pulsing"), "a pulse"),
    "stars": (("with stars in the background", "in front of a starry sky", "with a starry sky"), "stars behind it"),
    "heading": (("with a heading", "with the title on the page", "with a visible headline"), "a heading"),
    "hud": (
        ("with a counter in the corner", "showing how many there are", "with the number on screen"),
        "their number",
    ),
    "click": (
        ("where a click adds more", "with more of them on every click", "with click to add more"),
        "more on click",
    ),
    "pause": (
        ("with pause on the space bar", "pausing with space", "where space pauses it"),
        "a pause on the space bar",
    ),
    "orbits": (("with visible orbits", "with orbit lines", "showing the orbits"), "orbit lines"),
    "seconds": (("with seconds", "showing the seconds", "with ticking seconds"), "seconds"),
    "date": (("with the date", "with the date below", "showing the date"), "the date"),
    "flow": (
        ("with a moving gradient", "where the gradient flows", "with an animated background"),
        "a moving gradient",
    ),
    "cards": (("with three cards", "with three feature cards", "showing three cards"), "three cards"),
    "reset": (("with a reset button", "with reset", "with a button to reset"), "a reset button"),
    "keys": (("with arrow keys", "listening to the arrow keys", "with keyboard control"), "arrow keys"),
    "positive": (("never going below zero", "without negative numbers", "staying above zero"), "a floor at zero"),
    "done": (
        ("where a click marks a task as done", "with tasks to tick off", "with done tasks crossed out"),
        "a click for done",
    ),
    "remove": (("with a delete button", "where tasks can be deleted", "with a remove button"), "a delete button"),
    "save": (("remembering the tasks", "saved in the browser", "with local storage"), "local storage"),
}

MICE: dict[str, tuple[tuple[str, ...], str]] = {
    "follow": (("following the mouse", "following the cursor", "led by the mouse"), "the mouse to follow"),
    "avoid": (("avoiding the mouse", "fleeing from the cursor", "keeping away from the mouse"), "the mouse to avoid"),
    "click": (("reacting to clicks", "with something on every click", "where I can click"), "an answer to clicks"),
    "paint": (("where the mouse paints", "where I can paint with the mouse", "with mouse painting"), "mouse painting"),
}

STYLES: dict[str, tuple[tuple[str, ...], str]] = {
    "flock": (("with flocking", "flocking like birds", "flying like a flock of birds"), "flocking"),
    "orbit": (("circling the centre", "orbiting the center", "flying in circles"), "flying in circles"),
    "ring": (("in a ring formation", "forming a ring", "flying in a ring"), "in a ring"),
    "spiral": (("in a spiral formation", "forming a spiral", "flying in a spiral"), "in a spiral"),
    "flower": (("in a flower formation", "forming a flower", "flying as a flower"), "in a flower"),
    "heart": (("in a heart formation", "forming a heart", "in the shape of a heart"), "in a heart"),
    "wave": (("in a wave formation", "forming a wave", "flying in a wave"), "in a wave"),
    "floating": (("without gravity", "floating freely", "in zero gravity"), "without gravity"),
    "gravity": (("with gravity", "pulled down by gravity", "falling with gravity"), "with gravity"),
    "calm": (("without wind", "on a calm day", "falling straight down"), "without wind"),
    "wind": (("with wind", "blown by the wind", "on a windy day"), "with wind"),
    "binary": (("in binary", "with zeros and ones", "made of 0 and 1"), "in binary"),
    "digits": (("with digits", "made of digits", "using numbers"), "in digits"),
    "letters": (("with letters", "made of letters", "using the alphabet"), "in letters"),
    "hex": (("in hex", "with hexadecimal digits", "made of hex digits"), "in hex"),
    "24-hour": (("in 24-hour format", "with 24 hours", "in 24h format"), "in 24-hour format"),
    "12-hour": (("in 12-hour format", "with AM and PM", "in 12h format"), "in 12-hour format"),
    "app": (("for an app", "for a mobile app", "for my app"), "for an app"),
    "cafe": (("for a cafe", "for a coffee shop", "for my cafe"), "for a cafe"),
    "studio": (("for a design studio", "for a small studio", "for my studio"), "for a studio"),
    "band": (("for a band", "for a rock band", "for my band"), "for a band"),
    "garden": (("for a garden shop", "for a plant store", "for my garden shop"), "for a garden shop"),
}

TRAILS = ("leaving trails", "with trails", "with fading trails", "with light trails")
NO_TRAILS = ("without trails", "with no trails", "without any trails")
SPEEDS = {
    "slow": ("moving slowly", "at a slow speed", "at low speed", "slowly"),
    "fast": ("moving fast", "at high speed", "at a fast speed", "really fast"),
}
COLORS = ("in {}", "coloured {}", "colored {}", "in the colour {}", "in the color {}", "all in {}")
BACKGROUNDS = ("on a {} background", "with a {} background", "on {}", "against a {} background")
SHAPES = ("drawn as {}s", "shown as {}s", "using {}s", "in the shape of {}s")
TITLES = ('titled "{}"', 'called "{}"', 'with the title "{}"', 'named "{}"')
STEPS = ("counting in steps of {}", "with a step of {}", "counting by {}")

ADJECTIVES = {"circle": "round", "square": "square", "triangle": "triangular", "diamond": "diamond", "quadcopter": ""}

ANNOUNCEMENTS = (
    "Here you go: {}.",
    "This page shows {}.",
    "One file, no libraries: {}.",
    "Save this as index.html: {}.",
)


def write_prompt(rng: random.Random, plan: Plan) -> str:
    opener, end = rng.choice(OPENERS + ANIMATION_OPENERS * 2 if plan.family.canvas else OPENERS)
    subject, told = _subject(rng, plan, animated=(opener, end) in ANIMATION_OPENERS)
    clauses = [_clause(rng, plan, slot) for slot in plan.asked if slot not in told]
    rng.shuffle(clauses)
    if len(clauses) > 1 and rng.random() < 0.2:
        # a request, then the wishes one by one
        wishes = " ".join(clause[0].upper() + clause[1:] + "." for clause in clauses)
        return f"{opener.format(subject)}{end or '.'} {wishes}"
    return opener.format(" ".join((subject, *_joined(rng, clauses)))) + end


def announce(rng: random.Random, plan: Plan) -> str:
    """One sentence that names every decision, so that the page below only has to keep its word."""
    family = plan.family
    noun = family.group.format(_things(plan, count=True, color=True, shape=True)) if family.group else ""
    noun = noun or f"{family.subjects[0]} in {plan.color}"
    if family.things == "step":
        noun = f"a counter in {plan.color} with a step of {plan.count}"
    details = [STYLES[plan.style][1]] if plan.style else []
    details.append(f"on a {plan.background} background")
    if plan.speed != "normal":
        details.append(plan.speed)
    extras = ["trails"] if plan.trails else []
    extras += [MICE[plan.mouse][1]] if plan.mouse else []
    extras += [MODULES[name][1] for name in plan.modules]
    sentence = ", ".join((f"{noun} {details[0]}", *details[1:]))
    if extras:
        sentence += ", with " + (", ".join(extras[:-1]) + " and " + extras[-1] if len(extras) > 1 else extras[0])
    return rng.choice(ANNOUNCEMENTS).format(sentence)


def _things(plan: Plan, *, count: bool, color: bool, shape: bool) -> str:
    """ "80 cyan triangular drones", as far as the flags say."""
    words = [str(plan.count)] if count else []
    words += [plan.color] if color else []
    words += [ADJECTIVES[plan.shape]] if shape and plan.shape else []
    return " ".join(word for word in (*words, plan.family.things) if word)


def _subject(rng: random.Random, plan: Plan, animated: bool) -> tuple[str, tuple[str, ...]]:
    """The noun of the request and the slots that it already tells. Nobody asks to animate "a rain animation"."""
    family = plan.family
    told = tuple(slot for slot in ("count", "color", "shape") if slot in plan.asked and _can_tell(plan, slot))
    if not family.group or not told or rng.random() < 0.4:
        return rng.choice([name for name in family.subjects if not (animated and "animat" in name)]), ()
    return family.group.format(_things(plan, count="count" in told, color="color" in told, shape="shape" in told)), told


def _can_tell(plan: Plan, slot: str) -> bool:
    """A shape is told by its adjective, if it has one."""
    return slot != "shape" or bool(ADJECTIVES[plan.shape])


def _joined(rng: random.Random, clauses: list[str]) -> list[str]:
    """Clauses one after the other, sometimes with commas, sometimes with an "and" before the last."""
    if len(clauses) > 1 and rng.random() < 0.5:
        *most, last = clauses
        return [*(f"{clause}," for clause in most[:-1]), most[-1], f"and {last}"]
    comma = "," if rng.random() < 0.5 else ""
    return [*(clause + comma for clause in clauses[:-1]), *clauses[-1:]]


def _clause(rng: random.Random, plan: Plan, slot: str) -> str:
    if slot == "count":
        if plan.family.things == "step":
            return rng.choice(STEPS).format(plan.count)
        return rng.choice(("with {} {}", "using {} {}", "made of {} {}")).format(plan.count, plan.family.things)
    if slot == "trails":
        return rng.choice(TRAILS if plan.trails else NO_TRAILS)
    if slot == "mouse":
        return rng.choice(MICE[plan.mouse][0])
    if slot == "style":
        return rng.choice(STYLES[plan.style][0])
    if slot == "speed":
        return rng.choice(SPEEDS[plan.speed])
    patterns = {"color": COLORS, "background": BACKGROUNDS, "shape": SHAPES, "title": TITLES}
    if slot in patterns:
        return rng.choice(patterns[slot]).format(plan.value(slot))
    return rng.choice(MODULES[slot][0])
