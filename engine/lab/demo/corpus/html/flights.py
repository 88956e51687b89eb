"""Cousins of the swarm: things that fall, rise, bounce, stream or wander."""

from __future__ import annotations

import random

from engine.lab.demo.corpus.html.page import fill, lines
from engine.lab.demo.corpus.html.particles import Particles, particle_page
from engine.lab.demo.corpus.html.plan import Family, Plan

ANYWHERE = "x: Math.random() * innerWidth,\ny: Math.random() * innerHeight,"
SHAPES = ("circle", "square", "triangle", "diamond")

WARP = """\
// fly forward: a star that passes the eye starts again far away
s.z -= $dive * speed;
if (s.z <= 0.01) Object.assign(s, makeStar(), { z: 1 });
s.x = $x + (s.across * canvas.width) / s.z;
s.y = $y + (s.down * canvas.height) / s.z;
s.size = (1 - s.z) * $size;"""


def write_starfield(plan: Plan, rng: random.Random) -> str:
    follow = plan.mouse == "follow"
    kind = Particles(
        thing="star",
        things="stars",
        it="s",
        fields="across: Math.random() - 0.5,\ndown: Math.random() - 0.5,\nz: 1 - Math.random() * 0.99,",
        move=fill(
            WARP,
            dive=rng.choice(("0.002", "0.003", "0.004")),
            x="mouse.x" if follow else "canvas.width / 2",
            y="mouse.y" if follow else "canvas.height / 2",
            size=rng.choice((3, 4, 5)),
        ),
    )
    return particle_page(plan, rng, kind)


BOUNCE = """\
b.x += b.vx * speed;
b.y += b.vy * speed;
// bounce off the four walls
if (b.x < b.size) b.vx = Math.abs(b.vx);
if (b.x > canvas.width - b.size) b.vx = -Math.abs(b.vx);
if (b.y < b.size) b.vy = Math.abs(b.vy);
if (b.y > canvas.height - b.size) b.vy = -Math.abs(b.vy);"""


def write_balls(plan: Plan, rng: random.Random) -> str:
    gravity = ""
    if plan.style == "gravity":
        gravity = f"// gravity\nb.vy += {rng.choice(('0.08', '0.1', '0.12', '0.15'))};"
    small, spread, pace = rng.choice((6, 8, 10, 12)), rng.choice((8, 10, 14, 18)), rng.choice((4, 5, 6))
    kind = Particles(
        thing="ball",
        things="balls",
        it="b",
        fields=lines(
            ANYWHERE,
            f"vx: (Math.random() - 0.5) * {pace},",
            f"vy: (Math.random() - 0.5) * {pace},",
            f"size: {small} + Math.random() * {spread},",
        ),
        move=lines(gravity, BOUNCE),
    )
    return particle_page(plan, rng, kind)


SNOWFALL = """\
f.y += f.size * $fall * speed;
f.x += Math.sin(time * 0.001 + f.sway) * $drift$wind;
// a flake that lands starts again above the page
if (f.y > canvas.height + f.size) {
  f.y = -f.size;
  f.x = Math.random() * canvas.width;
}"""


def write_snow(plan: Plan, rng: random.Random) -> str:
    kind = Particles(
        thing="flake",
        things="flakes",
        it="f",
        fields=lines(
            ANYWHERE,
            "sway: Math.random() * Math.PI * 2,",
            f"size: {rng.choice((1, 1.5, 2))} + Math.random() * {rng.choice((2, 3, 4))},",
        ),
        move=fill(
            SNOWFALL,
            fall=rng.choice(("0.3", "0.4", "0.5")),
            drift=rng.choice(("0.3", "0.5", "0.8")),
            wind=f" + {rng.choice(('0.8', '1', '1.5'))}" if plan.style == "wind" else "",
        ),
    )
    return particle_page(plan, rng, kind)


RAINFALL = """\
r.y += r.fall * speed;
r.x += r.fall * $slant * speed;
// a drop that lands starts again above the page
if (r.y > canvas.height) {
  r.y = -r.size;
  r.x = Math.random() * canvas.width * 1.2 - canvas.width * 0.2;
}"""

RAINDROP = """\
ctx.lineWidth = $width;
ctx.beginPath();
ctx.moveTo(r.x, r.y);
ctx.lineTo(r.x - r.size * $slant, r.y - r.size);
ctx.stroke();"""


def write_rain(plan: Plan, rng: random.Random) -> str:
    slant = rng.choice(("0.2", "0.3", "0.4")) if plan.style == "wind" else "0.02"
    kind = Particles(
        thing="drop",
        things="drops",
        it="r",
        fields=lines(
            ANYWHERE,
            f"fall: {rng.choice((4, 5, 6))} + Math.random() * {rng.choice((4, 6, 8))},",
            f"size: {rng.choice((8, 10, 12))} + Math.random() * {rng.choice((10, 14, 18))},",
        ),
        move=fill(RAINFALL, slant=slant),
        draw=fill(RAINDROP, width=rng.choice(("1", "1.5", "2")), slant=slant),
        stroked=True,
    )
    return particle_page(plan, rng, kind)


SPRAY = """\
// gravity pulls every particle back down
p.vy += $gravity * speed;
p.x += p.vx * speed;
p.y += p.vy * speed;
if (p.y > canvas.height) Object.assign(p, makeParticle());"""


def write_fountain(plan: Plan, rng: random.Random) -> str:
    x = "mouse.x" if plan.mouse == "follow" else "canvas.width / 2"
    wide, high = rng.choice((2, 3, 4)), rng.choice((10, 11, 12, 13))
    kind = Particles(
        thing="particle",
        things="particles",
        it="p",
        fields=lines(
            f"x: {x},",
            "y: canvas.height - Math.random() * 20,",
            f"vx: (Math.random() - 0.5) * {wide},",
            f"vy: -{high} * Math.random(),",
            f"size: {rng.choice((1, 1.5, 2))} + Math.random() * {rng.choice((2, 3))},",
        ),
        move=fill(SPRAY, gravity=rng.choice(("0.08", "0.1", "0.12"))),
    )
    return particle_page(plan, rng, kind)


WANDER = """\
// turn a little at random, and stay on the page
f.angle += (Math.random() - 0.5) * $turn;
f.x = (f.x + Math.cos(f.angle) * speed + canvas.width) % canvas.width;
f.y = (f.y + Math.sin(f.angle) * speed + canvas.height) % canvas.height;"""

COME_CLOSER = """\
// come closer to the mouse
f.x += (mouse.x - f.x) * $pull;
f.y += (mouse.y - f.y) * $pull;"""


def write_fireflies(plan: Plan, rng: random.Random) -> str:
    closer = fill(COME_CLOSER, pull=rng.choice(("0.003", "0.004", "0.005")))
    kind = Particles(
        thing="firefly",
        things="fireflies",
        it="f",
        fields=lines(
            ANYWHERE,
            "angle: Math.random() * Math.PI * 2,",
            f"size: {rng.choice((1.5, 2, 2.5))} + Math.random() * {rng.choice((1, 2))},",
        ),
        move=lines(
            fill(WANDER, turn=rng.choice(("0.3", "0.4", "0.5"))),
            closer if plan.mouse == "follow" else "",
        ),
    )
    return particle_page(plan, rng, kind)


RISE = """\
b.y -= b.rise * speed;
b.x += Math.sin(time * 0.001 + b.rise * 10) * $sway;
// a bubble that leaves the top starts again below
if (b.y < -b.size) {
  b.y = canvas.height + b.size;
  b.x = Math.random() * canvas.width;
}"""

BUBBLE = """\
ctx.beginPath();
ctx.arc(b.x, b.y, $size, 0, Math.PI * 2);
ctx.stroke();
// a highlight on the upper left
ctx.beginPath();
ctx.arc(b.x, b.y, $size * 0.7, Math.PI, Math.PI * 1.4);
ctx.stroke();"""


def write_bubbles(plan: Plan, rng: random.Random) -> str:
    kind = Particles(
        thing="bubble",
        things="bubbles",
        it="b",
        fields=lines(
            ANYWHERE,
            "rise: 0.5 + Math.random(),",
            f"size: {rng.choice((4, 6, 8))} + Math.random() * {rng.choice((12, 16, 20))},",
        ),
        move=fill(RISE, sway=rng.choice(("0.4", "0.6", "0.8"))),
        draw=BUBBLE,
        stroked=True,
    )
    return particle_page(plan, rng, kind)


STARFIELD = Family(
    name="starfield",
    subjects=("a starfield", "a warp speed starfield", "a flight through the stars", "a starfield animation"),
    things="stars",
    group="a starfield of {}",
    titles=("Starfield", "Warp Speed", "Through the Stars", "Deep Space"),
    write=write_starfield,
    counts=(200, 800),
    shapes=SHAPES,
    modules=("glow", "heading", "pause"),
    habits=("trails",),
    mice=("follow",),
    colors=("white", "silver", "cyan", "blue", "gold"),
    rainbow=True,
    fades=True,
)
BALLS = Family(
    name="balls",
    subjects=("bouncing balls", "a bouncing balls animation", "balls that bounce off the walls"),
    things="balls",
    group="{} bouncing around",
    titles=("Bouncing Balls", "Bounce", "Balls", "Bounce Around"),
    write=write_balls,
    counts=(5, 60),
    shapes=SHAPES,
    styles=("floating", "gravity"),
    modules=("glow", "links", "pulse", "heading", "hud", "click", "pause"),
    mice=("avoid",),
    rainbow=True,
    fades=True,
)
SNOW = Family(
    name="snow",
    subjects=("falling snow", "a snowfall", "a snow animation", "snowflakes falling from the sky"),
    things="flakes",
    group="a snowfall of {}",
    titles=("Snowfall", "Let It Snow", "Winter", "First Snow"),
    write=write_snow,
    counts=(80, 400),
    shapes=SHAPES,
    styles=("calm", "wind"),
    modules=("glow", "heading", "hud", "pause"),
    mice=("avoid",),
    colors=("white", "silver"),
)
RAIN = Family(
    name="rain",
    subjects=("falling rain", "a rain animation", "a rainy night", "rain falling down the screen"),
    things="drops",
    group="rain made of {}",
    titles=("Rain", "Rainy Night", "Downpour", "April Rain"),
    write=write_rain,
    counts=(80, 400),
    styles=("calm", "wind"),
    modules=("glow", "heading", "pause"),
    colors=("blue", "cyan", "silver", "teal"),
    fades=True,
)
FOUNTAIN = Family(
    name="fountain",
    subjects=("a particle fountain", "a fountain of particles", "a particle fountain animation"),
    things="particles",
    group="a fountain of {}",
    titles=("Fountain", "Particle Fountain", "Spark Fountain", "Geyser"),
    write=write_fountain,
    counts=(100, 500),
    shapes=SHAPES,
    modules=("glow", "heading", "hud", "pause"),
    habits=("trails",),
    mice=("follow",),
    rainbow=True,
    fades=True,
)
FIREFLIES = Family(
    name="fireflies",
    subjects=("fireflies at night", "glowing fireflies", "fireflies in the dark", "a firefly animation"),
    things="fireflies",
    group="{} in the dark",
    titles=("Fireflies", "Summer Night", "Night Garden", "Fireflies at Night"),
    write=write_fireflies,
    counts=(20, 120),
    shapes=SHAPES,
    modules=("glow", "links", "pulse", "stars", "heading", "hud", "click", "pause"),
    habits=("glow", "pulse"),
    sometimes=("stars",),
    mice=("follow", "avoid"),
    colors=("gold", "lime", "orange", "green"),
    fades=True,
)
BUBBLES = Family(
    name="bubbles",
    subjects=("rising bubbles", "a bubble animation", "bubbles under water", "bubbles floating up"),
    things="bubbles",
    group="{} floating up",
    titles=("Bubbles", "Under Water", "Rising Bubbles", "Fizz"),
    write=write_bubbles,
    counts=(20, 120),
    modules=("glow", "pulse", "heading", "hud", "click", "pause"),
    mice=("avoid",),
    colors=("cyan", "teal", "blue", "silver", "pink"),
    rainbow=True,
)

FLIGHTS = (STARFIELD, BALLS, SNOW, RAIN, FOUNTAIN, FIREFLIES, BUBBLES)
