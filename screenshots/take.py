"""``make screenshots``: pictures of the real program, on the real engine and the bundled pair.

Each scene is a terminal size, what is asked, keys, and the moments to wait for. Textual exports the screen as SVG;
headless Chromium, where there is one, turns that into the PNG that the README shows.
"""

from __future__ import annotations

import asyncio
import json
import re
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from urllib.request import urlopen

from PIL import Image  # comes with cairosvg

from dflash_tui.app.application import ChatApp
from dflash_tui.app.chat.screen import ChatScreen
from dflash_tui.app.screens.race import RaceScreen
from dflash_tui.cli.commands.serve import about
from dflash_tui.core.conversation.chat import Chat
from dflash_tui.core.desk.event_queue import EventQueue
from dflash_tui.core.sessions.sessions import SessionLog
from dflash_tui.core.source import Emit, Source, SourceFactory
from dflash_tui.serve.server import ServeOptions, Serving
from dflash_tui.serve.watch import WatchSource
from dflash_tui.sources import engine_source
from engine.commands import EngineOptions, GenerationSettings

from .moving import QUESTION, Shown, hold_against, recorded, take_film

HERE = Path(__file__).parent
MOVING = HERE / "run.svg"
AS_PNG = ("steps", "race", "watch")
"""Scenes that README.md shows as PNG: not every page that quotes it draws the fonts of an SVG."""
COLOURS = 200
"""Colours of a PNG."""
PATIENCE = 300.0
"""Seconds to wait for the engine before a scene has failed."""


def answered(chat: Chat) -> bool:
    """The answer is complete."""
    return chat.reducer.turn is not None and not chat.busy


def streaming(chat: Chat) -> bool:
    """The answer is well under way."""
    return chat.reducer.turn is not None and chat.reducer.turn.acceptance.num_spec_steps >= 30


def raced(app: ChatApp) -> bool:
    """The lanes have been replayed to their end, and all runs are in."""
    screen = app.screen
    return isinstance(screen, RaceScreen) and screen.replayed and screen.race.complete


def replaying(app: ChatApp) -> bool:
    """A recorded answer is well under way."""
    return isinstance(app.screen, ChatScreen) and app.screen is not app.chat_screen and streaming(app.screen.chat)


@dataclass(frozen=True)
class Scene:
    name: str
    size: tuple[int, int]
    asked: str | tuple[str, ...]
    """Questions, and commands, which wait for nothing."""
    moment: Callable[[Chat], bool] = answered
    theme: str | None = None
    settings: GenerationSettings = field(default_factory=GenerationSettings)
    keys: tuple[str, ...] = ()
    """Pressed when the moment has come."""
    shown: Callable[[ChatApp], bool] = lambda app: True
    """What the keys lead to, or the last command."""
    recorded: bool = False
    """The lesson's recording answers, whatever else this machine does."""
    served: bool = False
    """The screen is a server's window, and its clients ask."""


SCENES = (
    Scene("chat", (120, 36), "Write a quicksort in Python"),
    Scene("page", (120, 36), "create a single-file HTML animation of a drone swarm", streaming),
    Scene("sampling", (120, 36), "Explain what a drafter is", settings=GenerationSettings(temperature=0.8, seed=7)),
    Scene("narrow", (80, 24), "Write a quicksort in Python"),
    Scene("light", (120, 36), "Write a quicksort in Python", theme="dflash-light"),
    Scene("steps", (120, 36), QUESTION, keys=("f3", *["left_curly_bracket"] * 6), recorded=True),
    Scene("slow-motion", (120, 36), "Write a quicksort in Python", keys=("f5", *["right_square_bracket"] * 2)),
    Scene("presenter", (120, 36), "Write a quicksort in Python", keys=("f8", *["right_square_bracket"] * 4)),
    Scene("statistics", (120, 36), ("Write a quicksort in Python", "/stats")),
    Scene("help", (120, 36), "/help"),
    Scene("race", (120, 36), "Write a quicksort in Python", keys=("f6",), shown=raced),
    Scene("replay", (120, 36), "/replay html", shown=replaying),
    Scene("first", (120, 36), (), keys=("shift+tab",)),
    Scene("lesson", (120, 36), "/lesson", keys=("right", "right")),
    Scene("watch", (120, 36), ("What is 17 * 6?", "Write a quicksort in Python"), served=True),
    Scene(
        "sessions",
        (120, 36),
        (
            "Write a quicksort in Python",
            "/new",
            "What is speculative decoding?",
            "/rename Drafts",
            "/new",
            "What is 17 + 26?",
        ),
        keys=("ctrl+o",),
    ),
)


class Clients:
    """A window on a server as the source of events, and clients that ask the server."""

    def __init__(self, engine: SourceFactory, settings: GenerationSettings) -> None:
        self._engine = engine
        self._options = ServeOptions(port=0, defaults=settings)
        self._url = ""

    def source(self, emit: Emit) -> Source:
        return WatchSource(emit, self._serve, lambda serving: about(serving, self._options))

    def _serve(self, mirror: Emit) -> Serving:
        serving = Serving(self._engine, self._options, mirror, lambda *_: None)
        self._url = serving.url
        return serving

    def ask(self, question: str) -> None:
        body = json.dumps({"messages": [{"role": "user", "content": question}]}).encode()
        urlopen(f"{self._url}/v1/chat/completions", body, timeout=PATIENCE).close()


async def take(scene: Scene, folder: Path) -> Path:
    """Plays a scene and returns the SVG. Raises ``TimeoutError`` when its moment doesn't come."""
    queue = EventQueue(SessionLog.create(folder / "sessions"))
    engine = engine_source(EngineOptions(device="cpu"))
    clients = Clients(engine, scene.settings)
    source = clients.source if scene.served else Shown if scene.recorded else engine
    app = ChatApp(scene.settings, folder, queue, source, scene.theme)
    async with app.run_test(size=scene.size) as pilot:

        async def until(moment: Callable[[Chat], bool]) -> None:
            async with asyncio.timeout(PATIENCE):
                while not moment(app.chat_screen.chat):
                    await pilot.pause(0.02)

        if scene.recorded:
            ready, events, alone = recorded()
            app.chat_screen.queue.put(ready)
        await until(lambda chat: chat.reducer.ready is not None)
        if scene.recorded:
            hold_against(app.chat_screen.chat, ready, alone)
        for asked in (scene.asked,) if isinstance(scene.asked, str) else scene.asked:
            if scene.served:
                await asyncio.to_thread(clients.ask, asked)
            else:
                await pilot.press(*asked, "enter")
            for event in events if scene.recorded else ():
                app.chat_screen.queue.put(event)
            if not asked.startswith("/"):
                await until(scene.moment)
        await pilot.press(*scene.keys)
        async with asyncio.timeout(PATIENCE):
            while not scene.shown(app):
                await pilot.pause(0.02)
        await pilot.pause(0.5)  # gauges follow at their own, slower pace
        path = HERE / f"{scene.name}.svg"
        path.write_text(app.export_screenshot(title="dflash-chat"), "utf-8")
    return path


def to_png(svg: Path) -> Path | None:
    """Renders an SVG that README.md shows as PNG, half as large again, with headless Chromium; None for another, or
    without Chromium."""
    if svg.stem not in AS_PNG:
        return None
    browser = shutil.which("chromium") or shutil.which("chromium-browser") or shutil.which("google-chrome")
    box = re.search(r'viewBox="0 0 ([\d.]+) ([\d.]+)"', svg.read_text("utf-8"))
    if browser is None or box is None:
        return None
    width, height = (round(float(side)) for side in box.groups())
    png = svg.with_suffix(".png")
    with tempfile.TemporaryDirectory() as profile:
        page = Path(profile) / "page.html"
        page.write_text(f'<body style="margin:0"><img src="{svg.as_uri()}" width="{width}" height="{height}">')
        command = [browser, "--headless", "--no-sandbox", "--disable-gpu", "--disable-quic", "--no-first-run"]
        command += ["--disable-background-networking", "--disable-component-update", "--disable-sync"]
        command += [f"--user-data-dir={profile}", "--hide-scrollbars", "--allow-file-access-from-files"]
        command += ["--force-device-scale-factor=1.5", f"--window-size={width},{height}", f"--screenshot={png}"]
        subprocess.run([*command, page.as_uri()], check=True, capture_output=True, timeout=PATIENCE)
    with Image.open(png) as picture:
        fewer = picture.convert("RGB").quantize(COLOURS, dither=Image.Dither.NONE)
    fewer.save(png, optimize=True)
    return png


def main() -> None:
    wanted = set(sys.argv[1:])
    for scene in SCENES:
        if not wanted or scene.name in wanted:
            with tempfile.TemporaryDirectory() as folder:
                svg = asyncio.run(take(scene, Path(folder)))
            print(svg.name, *(png.name for png in [to_png(svg)] if png))
    if not wanted or MOVING.stem in wanted:
        with tempfile.TemporaryDirectory() as folder:
            take_film(Path(folder), MOVING)
        print(MOVING.name)


if __name__ == "__main__":
    main()
