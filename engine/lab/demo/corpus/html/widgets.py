"""Pages without a canvas: a clock, a landing page, a counter, a to-do list."""

from __future__ import annotations

import random

from engine.lab.demo.corpus.html.page import document, fill, lines, paragraphs
from engine.lab.demo.corpus.html.plan import BACKGROUNDS, COLORS, Family, Plan

CENTRED = """\
body {
  margin: 0;
  min-height: 100vh;
  display: grid;
  place-content: center;
  text-align: center;
  background: $background;
  color: $ink;
  font: 18px system-ui;
}"""

BUTTON = """\
button {
  padding: 12px 28px;
  border: 0;
  border-radius: $radius;
  background: $color;
  color: $background;
  font: inherit;
  cursor: pointer;
}"""


def _colors(plan: Plan) -> dict[str, str]:
    ink = "#222233" if plan.background == "white" else "#ffffff"
    return {"color": COLORS[plan.color], "background": BACKGROUNDS[plan.background], "ink": ink}


def _radius(rng: random.Random) -> str:
    return rng.choice(("6px", "8px", "12px", "24px"))


def _heading(plan: Plan) -> str:
    return f"<h1>{plan.title}</h1>" if plan.has("heading") else ""


CLOCK_STYLE = """\
time { color: $color; font: $weight $size monospace; }"""

TICK = """\
const pad = (value) => String(value).padStart(2, "0");

function tick() {
  const now = new Date();
  $hours
  $show
  $date
}

tick();
setInterval(tick, 1000);"""


def write_clock(plan: Plan, rng: random.Random) -> str:
    colors = _colors(plan)
    glow = fill("time { text-shadow: 0 0 $blur $color; }", blur=rng.choice(("16px", "20px", "24px")), **colors)
    style = lines(
        fill(CENTRED, **colors),
        fill(
            CLOCK_STYLE, weight=rng.choice((200, 300, 700)), size=rng.choice(("11vw", "12vw", "13vw", "14vw")), **colors
        ),
        glow if plan.has("glow") else "",
    )
    body = lines(_heading(plan), "<time></time>", "<p></p>" if plan.has("date") else "")
    half = plan.style == "12-hour"
    shown = 'pad(hours) + ":" + pad(now.getMinutes())'
    shown += ' + ":" + pad(now.getSeconds())' if plan.has("seconds") else ""
    shown += ' + (now.getHours() < 12 ? " AM" : " PM")' if half else ""
    code = fill(
        TICK,
        hours="const hours = now.getHours() % 12 || 12;" if half else "const hours = now.getHours();",
        show=f'document.querySelector("time").textContent = {shown};',
        date='document.querySelector("p").textContent = now.toDateString();' if plan.has("date") else "",
    )
    return document(plan, style, body, code)


LANDING_STYLE = """\
body {
  margin: 0;
  min-height: 100vh;
  display: grid;
  place-content: center;
  text-align: center;
  background: linear-gradient($angle, $background, $color);
  color: $ink;
  font: 18px system-ui;
}
h1 { margin: 0; font-size: $size; }
a {
  justify-self: center;
  padding: 14px 32px;
  border-radius: $radius;
  background: $ink;
  color: $background;
  text-decoration: none;
  font-weight: 600;
}"""

FLOW = """\
body { background-size: 300% 300%; animation: flow $seconds ease infinite alternate; }
@keyframes flow {
  from { background-position: 0% 0%; }
  to { background-position: 100% 100%; }
}"""

CARDS = """\
ul { display: flex; flex-wrap: wrap; gap: 16px; justify-content: center; padding: 0; list-style: none; }
li { padding: 16px 24px; border-radius: $radius; background: #88888844; }"""

SLOGANS = {
    "app": ("Everything you need, in one tap.", "The app that stays out of your way.", "Small, fast and yours."),
    "cafe": ("Fresh coffee, warm bread, good company.", "Slow mornings start here.", "Roasted every day, by hand."),
    "studio": ("Design that speaks softly.", "We make ideas visible.", "Small team, careful work."),
    "band": ("New album out now.", "Loud songs for quiet people.", "On tour this summer."),
    "garden": ("Plants for every window.", "Grow something today.", "Green thumbs welcome."),
}
FEATURES = {
    "app": ("Fast", "Private", "Free", "Simple", "Offline"),
    "cafe": ("Coffee", "Cakes", "Breakfast", "Sandwiches", "Tea"),
    "studio": ("Branding", "Web", "Print", "Motion", "Photos"),
    "band": ("Music", "Dates", "Shop", "Videos", "Lyrics"),
    "garden": ("Herbs", "Flowers", "Trees", "Seeds", "Pots"),
}
ACTIONS = {
    "app": "Get started",
    "cafe": "See the menu",
    "studio": "Our work",
    "band": "Listen now",
    "garden": "Visit us",
}


def write_landing(plan: Plan, rng: random.Random) -> str:
    colors = _colors(plan)
    radius = _radius(rng)
    style = lines(
        fill(
            LANDING_STYLE,
            angle=rng.choice(("120deg", "135deg", "160deg", "to right")),
            size=rng.choice(("48px", "56px", "64px", "72px")),
            radius=radius,
            **colors,
        ),
        fill(FLOW, seconds=rng.choice(("6s", "8s", "10s", "12s"))) if plan.has("flow") else "",
        fill(CARDS, radius=radius) if plan.has("cards") else "",
    )
    cards = "".join(f"\n  <li>{feature}</li>" for feature in rng.sample(FEATURES[plan.style], 3))
    body = lines(
        f"<h1>{plan.title}</h1>",
        f"<p>{rng.choice(SLOGANS[plan.style])}</p>",
        f"<ul>{cards}\n</ul>" if plan.has("cards") else "",
        f'<a href="#">{ACTIONS[plan.style]}</a>',
    )
    return document(plan, style, body)


COUNTER = """\
const output = document.querySelector("output");
let value = $start;

function change(step) {
  value += step;
  $floor
  output.textContent = value;
}

document.querySelector("#up").addEventListener("click", () => change($step));
document.querySelector("#down").addEventListener("click", () => change(-$step));"""

RESET = """\
document.querySelector("#reset").addEventListener("click", () => change(-value));"""

KEYS = """\
addEventListener("keydown", (event) => {
  if (event.key === "ArrowUp") change($step);
  if (event.key === "ArrowDown") change(-$step);
});"""


def write_counter(plan: Plan, rng: random.Random) -> str:
    colors = _colors(plan)
    step = plan.count
    style = lines(
        fill(CENTRED, **colors),
        fill("output { color: $color; font: 700 $size system-ui; }", size=rng.choice(("96px", "120px")), **colors),
        fill(BUTTON, radius=_radius(rng), **colors),
    )
    buttons = lines(
        f'  <button id="down">-{step}</button>',
        '  <button id="reset">Reset</button>' if plan.has("reset") else "",
        f'  <button id="up">+{step}</button>',
    )
    body = lines(_heading(plan), "<output>0</output>", "<div>", buttons, "</div>")
    floor = "if (value < 0) value = 0;" if plan.has("positive") else ""
    code = lines(
        fill(COUNTER, start=0, step=step, floor=floor),
        RESET if plan.has("reset") else "",
        fill(KEYS, step=step) if plan.has("keys") else "",
    )
    return document(plan, style, body, code)


TODO_STYLE = """\
ul { padding: 0; list-style: none; text-align: left; }
li { display: flex; justify-content: space-between; padding: 10px 0; border-bottom: 1px solid $color; }
input { padding: 12px; border: 2px solid $color; border-radius: $radius; font: inherit; }"""

TODO_FORM = """\
<form>
  <input placeholder="$hint" required>
  <button>Add</button>
</form>
<ul></ul>"""

ADD = """\
function add(text) {
  const item = document.createElement("li");
  item.textContent = text;
  $done
  $remove
  list.append(item);
}"""

REMOVE = """\
const button = document.createElement("button");
button.textContent = "x";
button.onclick = () => {
  item.remove();
  $save
};
item.append(button);"""

SUBMIT = """\
form.addEventListener("submit", (event) => {
  event.preventDefault();
  add(input.value);
  form.reset();
  $save
});"""

SAVE = """\
// the list survives a reload
function save() {
  localStorage.setItem("todo", JSON.stringify([...list.children].map((item) => item.firstChild.textContent)));
}"""


def write_todo(plan: Plan, rng: random.Random) -> str:
    colors = _colors(plan)
    radius = _radius(rng)
    save = plan.has("save")
    style = lines(
        fill(CENTRED, **colors),
        fill(TODO_STYLE, radius=radius, **colors),
        fill(BUTTON, radius=radius, **colors),
        ".done { opacity: 0.5; text-decoration: line-through; }" if plan.has("done") else "",
    )
    hint = rng.choice(("What needs doing?", "New task", "Add a task", "What is next?"))
    code = paragraphs(
        lines(
            'const form = document.querySelector("form");',
            'const input = document.querySelector("input");',
            'const list = document.querySelector("ul");',
        ),
        SAVE if save else "",
        fill(
            ADD,
            done='item.onclick = () => item.classList.toggle("done");' if plan.has("done") else "",
            remove=fill(REMOVE, save="save();" if save else "") if plan.has("remove") else "",
        ),
        fill(SUBMIT, save="save();" if save else ""),
        'JSON.parse(localStorage.getItem("todo") || "[]").forEach(add);' if save else "",
    )
    heading = f"<h1>{plan.title}</h1>"
    return document(plan, style, lines(heading, fill(TODO_FORM, hint=hint)), code)


CLOCK = Family(
    name="clock",
    subjects=("a digital clock", "a clock page", "a live digital clock"),
    things="",
    group="",
    titles=("Clock", "Digital Clock", "What Time Is It", "Now"),
    write=write_clock,
    styles=("24-hour", "12-hour"),
    modules=("seconds", "date", "glow", "heading"),
    habits=("seconds",),
    moves=False,
    canvas=False,
)
LANDING = Family(
    name="landing",
    subjects=("a gradient landing page", "a landing page", "a simple landing page with a gradient"),
    things="",
    group="",
    titles=("Bluebird", "Lantern", "Northwind", "Paperboat", "Marigold", "Driftwood"),
    write=write_landing,
    styles=tuple(SLOGANS),
    modules=("flow", "cards"),
    colors=("purple", "blue", "magenta", "coral", "teal", "pink"),
    sometimes=("flow", "cards"),
    moves=False,
    canvas=False,
    script=False,
)
COUNTER_PAGE = Family(
    name="counter",
    subjects=("a counter", "a click counter", "a counter page with buttons"),
    things="step",
    group="",
    titles=("Counter", "Click Counter", "Count It", "Tally"),
    write=write_counter,
    counts=(1, 12),
    modules=("reset", "keys", "positive", "heading"),
    habits=("heading",),
    sometimes=("reset",),
    moves=False,
    canvas=False,
)
TODO = Family(
    name="todo",
    subjects=("a to-do list", "a todo list page", "a simple todo app"),
    things="",
    group="",
    titles=("To Do", "Today", "My Tasks", "Things to Do"),
    write=write_todo,
    modules=("done", "remove", "save"),
    habits=("remove",),
    sometimes=("done",),
    moves=False,
    canvas=False,
)

WIDGETS = (CLOCK, LANDING, COUNTER_PAGE, TODO)
