"""``make screenshots``: pictures of the real program, on the real engine and the bundled pair.

Each scene is what is asked, keys, and a moment to wait for. Textual exports the screen as SVG;
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
from dataclasses import dataclass
from pathlib import Path
from urllib.request import urlopen

from PIL import Image  # comes with cairosvg

from dflash_tui.app.application import ChatApp
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
SIZE = (120, 36)
MOVING = HERE / "run.svg"
COLOURS = 200
"""Colours of a PNG."""
PATIENCE = 300.0
"""Seconds to wait for the engine before a scene has failed."""


def answered(chat: Chat) -> bool:
    """The answer is complete."""
    return chat.reducer.turn is not None and not chat.busy


def raced(app: ChatApp) -> bool:
    """The lanes have been replayed to their end, and all runs are in."""
    screen = app.screen
    return isinstance(screen, RaceScreen) and screen.replayed and screen.race.complete


@dataclass(frozen=True)
class Scene:
    name: str
    asked: tuple[str, ...]
    keys: tuple[str, ...] = ()
    """Pressed when everything is answered."""
    shown: Callable[[ChatApp], bool] = lambda app: True
    """What the keys lead to."""
    recorded: bool = False
    """The lesson's recording answers, whatever else this machine does."""
    served: bool = False
    """The screen is a server's window, and its clients ask."""


SCENES = (
    Scene("steps", (QUESTION,), ("f3", *["left_curly_bracket"] * 6), recorded=True),
    Scene("race", ("Write a quicksort in Python",), ("f6",), raced),
    Scene("watch", ("What is 17 * 6?", "Write a quicksort in Python"), served=True),
)


class Clients:
    """A window on a server as the source of events, and clients that ask the server."""

    def __init__(self, engine: SourceFactory) -> None:
        self._engine = engine
        self._options = ServeOptions(port=0)
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
    clients = Clients(engine)
    source = clients.source if scene.served else Shown if scene.recorded else engine
    app = ChatApp(GenerationSettings(), folder, queue, source)
    async with app.run_test(size=SIZE) as pilot:

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
        for asked in scene.asked:
            if scene.served:
                await asyncio.to_thread(clients.ask, asked)
            else:
                await pilot.press(*asked, "enter")
            for event in events if scene.recorded else ():
                app.chat_screen.queue.put(event)
            await until(answered)
        await pilot.press(*scene.keys)
        async with asyncio.timeout(PATIENCE):
            while not scene.shown(app):
                await pilot.pause(0.02)
        await pilot.pause(0.5)  # gauges follow at their own, slower pace
        path = HERE / f"{scene.name}.svg"
        path.write_text(app.export_screenshot(title="dflash-chat"), "utf-8")
    return path


def to_png(svg: Path) -> Path | None:
    """Renders an SVG as PNG, half as large again, with headless Chromium, since not every page that quotes README.md
    draws the fonts of an SVG; None without Chromium."""
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
            png = to_png(svg)
            if png is not None:
                svg.unlink()  # README shows the picture
            print((png or svg).name)
    if not wanted or MOVING.stem in wanted:
        with tempfile.TemporaryDirectory() as folder:
            take_film(Path(folder), MOVING)
        print(MOVING.name)


if __name__ == "__main__":
    main()
