"""The parts every page shares: the document around it, the canvas under it, the frame loop that drives it."""

from __future__ import annotations

import random
from string import Template

from engine.lab.demo.corpus.html.plan import BACKGROUNDS, COLORS, RAINBOW, SPEEDS, Plan

NEXT_FRAME = "requestAnimationFrame(frame);"

RESIZE = """\
function resize() {
  canvas.width = innerWidth;
  canvas.height = innerHeight;
}"""

TRACK_MOUSE = """\
addEventListener("mousemove", (event) => {
  mouse.x = event.clientX;
  mouse.y = event.clientY;
});"""

PAUSE_KEY = """\
addEventListener("keydown", (event) => {
  if (event.code === "Space") paused = !paused;
});"""

STARS = """\
const stars = Array.from({ length: $stars }, () => [Math.random() * innerWidth, Math.random() * innerHeight]);"""

DRAW_STARS = """\
// a few still stars behind everything
ctx.fillStyle = "$star";
for (const [x, y] of stars) ctx.fillRect(x, y, 1.5, 1.5);"""

PATHS = {
    "circle": """\
ctx.beginPath();
ctx.arc($x, $y, $size, 0, Math.PI * 2);
ctx.fill();""",
    "square": """\
ctx.beginPath();
ctx.rect($x - $size, $y - $size, $size * 2, $size * 2);
ctx.fill();""",
    "triangle": """\
ctx.beginPath();
ctx.moveTo($x, $y - $size);
ctx.lineTo($x + $size, $y + $size);
ctx.lineTo($x - $size, $y + $size);
ctx.closePath();
ctx.fill();""",
    "diamond": """\
ctx.beginPath();
ctx.moveTo($x, $y - $size);
ctx.lineTo($x + $size, $y);
ctx.lineTo($x, $y + $size);
ctx.lineTo($x - $size, $y);
ctx.closePath();
ctx.fill();""",
}

PATHS_AT_ORIGIN = {
    "circle": """\
ctx.beginPath();
ctx.arc(0, 0, $size, 0, Math.PI * 2);
ctx.fill();""",
    "square": """\
ctx.beginPath();
ctx.rect(-$size, -$size, $size * 2, $size * 2);
ctx.fill();""",
    "triangle": """\
ctx.beginPath();
ctx.moveTo(0, -$size * 1.5);
ctx.lineTo($size, $size);
ctx.lineTo(-$size, $size);
ctx.closePath();
ctx.fill();""",
    "diamond": """\
ctx.beginPath();
ctx.moveTo(0, -$size * 1.5);
ctx.lineTo($size, 0);
ctx.lineTo(0, $size * 1.5);
ctx.lineTo(-$size, 0);
ctx.closePath();
ctx.fill();""",
}


def fill(text: str, **values: object) -> str:
    """Put values at the $names of a snippet; a forgotten name is an error.

    A value of several lines takes the indentation of its place; a line that is left empty goes.
    """
    filled = []
    for line in text.split("\n"):
        if "$" in line:
            pad = " " * (len(line) - len(line.lstrip()))
            line = Template(line).substitute(values).replace("\n", "\n" + pad)
            if not line.strip():
                continue
        filled.append(line)
    return "\n".join(filled)


def lines(*parts: str | None) -> str:
    """Join the parts that are there."""
    return "\n".join(part for part in parts if part)


def paragraphs(*parts: str | None) -> str:
    """Join the parts that are there, a blank line between two."""
    return "\n\n".join(part for part in parts if part)


def indent(text: str, levels: int = 1) -> str:
    pad = "  " * levels
    return "\n".join(pad + line if line else line for line in text.split("\n"))


def function(head: str, *body: str | None) -> str:
    return f"function {head} {{\n{indent(lines(*body))}\n}}"


def number(value: float) -> str:
    """A number as one writes it in JavaScript: 2, 0.5."""
    return f"{value:g}"


def document(plan: Plan, style: str, body: str, script: str = "") -> str:
    return lines(
        "<!DOCTYPE html>",
        '<html lang="en">',
        "<head>",
        '<meta charset="utf-8">',
        f"<title>{plan.title}</title>",
        "<style>",
        indent(style),
        "</style>",
        "</head>",
        "<body>",
        body,
        f"<script>\n{script}\n</script>" if script else "",
        "</body>",
        "</html>",
    )


def canvas_document(plan: Plan, script: str) -> str:
    ink = "white" if plan.color == RAINBOW else COLORS[plan.color]
    heading = f"h1 {{ position: fixed; margin: 24px; color: {ink}; font-family: system-ui; }}"
    style = lines(
        f"body {{ margin: 0; overflow: hidden; background: {BACKGROUNDS[plan.background]}; }}",
        "canvas { display: block; }",
        heading if plan.has("heading") else "",
    )
    body = lines(f"<h1>{plan.title}</h1>" if plan.has("heading") else "", "<canvas></canvas>")
    return document(plan, style, body, script)


def settings(plan: Plan, rng: random.Random, *more: str) -> str:
    """The constants a reader may want to change, then the state that the page keeps."""
    return lines(
        'const canvas = document.querySelector("canvas");',
        'const ctx = canvas.getContext("2d");',
        f"const count = {plan.count};" if plan.count else "",
        f"const speed = {number(rng.choice(SPEEDS[plan.speed]))};" if plan.family.moves else "",
        f'const color = "{COLORS[plan.color]}";' if plan.color != RAINBOW else "",
        f'const background = "{BACKGROUNDS[plan.background]}";',
        *more,
        "const mouse = { x: innerWidth / 2, y: innerHeight / 2 };" if plan.mouse in ("follow", "avoid") else "",
        "let paused = false;" if plan.has("pause") else "",
        star_field(plan, rng),
    )


def star_field(plan: Plan, rng: random.Random) -> str:
    return fill(STARS, stars=rng.choice((60, 80, 100, 120, 150))) if plan.has("stars") else ""


def clear(plan: Plan, rng: random.Random) -> str:
    """Paint the background over the last frame: wholly, or thinly so that what moved leaves a trail."""
    wipe = "ctx.fillStyle = background;\nctx.fillRect(0, 0, canvas.width, canvas.height);"
    if plan.trails:
        alpha = number(rng.choice((0.2, 0.25, 0.3)))
        fade = "// trails: fade the last frame instead of erasing it"
        wipe = lines(fade, f"ctx.globalAlpha = {alpha};", wipe, "ctx.globalAlpha = 1;")
    star = "#8890a8" if plan.background == "white" else rng.choice(("#ffffff88", "#aabbff88", "#ffeecc88"))
    return lines(wipe, fill(DRAW_STARS, star=star) if plan.has("stars") else "")


def glow(plan: Plan, rng: random.Random) -> tuple[str, str]:
    """What goes before and after the things that shine."""
    if not plan.has("glow"):
        return "", ""
    shine = f"ctx.shadowBlur = {rng.choice((8, 10, 12, 15))};"
    tint = "" if plan.color == RAINBOW else "ctx.shadowColor = color;"
    return lines(tint, shine), "ctx.shadowBlur = 0;"


def start(plan: Plan, *more: str) -> str:
    """Everything that happens once, at the end of the script."""
    return lines(
        'addEventListener("resize", resize);',
        "resize();",
        TRACK_MOUSE if plan.mouse in ("follow", "avoid") else "",
        PAUSE_KEY if plan.has("pause") else "",
        *more,
        NEXT_FRAME,
    )


def unless_paused(plan: Plan, statement: str) -> str:
    return f"if (!paused) {statement}" if plan.has("pause") else statement
