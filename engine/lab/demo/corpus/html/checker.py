"""Judges a model's page: is it whole and well-formed, and is every requested slot really in it?"""

from __future__ import annotations

import re
from html.parser import HTMLParser
from typing import Any

FENCE = re.compile(r"```html[^\n]*\n(.*?)\n```\s*$", re.DOTALL)
SCRIPT = re.compile(r"<script>\n(.*?)\n</script>", re.DOTALL)
STYLE = re.compile(r"<style>\n(.*?)\n</style>", re.DOTALL)
NOT_CODE = re.compile(r'"(?:[^"\\\n]|\\.)*"|//[^\n]*')
VOID = frozenset({"meta", "input", "br", "hr", "img", "link"})
PAIRS = {")": "(", "]": "[", "}": "{"}

SLOW, FAST = 0.75, 2.0
LINE = r"ctx\.lineTo\([^;\n]*\);\s*"
SHAPES = {
    "circle": r"ctx\.beginPath\(\);\s*ctx\.arc\([^;\n]*\);\s*ctx\.fill\(\)",
    "square": r"ctx\.beginPath\(\);\s*ctx\.rect\([^;\n]*\);\s*ctx\.fill\(\)",
    "triangle": rf"ctx\.moveTo\([^;\n]*\);\s*(?:{LINE}){{2}}ctx\.closePath\(\);\s*ctx\.fill\(\)",
    "diamond": rf"ctx\.moveTo\([^;\n]*\);\s*(?:{LINE}){{3}}ctx\.closePath\(\);\s*ctx\.fill\(\)",
    "quadcopter": r"of \[d\.x - [\s\S]*ctx\.stroke\(\)",
}
TRAILS = r"ctx\.globalAlpha = 0\.\d+;\s*ctx\.fillStyle = background;\s*ctx\.fillRect"
RAINBOW = r'"hsl\(" \+ '
MODULES = {
    "glow": r"ctx\.shadowBlur = [1-9]|text-shadow",
    "links": r"function link\(\)[\s\S]*link\(\);",
    "pulse": r"const size = \w+\.size \* .*Math\.sin\(time",
    "stars": r"const stars = [\s\S]*of stars\) ctx\.fillRect",
    "heading": r"<h1>[^<]+</h1>",
    "hud": r"ctx\.fillText\(\w+\.length \+",
    "click": r'addEventListener\("click"[\s\S]*\.push\(',
    "pause": r'!paused\b[\s\S]*"Space"\) paused = !paused',
    "orbits": r"ctx\.arc\(x, y, p\.orbit \* reach[^;]*;\s*ctx\.stroke",
    "seconds": r"now\.getSeconds\(\)",
    "date": r"now\.toDateString\(\)",
    "flow": r"animation: flow[\s\S]*@keyframes flow",
    "cards": r"(?:<li>\w+</li>\s*){3}",
    "reset": r'id="reset"[\s\S]*"#reset"',
    "keys": r'"ArrowUp"[\s\S]*"ArrowDown"',
    "positive": r"if \(value < 0\) value = 0",
    "done": r'toggle\("done"\)',
    "remove": r"item\.remove\(\)",
    "save": r"localStorage\.setItem[\s\S]*localStorage\.getItem",
}
MICE = {
    "follow": r"event\.clientX[\s\S]*event\.clientY",
    "avoid": r"awayX \* [\s\S]*event\.clientX",
    "click": r'addEventListener\("click"',
    "paint": r'addEventListener\("mousemove"',
}
STYLES = {
    "flock": r"other\.vx",
    "orbit": r"d\.spin;",
    "ring": r"0\.32 \+ 0\.06",
    "spiral": r"\* 2\.4 \+",
    "flower": r"Math\.cos\(\d \* d\.phase\)",
    "heart": r"Math\.sin\(angle\) \*\* 3",
    "wave": r"canvas\.width \* d\.place",
    "gravity": r"b\.vy \+= 0",
    "wind": r"f\.sway\) \* [\d.]+ \+ [\d.]+;|r\.fall \* 0\.[234]",
    "binary": r'letters = "01"',
    "digits": r'letters = "0123456789"',
    "letters": r'letters = "ABCDEFGHIJKLMNOPQRSTUVWXYZ"',
    "hex": r'letters = "0123456789ABCDEF"',
    "app": r">Get started</a>",
    "cafe": r">See the menu</a>",
    "studio": r">Our work</a>",
    "band": r">Listen now</a>",
    "garden": r">Visit us</a>",
    "12-hour": r"% 12 \|\| 12[\s\S]*AM",
}
ABSENT_STYLES = {"floating": "gravity", "calm": "wind", "24-hour": "12-hour"}


class _Nesting(HTMLParser):
    """Follows the tags of a page; `sound` stays true while every end tag closes the innermost open one."""

    def __init__(self) -> None:
        super().__init__()
        self.open: list[str] = []
        self.sound = True

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        if tag not in VOID:
            self.open.append(tag)

    def handle_endtag(self, tag: str) -> None:
        if self.open and self.open[-1] == tag:
            self.open.pop()
        else:
            self.sound = False


def extract_page(response: str) -> str | None:
    """The page inside an answer's closed ```html fence, or None when there is no such fence at its end."""
    fence = FENCE.search(response)
    return fence[1] if fence else None


def check(response: str, check: dict[str, Any]) -> dict[str, bool]:
    """Verdicts on an answer: "valid", "slots" (all of the requested ones) and one "slot_<name>" for each.

    `check` is the sample's own `check`. A page that is missing fails everything.
    """
    page = extract_page(response)
    wishes = check.get("slots", {})
    found = {f"slot_{slot}": page is not None and _has(page, slot, value) for slot, value in wishes.items()}
    valid = page is not None and is_valid(page, script=bool(check.get("script", True)))
    return {"valid": valid, "slots": page is not None and all(found.values()), **found}


def is_valid(page: str, *, script: bool) -> bool:
    """Whether a page is whole, properly nested, and has the one balanced script that it should have."""
    scripts = SCRIPT.findall(page)
    return (
        page.startswith("<!DOCTYPE html>")
        and page.endswith("</html>")
        and _nests(page)
        and page.count("<script") == len(scripts) == int(script)
        and all(is_balanced(text) for text in scripts + STYLE.findall(page))
    )


def is_balanced(code: str) -> bool:
    """Whether brackets outside strings and comments close in order, and no string is left open."""
    bare = NOT_CODE.sub("", code)
    stack: list[str] = []
    for char in bare:
        if char in "([{":
            stack.append(char)
        elif char in PAIRS and (not stack or stack.pop() != PAIRS[char]):
            return False
    return not stack and '"' not in bare


def _nests(page: str) -> bool:
    nesting = _Nesting()
    try:
        nesting.feed(page)
        nesting.close()
    except (AssertionError, ValueError):  # the parser gives up on some malformed declarations
        return False
    return nesting.sound and not nesting.open


def _has(page: str, slot: str, value: Any) -> bool:
    match slot:
        case "count":
            return bool(_constant(page, "count") == value)
        case "step":
            return f"change({value})" in page and f"change(-{value})" in page
        case "color":
            return bool(re.search(RAINBOW, page)) if value == "rainbow" else _names_color(page, value)
        case "background":
            return bool(re.search(rf"background: [^;\n]*{re.escape(str(value))}", page))
        case "title":
            return f"<title>{value}</title>" in page
        case "speed":
            return _is_paced(_constant(page, "speed"), value) and "* speed" in page.replace("/ speed", "* speed")
        case "trails":
            return bool(re.search(TRAILS, page)) == bool(value)
    patterns = {"shape": SHAPES, "mouse": MICE, "style": STYLES}.get(slot)
    if patterns is None:
        return bool(re.search(MODULES[slot], page)) if slot in MODULES else False
    if value in ABSENT_STYLES:
        return not re.search(patterns[ABSENT_STYLES[value]], page)
    return value in patterns and bool(re.search(patterns[value], page))


def _constant(page: str, name: str) -> float | None:
    found = re.search(rf"const {name} = ([\d.]+);", page)
    try:
        return float(found[1]) if found else None
    except ValueError:
        return None


def _names_color(page: str, value: str) -> bool:
    """A canvas page sets the constant and paints with it; another page uses the colour in its style."""
    if "<canvas>" in page:
        return f'const color = "{value}";' in page and "Style = color;" in page
    return value in page


def _is_paced(speed: float | None, wanted: str) -> bool:
    if speed is None:
        return False
    return speed <= SLOW if wanted == "slow" else speed >= FAST
