"""The drone swarm: the page of the headline prompt, in several styles of flight."""

from __future__ import annotations

import random

from engine.lab.demo.corpus.html.page import fill, lines
from engine.lab.demo.corpus.html.particles import Particles, particle_page
from engine.lab.demo.corpus.html.plan import Family, Plan

QUADCOPTER = """\
// four arms with a rotor on each
ctx.beginPath();
for (const x of [d.x - $size, d.x + $size]) {
  for (const y of [d.y - $size, d.y + $size]) {
    ctx.moveTo(d.x, d.y);
    ctx.lineTo(x, y);
    ctx.arc(x, y, $size / 2, 0, Math.PI * 2);
  }
}
ctx.stroke();"""

FLOCK = """\
// flocking: keep apart, stay close, fly the same way
for (const other of drones) {
  const dx = other.x - d.x;
  const dy = other.y - d.y;
  const gap = Math.hypot(dx, dy);
  if (gap > $sight) continue;
  const pull = gap < $apart ? -0.01 : 0.0005;
  d.vx += dx * pull + (other.vx - d.vx) * 0.02;
  d.vy += dy * pull + (other.vy - d.vy) * 0.02;
}"""

CRUISE = """\
const pace = ($pace * speed) / Math.hypot(d.vx, d.vy);
d.vx *= pace;
d.vy *= pace;
d.x = (d.x + d.vx + canvas.width) % canvas.width;
d.y = (d.y + d.vy + canvas.height) % canvas.height;"""

FLOCK_TO_MOUSE = """\
d.vx += (mouse.x - d.x) * $pull;
d.vy += (mouse.y - d.y) * $pull;"""

ORBIT = """\
// every drone circles the centre on its own ring
const angle = d.phase + time * 0.0003 * speed * d.spin;
const radius = Math.min(canvas.width, canvas.height) * (0.1 + 0.35 * d.ring);"""

FORMATIONS = {
    "ring": """\
// formation: a turning ring that breathes
const angle = d.phase + time * 0.0003 * speed;
const radius = Math.min(canvas.width, canvas.height) * (0.32 + 0.06 * Math.sin(time * 0.001));""",
    "spiral": """\
// formation: a spiral, the golden angle between two drones
const angle = d.place * count * 2.4 + time * 0.0003 * speed;
const radius = Math.min(canvas.width, canvas.height) * 0.42 * Math.sqrt(d.place);""",
    "flower": """\
// formation: a flower with $petals petals
const angle = d.phase + time * 0.0002 * speed;
const radius = Math.min(canvas.width, canvas.height) * (0.25 + 0.15 * Math.cos($petals * d.phase));""",
}

HEART = """\
// formation: a heart that the drones fly along
const angle = d.phase + time * 0.0004 * speed;
const unit = Math.min(canvas.width, canvas.height) * 0.024;
const targetX = $x + unit * 16 * Math.sin(angle) ** 3;
const targetY = $y - unit * (13 * Math.cos(angle) - 5 * Math.cos(2 * angle) - 2 * Math.cos(3 * angle));"""

WAVE = """\
// formation: a wave that rolls across the page
const targetX = canvas.width * d.place;
const targetY = $y + Math.sin(d.place * $crests + time * 0.001 * speed) * canvas.height * 0.25;"""

ON_CIRCLE = """\
const targetX = $x + Math.cos(angle) * radius;
const targetY = $y + Math.sin(angle) * radius;"""

GLIDE = """\
d.x += (targetX - d.x) * $ease;
d.y += (targetY - d.y) * $ease;"""

GLIDE_WITH_HEADING = """\
d.vx = (targetX - d.x) * $ease;
d.vy = (targetY - d.y) * $ease;
d.x += d.vx;
d.y += d.vy;"""

STYLES = ("flock", "orbit", "ring", "spiral", "flower", "heart", "wave")


def write(plan: Plan, rng: random.Random) -> str:
    size = f"{rng.choice((3, 4, 5))} + Math.random() * {rng.choice((1.5, 2))}"
    place = "x: Math.random() * innerWidth,\ny: Math.random() * innerHeight,"
    if plan.style == "flock":
        more = "vx: Math.random() - 0.5,\nvy: Math.random() - 0.5,"
    elif plan.style == "orbit":
        more = "phase: Math.random() * Math.PI * 2,\nring: Math.random(),\nspin: 0.5 + Math.random(),"
    else:
        more = "place: i / count,\nphase: (i / count) * Math.PI * 2,"
    quad = plan.shape == "quadcopter"
    kind = Particles(
        thing="drone",
        things="drones",
        it="d",
        fields=lines(place, more, f"size: {size},"),
        move=_flight(plan, rng),
        draw=QUADCOPTER if quad else "",
        turned=_is_turned(plan),
        numbered=plan.style not in ("flock", "orbit"),
        stroked=quad,
    )
    return particle_page(plan, rng, kind)


def _is_turned(plan: Plan) -> bool:
    """Whether one can see where a drone of this shape is heading."""
    return plan.shape in ("triangle", "diamond")


def _flight(plan: Plan, rng: random.Random) -> str:
    follow = plan.mouse == "follow"
    if plan.style == "flock":
        return lines(
            fill(FLOCK, sight=rng.choice((60, 70, 80, 90)), apart=rng.choice((18, 20, 24, 28))),
            fill(FLOCK_TO_MOUSE, pull=rng.choice(("0.0003", "0.0004", "0.0005"))) if follow else "",
            fill(CRUISE, pace=rng.choice((2, 2.2, 2.5))),
        )
    x, y = ("mouse.x", "mouse.y") if follow else ("canvas.width / 2", "canvas.height / 2")
    if plan.style == "heart":
        path = fill(HEART, x=x, y=y)
    elif plan.style == "wave":
        path = fill(WAVE, y=y, crests=rng.choice((6, 8, 10, 12)))
    else:
        angle = ORBIT if plan.style == "orbit" else fill(FORMATIONS[plan.style], petals=rng.choice((3, 4, 5, 6)))
        path = lines(angle, fill(ON_CIRCLE, x=x, y=y))
    glide = GLIDE_WITH_HEADING if _is_turned(plan) else GLIDE
    return lines(path, fill(glide, ease=rng.choice(("0.03", "0.04", "0.05", "0.06"))))


DRONES = Family(
    name="drones",
    subjects=("a drone swarm", "a swarm of drones", "a drone swarm animation", "an animated swarm of drones"),
    things="drones",
    group="a swarm of {}",
    titles=("Drone Swarm", "Drone Light Show", "Swarm", "Drones at Night", "Sky Swarm"),
    write=write,
    counts=(20, 160),
    shapes=("quadcopter", "circle", "triangle", "square", "diamond"),
    styles=STYLES,
    modules=("glow", "links", "pulse", "stars", "heading", "hud", "click", "pause"),
    habits=("trails", "glow"),
    sometimes=("stars", "links"),
    mice=("follow", "avoid"),
    colors=("cyan", "gold", "green", "magenta", "orange", "pink", "lime", "teal"),
    rainbow=True,
    fades=True,
    room=3,
    weight=24,
)
