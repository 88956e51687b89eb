"""Canvas pages with a script of their own: fireworks, matrix rain, planets, waves, the game of life, spirographs."""

from __future__ import annotations

import random

from engine.demo.corpus.html.page import (
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
from engine.demo.corpus.html.plan import RAINBOW, Family, Plan

NEXT_FRAME = "requestAnimationFrame(frame);"

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


WAVES = """\
for (let i = 0; i < count; i++) {
  $ink
  ctx.globalAlpha = 1 - i / (count + 1);
  ctx.beginPath();
  for (let x = 0; x <= canvas.width; x += $step) {
    const swing = Math.sin(x * $length + phase + i * $shift) * $height;
    ctx.lineTo(x, canvas.height / 2 + swing);
  }
  ctx.stroke();
}
ctx.globalAlpha = 1;"""


def write_waves(plan: Plan, rng: random.Random) -> str:
    before, after = glow(plan, rng)
    rainbow = plan.color == RAINBOW
    waves = fill(
        WAVES,
        ink='ctx.strokeStyle = "hsl(" + (i / count) * 360 + ", 90%, 60%)";' if rainbow else "ctx.strokeStyle = color;",
        step=rng.choice((4, 5, 6, 8)),
        length=rng.choice(("0.006", "0.008", "0.01", "0.012")),
        shift=rng.choice(("0.3", "0.4", "0.5", "0.6")),
        height="(40 + Math.abs(mouse.y - canvas.height / 2))"
        if plan.mouse == "follow"
        else f"canvas.height * {rng.choice(('0.15', '0.2', '0.25'))}",
    )
    width = f"ctx.lineWidth = {rng.choice((1, 2, 3))};"
    advance = unless_paused(plan, f"phase += {rng.choice(('0.02', '0.03', '0.04'))} * speed;")
    frame = function("frame()", clear(plan, rng), before, width, waves, after, advance, NEXT_FRAME)
    return canvas_document(plan, paragraphs(settings(plan, rng, "let phase = 0;"), RESIZE, frame, start(plan)))


LIFE_SIZE = """\
function resize() {
  canvas.width = innerWidth;
  canvas.height = innerHeight;
  columns = Math.ceil(canvas.width / cell);
  rows = Math.ceil(canvas.height / cell);
  // start from a random soup
  alive = Array.from({ length: columns * rows }, () => Math.random() < $density);
}"""

NEIGHBOURS = """\
function neighbours(x, y) {
  let sum = 0;
  for (let dy = -1; dy <= 1; dy++) {
    for (let dx = -1; dx <= 1; dx++) {
      const column = (x + dx + columns) % columns;
      const row = (y + dy + rows) % rows;
      if ((dx !== 0 || dy !== 0) && alive[row * columns + column]) sum++;
    }
  }
  return sum;
}"""

GENERATION = """\
// a cell lives on with two or three neighbours, and is born with three
function generation() {
  alive = alive.map((lives, i) => {
    const sum = neighbours(i % columns, Math.floor(i / columns));
    return sum === 3 || (lives && sum === 2);
  });
}"""

LIFE_FRAME = """\
ctx.fillStyle = color;
alive.forEach((lives, i) => {
  if (lives) ctx.fillRect((i % columns) * cell, Math.floor(i / columns) * cell, cell - 1, cell - 1);
});
if ($when) {
  last = time;
  generation();
}"""

CLICK_CELL = """\
addEventListener("$event", (event) => {
  const column = Math.floor(event.clientX / cell);
  const row = Math.floor(event.clientY / cell);
  alive[row * columns + column] = true;
});"""


def write_life(plan: Plan, rng: random.Random) -> str:
    before, after = glow(plan, rng)
    cell = rng.choice((8, 10, 12, 14, 16))
    state = f"const cell = {cell};\nlet columns, rows, alive;\nlet last = 0;"
    wait = f"time - last > {rng.choice((100, 120, 150))} / speed"
    alive = fill(LIFE_FRAME, when=f"!paused && {wait}" if plan.has("pause") else wait)
    frame = function("frame(time)", clear(plan, rng), before, alive, after, NEXT_FRAME)
    touch = fill(CLICK_CELL, event="click" if plan.mouse == "click" else "mousemove") if plan.mouse else ""
    resize = fill(LIFE_SIZE, density=rng.choice(("0.2", "0.25", "0.3", "0.35")))
    parts = (settings(plan, rng, state), resize, NEIGHBOURS, GENERATION, frame, start(plan, touch))
    return canvas_document(plan, paragraphs(*parts))


TRACE = """\
// the point where the pen is: a small wheel rolling inside a big one
function pen(t) {
  const reach = Math.min(canvas.width, canvas.height) * 0.45;
  const rest = 1 - wheel;
  const x = rest * Math.cos(t) + arm * Math.cos((rest / wheel) * t);
  const y = rest * Math.sin(t) - arm * Math.sin((rest / wheel) * t);
  return [canvas.width / 2 + (x * reach) / (rest + arm), canvas.height / 2 + (y * reach) / (rest + arm)];
}"""

DRAW_TRACE = """\
for (let i = 0; i < $steps * speed; i++) {
  ctx.beginPath();
  ctx.moveTo(...pen(t));
  t += 0.02;
  ctx.lineTo(...pen(t));
  $ink
  ctx.stroke();
}"""


def write_spirograph(plan: Plan, rng: random.Random) -> str:
    before, after = glow(plan, rng)
    rainbow = plan.color == RAINBOW
    wheel = rng.choice((0.21, 0.23, 0.27, 0.31, 0.34, 0.37, 0.41))
    state = f"const wheel = {wheel};\nconst arm = {rng.choice((0.2, 0.25, 0.3, 0.35, 0.4, 0.5))};\nlet t = 0;"
    trace = fill(
        DRAW_TRACE,
        steps=rng.choice((4, 5, 6, 8)),
        ink='ctx.strokeStyle = "hsl(" + t * 5 + ", 90%, 60%)";' if rainbow else "ctx.strokeStyle = color;",
    )
    if plan.has("pause"):
        trace = trace.replace("i < ", "!paused && i < ", 1)
    frame = function("frame()", before, f"ctx.lineWidth = {rng.choice((1, 1.5, 2))};", trace, after, NEXT_FRAME)
    return canvas_document(plan, paragraphs(settings(plan, rng, state), RESIZE, TRACE, frame, start(plan)))


FIREWORKS = Family(
    name="fireworks",
    subjects=("fireworks", "a fireworks animation", "a fireworks show", "fireworks in the night sky"),
    things="sparks",
    group="fireworks with {} each",
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
WAVE_LINES = Family(
    name="waves",
    subjects=("a sine wave animation", "moving waves", "animated sine waves", "flowing wave lines"),
    things="waves",
    group="{} flowing across the page",
    titles=("Waves", "Sine Waves", "Wave Lines", "Ocean"),
    write=write_waves,
    counts=(2, 12),
    modules=("glow", "heading", "pause"),
    mice=("follow",),
    rainbow=True,
    fades=True,
)
LIFE = Family(
    name="life",
    subjects=("Conway's game of life", "the game of life", "a game of life simulation"),
    things="",
    group="",
    titles=("Game of Life", "Life", "Conway's Life"),
    write=write_life,
    modules=("glow", "heading", "pause"),
    mice=("click", "paint"),
    fades=True,
)
SPIROGRAPH = Family(
    name="spirograph",
    subjects=("a spirograph", "a spirograph animation", "a spirograph that draws itself"),
    things="",
    group="",
    titles=("Spirograph", "Rolling Wheels", "Curves"),
    write=write_spirograph,
    modules=("glow", "heading", "pause"),
    rainbow=True,
)

SCENES = (FIREWORKS, MATRIX, PLANET_SYSTEM, WAVE_LINES, LIFE, SPIROGRAPH)
