"""Pages in which many alike things move on a canvas: each thing is made, moved and drawn, frame after frame."""

from __future__ import annotations

import random
from dataclasses import dataclass

from engine.lab.demo.corpus.html.page import (
    NEXT_FRAME,
    PATHS,
    PATHS_AT_ORIGIN,
    RESIZE,
    canvas_document,
    clear,
    fill,
    function,
    glow,
    indent,
    lines,
    paragraphs,
    settings,
    start,
    unless_paused,
)
from engine.lab.demo.corpus.html.plan import RAINBOW, Plan

AVOID = """\
// keep away from the mouse
const awayX = $it.x - mouse.x;
const awayY = $it.y - mouse.y;
if (Math.hypot(awayX, awayY) < $reach) {
  $it.x += awayX * 0.05;
  $it.y += awayY * 0.05;
}"""

LINKS = """\
// a thin line between neighbours
function link() {
  ctx.strokeStyle = $ink;
  ctx.beginPath();
  for (const a of $things) {
    for (const b of $things) {
      if (Math.hypot(a.x - b.x, a.y - b.y) > $reach) continue;
      ctx.moveTo(a.x, a.y);
      ctx.lineTo(b.x, b.y);
    }
  }
  ctx.stroke();
}"""

CLICK = """\
addEventListener("click", (event) => {
  for (let i = 0; i < $more; i++) {
    $things.push(Object.assign($make($number), { x: event.clientX, y: event.clientY }));
  }
});"""

HUD = """\
ctx.fillStyle = $ink;
ctx.font = "16px system-ui";
ctx.fillText($things.length + " $things", 20, 32);"""


@dataclass(frozen=True, slots=True)
class Particles:
    """How one family of things behaves; the snippets speak of the thing as $it."""

    thing: str
    things: str
    it: str
    fields: str
    """The properties of a new thing, one "name: value," a line."""
    move: str
    draw: str = ""
    """Statements that draw one thing; empty draws the plan's shape."""
    turned: bool = False
    """Whether the drawing is turned to where the thing flies."""
    stroked: bool = False
    numbered: bool = False
    """Whether the fields use the thing's number i."""


def particle_page(plan: Plan, rng: random.Random, kind: Particles) -> str:
    """The document of a particle family."""
    move, draw = rng.choice(("move", "update", "step")), rng.choice(("draw", "paint", "render"))
    make = "make" + kind.thing.capitalize()
    names = {"it": kind.it, "things": kind.things, "make": make}
    number = f"null, {kind.things}.length" if kind.numbered else ""
    reach = rng.choice((80, 90, 100, 110, 120))
    ink = '"#ffffff66"' if plan.color == RAINBOW else 'color + "66"'
    moving = lines(kind.move, fill(AVOID, reach=reach, **names) if plan.mouse == "avoid" else "")
    drawing = _draw(plan, rng, kind)
    move_call, draw_call = _call(move, kind.it, moving), _call(draw, kind.it, drawing)
    body = paragraphs(
        settings(plan, rng),
        RESIZE,
        _make(plan, kind, make),
        function(move_call, moving),
        function(draw_call, drawing),
        fill(LINKS, ink=ink, reach=rng.choice((60, 70, 80, 90)), **names) if plan.has("links") else "",
        _frame(plan, rng, kind, f"{move_call};", f"{draw_call};"),
        start(
            plan,
            f"const {kind.things} = Array.from({{ length: count }}, {make});",
            fill(CLICK, more=rng.choice((3, 5, 8, 10)), number=number, **names) if plan.has("click") else "",
        ),
    )
    return canvas_document(plan, body)


def _call(name: str, it: str, body: str) -> str:
    """The call of a function, which gets the time only if its body asks for it."""
    return f"{name}({it}, time)" if "time" in body else f"{name}({it})"


def _make(plan: Plan, kind: Particles, make: str) -> str:
    fields = lines(kind.fields, "hue: Math.random() * 360," if plan.color == RAINBOW else "")
    return function(f"{make}(_, i)" if kind.numbered else f"{make}()", "return {", indent(fields), "};")


def _draw(plan: Plan, rng: random.Random, kind: Particles) -> str:
    it = kind.it
    style = "strokeStyle" if kind.stroked else "fillStyle"
    hue = ""
    if plan.color == RAINBOW:
        shade = " = ctx.shadowColor" if plan.has("glow") else ""
        hue = f'ctx.{style}{shade} = "hsl(" + {it}.hue + ", 90%, 60%)";'
    size = f"{it}.size"
    pulse = ""
    if plan.has("pulse"):
        size = "size"
        beat = rng.choice(("0.003", "0.004", "0.005", "0.006"))
        pulse = f"const size = {it}.size * (1 + 0.4 * Math.sin(time * {beat} + {it}.x));"
    if not kind.turned:
        return lines(hue, pulse, fill(kind.draw or PATHS[plan.shape], x=f"{it}.x", y=f"{it}.y", size=size))
    return lines(
        hue,
        pulse,
        "ctx.save();",
        f"ctx.translate({it}.x, {it}.y);",
        f"ctx.rotate(Math.atan2({it}.vx, -{it}.vy));",
        fill(kind.draw or PATHS_AT_ORIGIN[plan.shape], size=size),
        "ctx.restore();",
    )


def _frame(plan: Plan, rng: random.Random, kind: Particles, move: str, draw: str) -> str:
    before, after = glow(plan, rng)
    style = "strokeStyle" if kind.stroked else "fillStyle"
    names = {"things": kind.things, "ink": '"white"' if plan.color == RAINBOW else "color"}
    loop = lines(
        f"for (const {kind.it} of {kind.things}) {{",
        "  " + unless_paused(plan, move),
        "  " + draw,
        "}",
    )
    return function(
        "frame(time)" if "time" in loop else "frame()",
        clear(plan, rng),
        before,
        f"ctx.{style} = color;" if plan.color != RAINBOW else "",
        loop,
        after,
        "link();" if plan.has("links") else "",
        fill(HUD, **names) if plan.has("hud") else "",
        NEXT_FRAME,
    )
