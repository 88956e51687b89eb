"""Canvas pages with a script of their own: fireworks, matrix rain, planets round a sun."""

from __future__ import annotations

import random

from engine.lab.demo.corpus.html.page import (
    NEXT_FRAME,
    RESIZE,
    canvas_document,
    clear,
    fill,
    function,
    glow,
    paragraphs,
    settings,
    start,
    unless_paused,
)
from engine.lab.demo.corpus.html.plan import RAINBOW, Family, Plan

BURST = """\
// one burst: sparks fly in all directions from (x, y)
function burst(x, y) {
  $hue
  for (let i = 0; i < count; i++) {
    const angle = Math.random() * Math.PI * 2;
    const force = Math.random() * $force * speed;
    sparks.push({ x, y, vx: Math.cos(angle) * force, vy: Math.sin(angle) * force, life: 1$hued });
  }
}"""

SPARK = """\
for (const s of sparks) {
  s.x += s.vx;
  s.y += s.vy;
  s.vy += $gravity;
  s.life -= $fade;
  ctx.globalAlpha = Math.min(s.life * 2, 1);
  $ink
  ctx.fillRect(s.x, s.y, $size, $size);
}
ctx.globalAlpha = 1;
sparks = sparks.filter((s) => s.life > 0);"""

LAUNCH = """\
// now and then a new firework
if (Math.random() < $chance * speed) {
  burst(Math.random() * canvas.width, Math.random() * canvas.height * 0.6);
}"""

CLICK_BURST = """\
addEventListener("click", (event) => burst(event.clientX, event.clientY));"""


def write_fireworks(plan: Plan, rng: random.Random) -> str:
    rainbow = plan.color == RAINBOW
    before, after = glow(plan, rng)
    burst = fill(
        BURST,
        hue="const hue = Math.random() * 360;" if rainbow else "",
        hued=", hue" if rainbow else "",
        force=rng.choice((4, 5, 6, 7)),
    )
    ink = 'ctx.fillStyle = "hsl(" + s.hue + ", 90%, 60%)";' if rainbow else "ctx.fillStyle = color;"
    sparks = fill(
        SPARK,
        gravity=rng.choice(("0.04", "0.05", "0.06")),
        fade=rng.choice(("0.01", "0.012", "0.015")),
        ink=ink,
        size=rng.choice((3, 4)),
    )
    frame = function(
        "frame()",
        clear(plan, rng),
        fill(LAUNCH, chance=rng.choice(("0.02", "0.03", "0.04"))),
        before,
        sparks,
        after,
        NEXT_FRAME,
    )
    click = CLICK_BURST if plan.mouse == "click" else ""
    first = "burst(innerWidth / 2, innerHeight / 3);"
    code = paragraphs(settings(plan, rng, "let sparks = [];"), RESIZE, burst, frame, start(plan, click, first))
    return canvas_document(plan, code)


LETTERS = {"binary": "01", "digits": "0123456789", "letters": "ABCDEFGHIJKLMNOPQRSTUVWXYZ", "hex": "0123456789ABCDEF"}

COLUMNS = """\
const letters = "$letters";
const size = $size;
let drops = [];"""

RESIZE_COLUMNS = """\
function resize() {
  canvas.width = innerWidth;
  canvas.height = innerHeight;
  // one falling letter per column
  drops = Array.from({ length: canvas.width / size }, () => Math.random() * -$above);
}"""

FALL = """\
for (let i = 0; i < drops.length; i++) {
  const letter = letters[Math.floor(Math.random() * letters.length)];
  ctx.fillText(letter, i * size, Math.floor(drops[i]) * size);
  $step
  if (drops[i] * size > canvas.height && Math.random() > $stay) drops[i] = 0;
}"""


def write_matrix(plan: Plan, rng: random.Random) -> str:
    before, after = glow(plan, rng)
    state = fill(COLUMNS, letters=LETTERS[plan.style], size=rng.choice((14, 16, 18, 20)))
    pace = rng.choice(("0.3", "0.4", "0.5"))
    fall = fill(
        FALL, step=unless_paused(plan, f"drops[i] += {pace} * speed;"), stay=rng.choice(("0.95", "0.97", "0.98"))
    )
    frame = function(
        "frame()",
        "// a thin layer of background makes the letters fade",
        f"ctx.globalAlpha = {rng.choice(('0.08', '0.1', '0.12'))};",
        "ctx.fillStyle = background;",
        "ctx.fillRect(0, 0, canvas.width, canvas.height);",
        "ctx.globalAlpha = 1;",
        before,
        "ctx.fillStyle = color;",
        'ctx.font = size + "px monospace";',
        fall,
        after,
        NEXT_FRAME,
    )
    resize = fill(RESIZE_COLUMNS, above=rng.choice((20, 30, 40, 50)))
    return canvas_document(plan, paragraphs(settings(plan, rng, state), resize, frame, start(plan)))


PLANETS = """\
// every planet has its own distance, size, pace and place to start
const planets = Array.from({ length: count }, (_, i) => ({
  orbit: (i + 1.5) / (count + 1),
  size: $small + Math.random() * $spread,
  pace: $pace / (i + 1),
  phase: Math.random() * Math.PI * 2,
  $hue
}));"""

ORBITS = """\
$centre
const reach = Math.min(canvas.width, canvas.height) * 0.48;
// the sun
ctx.fillStyle = "$sun";
ctx.beginPath();
ctx.arc(x, y, reach * $radius, 0, Math.PI * 2);
ctx.fill();
for (const p of planets) {
  $turn
  $ring
  $ink
  ctx.beginPath();
  ctx.arc(x + Math.cos(p.phase) * p.orbit * reach, y + Math.sin(p.phase) * p.orbit * reach, p.size, 0, Math.PI * 2);
  ctx.fill();
}"""

RING = """\
// the orbit as a thin line
ctx.strokeStyle = "#88888866";
ctx.beginPath();
ctx.arc(x, y, p.orbit * reach, 0, Math.PI * 2);
ctx.stroke();"""


def write_planets(plan: Plan, rng: random.Random) -> str:
    rainbow = plan.color == RAINBOW
    before, after = glow(plan, rng)
    planets = fill(
        PLANETS,
        small=rng.choice((5, 6, 7)),
        spread=rng.choice((6, 8, 10)),
        pace=rng.choice(("0.02", "0.025", "0.03")),
        hue="hue: Math.random() * 360," if rainbow else "",
    )
    follow = plan.mouse == "follow"
    x, y = ("mouse.x", "mouse.y") if follow else ("canvas.width / 2", "canvas.height / 2")
    orbits = fill(
        ORBITS,
        centre=f"const x = {x};\nconst y = {y};",
        sun=rng.choice(("#ffd23f", "#ffb627", "#fff3b0", "#ff9f1c")),
        radius=rng.choice(("0.06", "0.07", "0.08", "0.09")),
        turn=unless_paused(plan, "p.phase += p.pace * speed;"),
        ring=RING if plan.has("orbits") else "",
        ink='ctx.fillStyle = "hsl(" + p.hue + ", 90%, 60%)";' if rainbow else "ctx.fillStyle = color;",
    )
    frame = function("frame()", clear(plan, rng), before, orbits, after, NEXT_FRAME)
    return canvas_document(plan, paragraphs(settings(plan, rng), planets, RESIZE, frame, start(plan)))


FIREWORKS = Family(
    name="fireworks",
    subjects=("fireworks", "a fireworks animation", "a fireworks show", "fireworks in the night sky"),
    things="sparks",
    group="fireworks made of {}",
    titles=("Fireworks", "Fireworks Show", "New Year", "Night of Fireworks"),
    write=write_fireworks,
    counts=(40, 150),
    modules=("glow", "stars", "heading"),
    habits=("trails",),
    sometimes=("stars",),
    mice=("click",),
    rainbow=True,
    fades=True,
)
MATRIX = Family(
    name="matrix",
    subjects=("matrix rain", "falling code like in the Matrix", "a matrix rain effect", "a digital rain animation"),
    things="",
    group="",
    titles=("Matrix Rain", "Digital Rain", "Falling Code", "Matrix"),
    write=write_matrix,
    styles=tuple(LETTERS),
    modules=("glow", "heading", "pause"),
    colors=("green", "lime", "cyan"),
)
PLANET_SYSTEM = Family(
    name="planets",
    subjects=("orbiting planets", "a solar system", "planets orbiting a sun", "a solar system animation"),
    things="planets",
    group="{} orbiting a sun",
    titles=("Solar System", "Planets", "Orbits", "Around the Sun"),
    write=write_planets,
    counts=(3, 9),
    modules=("orbits", "glow", "stars", "heading", "pause"),
    habits=("orbits",),
    sometimes=("stars",),
    mice=("follow",),
    rainbow=True,
    fades=True,
)
SCENES = (FIREWORKS, MATRIX, PLANET_SYSTEM)
