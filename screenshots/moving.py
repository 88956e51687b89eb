"""The moving picture of the README: a recorded run, shown to the chat a round at a time and drawn as one SVG in
which every row of the screen appears and goes as it did."""

from __future__ import annotations

import asyncio
import re
from collections.abc import Iterator, Sequence
from dataclasses import replace
from pathlib import Path

from dflash_tui.app.application import ChatApp
from dflash_tui.core.conversation.chat import Chat
from dflash_tui.core.desk.event_queue import EventQueue
from dflash_tui.core.replay.bundled import find_recording
from dflash_tui.core.replay.recording import read_recording
from dflash_tui.core.sessions.sessions import SessionLog
from dflash_tui.core.source import Capabilities, Emit
from engine.commands import Command, GenerationSettings
from engine.events import EngineReady, Event, PrefillDone, Step, TurnFinished, TurnStarted

QUESTION = "Write a quicksort in Python"
SIZE = (120, 32)
SETTLE = 0.35
"""Seconds after which the gauges have followed."""
ALONE, DRAFTED = 1, 2
"""The turns of the lesson's recording that the picture is made of."""
TYPED, ROUND, END = 0.04, 0.3, 5.0
"""Seconds that a typed letter, a round, and the end are on show."""
ROW = 24.4
"""Height of a row in Textual's pictures."""
SCREEN, CELLS = '-clip-terminal)">', '-matrix">'
"""Behind the first stand the cells' grounds, behind the second what is written in them."""
_PART = re.compile(r'<rect fill="[^>]*/>|<text class="terminal-[^>]*>[^<]*</text>')
_RULE = re.compile(r"\.terminal-\d+-r(\d+) \{([^}]*)\}")
_PLACE = re.compile(r' y="([\d.]+)"')
_GROUND = re.compile(r'<rect fill="([^"]*)" x="([\d.]+)" y="([\d.]+)" width="([\d.]+)" height="([\d.]+)"/>')


def recorded() -> tuple[EngineReady, list[Event], list[Step]]:
    """Who answered, the events of a quicksort as the lesson's recording has it, and its steps by the target alone."""
    events = list(read_recording(find_recording("lesson")).events())
    ready = next(event for event in events if isinstance(event, EngineReady))
    alone = [event for event in events if isinstance(event, Step) and event.turn == ALONE]
    told = TurnStarted | PrefillDone | Step | TurnFinished
    drafted = [replace(event, turn=1) for event in events if isinstance(event, told) and event.turn == DRAFTED]
    return ready, drafted, alone


def hold_against(chat: Chat, ready: EngineReady, alone: list[Step]) -> None:
    """Have the chat know what the target alone took, as if it had answered without speculation before."""
    chat.reducer.apply(ready)
    chat.reducer.apply(TurnStarted(0, 0, 0, {"speculation": False}))
    for step in alone:
        chat.reducer.apply(replace(step, turn=0))
    chat.reducer.apply(TurnFinished(0, "stop", ""))
    chat.reducer.take_spans()
    chat.reducer.stand_at(None)


class Shown:
    """A source that tells recorded events when it is told to."""

    capabilities = Capabilities()
    recording = None

    def __init__(self, emit: Emit) -> None:
        self.emit = emit

    def start(self) -> None: ...

    def send(self, command: Command) -> None: ...

    def join(self, timeout: float | None = None) -> None: ...


async def film(folder: Path) -> list[tuple[str, float]]:
    """Pictures of the screen, and for how many seconds each is on show."""
    ready, events, alone = recorded()
    shown: list[Shown] = []

    def source(emit: Emit) -> Shown:
        shown.append(Shown(emit))
        return shown[0]

    app = ChatApp(GenerationSettings(), folder, EventQueue(SessionLog.create(folder / "sessions")), source)
    frames: list[tuple[str, float]] = []
    async with app.run_test(size=SIZE) as pilot:

        async def take(seconds: float, settle: float = 0.05) -> None:
            await pilot.pause(settle)
            frames.append((app.export_screenshot(title="dflash-chat"), seconds))

        shown[0].emit(ready)
        await take(1.0, SETTLE)
        hold_against(app.chat_screen.chat, ready, alone)
        for letter in QUESTION:
            await pilot.press("space" if letter == " " else letter)
            await take(TYPED)
        await pilot.press("enter")
        for event in events:
            shown[0].emit(event)
            if isinstance(event, Step):
                await take(ROUND, SETTLE)
        await take(END, 2 * SETTLE)
    return frames


def animated(frames: Sequence[tuple[str, float]]) -> str:
    """One SVG of all pictures: what a row shows is in it once, with the times at which it is seen."""
    styles: dict[str, int] = {}
    rows: dict[tuple[int, str], list[int]] = {}
    for number, (svg, _) in enumerate(frames):
        for place, content in _rows(svg, styles):
            rows.setdefault((place, content), []).append(number)
    starts = [sum(seconds for _, seconds in frames[:number]) for number in range(len(frames) + 1)]
    first, last = frames[0][0], len(frames) - 1
    names: dict[tuple[int, ...], str] = {}
    drawn = []
    for (_place, content), seen in sorted(rows.items()):
        if len(seen) == len(frames):
            drawn.append(content)
            continue
        name = names.setdefault(tuple(seen), f"t{len(names)}")
        drawn.append(f'<g class="{name}{"" if last in seen else " gone"}">{content}</g>')
    length = starts[-1]
    timed = "\n".join(_times(name, seen, starts) for seen, name in names.items())
    head, body = first.split("</style>", 1)
    head = re.sub(r"\.terminal-\d+-r\d+ \{[^}]*\}\n?", "", head)
    looks = "\n".join(f".s{number} {{{rule}}}" for rule, number in styles.items())
    frame, grounds = body.split(SCREEN, 1)
    between, written = grounds.split(CELLS, 1)
    motion = "\n".join(f".{name} {{ animation: {name} {length:.2f}s step-end infinite }}" for name in names.values())
    still = ".gone { visibility: hidden }"  # who wants no motion sees the end
    moving = f"@media (prefers-reduced-motion: no-preference) {{\n{motion}\n}}"
    frame = re.sub(r'<clipPath id="terminal-\d+-line-.*?</clipPath>', "", frame, flags=re.DOTALL)
    inside = "\n".join([frame + SCREEN + _PART.sub("", between) + CELLS, *drawn, _PART.sub("", written)])
    return re.sub(r"\n\s*\n+", "\n", f"{head}{looks}\n{still}\n{timed}\n{moving}</style>{inside}")


def _rows(svg: str, styles: dict[str, int]) -> Iterator[tuple[int, str]]:
    """The rows of a picture with what stands in them, in looks that all pictures share."""
    rules = {number: rule.strip() for number, rule in _RULE.findall(svg)}
    found: dict[int, list[str]] = {}
    for part in _PART.findall(svg[svg.index(SCREEN) :]):
        place = _PLACE.search(part)
        if place is None or ">\n</text>" in part:
            continue
        part = re.sub(r' clip-path="[^"]*"| shape-rendering="[^"]*"', "", part)
        look = re.search(r'class="terminal-\d+-r(\d+)"', part)
        if look is not None:
            number = styles.setdefault(rules[look[1]], len(styles))
            part = part.replace(look[0], f'class="s{number}"')
        found.setdefault(int((float(place[1]) - 0.5) // ROW), []).append(part)
    for row, parts in found.items():
        yield row, joined("".join(parts))


def joined(row: str) -> str:
    """The same row with one rectangle for grounds of one colour side by side: half the bytes of a picture."""
    grounds: list[tuple[str, float, str, float, str]] = []
    for colour, left, top, width, height in _GROUND.findall(row):
        x, wide = float(left), float(width)
        if grounds and (colour, top, height) == grounds[-1][0::2] and abs(sum(grounds[-1][1::2]) - x) < 0.05:
            x, wide = grounds[-1][1], x + wide - grounds.pop()[1]
        grounds.append((colour, x, top, wide, height))
    drawn = (
        f'<rect fill="{colour}" x="{x:g}" y="{top}" width="{wide:g}" height="{height}"/>'
        for colour, x, top, wide, height in grounds
    )
    return "".join(drawn) + _GROUND.sub("", row)


def _times(name: str, seen: tuple[int, ...], starts: Sequence[float]) -> str:
    """When a row is to be seen, as keyframes."""
    steps, before = [], None
    for number in range(len(starts) - 1):
        now = "visible" if number in seen else "hidden"
        if now != before:
            steps.append(f"{100 * starts[number] / starts[-1]:.2f}%{{visibility:{now}}}")
        before = now
    return f"@keyframes {name} {{{''.join(steps)}}}"


def take_film(folder: Path, path: Path) -> None:
    """Record the run and write the picture."""
    path.write_text(animated(asyncio.run(film(folder))), "utf-8")
