"""Canvas pages that draw a pattern: waves, the game of life, spirographs."""

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

PATTERNS = (WAVE_LINES, LIFE, SPIROGRAPH)
