"""Opens a saved page in headless Chromium, as a visitor would, and reports what it did.

Speaks the W3C WebDriver protocol to `chromedriver` with the standard library only.
"""

from __future__ import annotations

import json
import re
import shutil
import subprocess
import tempfile
import time
import urllib.error
import urllib.request
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

LOGS = {"browser": "ALL", "performance": "ALL"}
FRAME_GAP_S, POLL_S = 0.4, 0.05
REQUEST_TIMEOUT_S = 60

CHROMIUM_ARGUMENTS = (
    "--headless",
    "--no-sandbox",
    "--disable-gpu",
    "--disable-quic",
    "--no-first-run",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
    "--window-size=960,600",
)

# The canvas as a data URL: equal strings are equal pixels. A page without a canvas gives an empty string.
CANVAS_PIXELS = "const canvas = document.querySelector('canvas'); return canvas ? canvas.toDataURL() : '';"


@dataclass(frozen=True, slots=True)
class PageReport:
    """What a page did in its first moments."""

    console_errors: list[str]
    """Messages of level SEVERE: uncaught exceptions, console.error, failed loads."""
    changed: bool
    """Whether the pixels of its canvas differ between two moments 400 ms apart; false without a canvas."""


def missing_browser() -> str | None:
    """Why no page can be opened on this machine, or None when it can."""
    if _find_chromium() is None:
        return "needs Chromium, which is not installed"
    if shutil.which("chromedriver") is None:
        return "needs chromedriver, which is not installed"
    return None


def open_page(path: Path) -> PageReport:
    """Open one saved page, compare its canvas at two moments, and collect what the console says."""
    with Browser.started() as browser:
        browser.visit(path)
        time.sleep(FRAME_GAP_S)
        before = browser.run(CANVAS_PIXELS)
        time.sleep(FRAME_GAP_S)
        after = browser.run(CANVAS_PIXELS)
        return PageReport(browser.console_errors(), changed=before != after)


class Browser:
    """One headless Chromium, for as many pages as one likes."""

    def __init__(self, session_url: str) -> None:
        self._session_url = session_url

    @classmethod
    @contextmanager
    def started(cls) -> Iterator[Browser]:
        """Start chromedriver and a browser with a fresh profile; both end with the block."""
        with tempfile.TemporaryDirectory(prefix="page-profile-", ignore_cleanup_errors=True) as profile:
            driver = subprocess.Popen(
                ["chromedriver", "--port=0"], stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True
            )
            try:
                session_url = _new_session(f"http://127.0.0.1:{_port(driver)}", Path(profile))
                try:
                    yield cls(session_url)
                finally:
                    _request("DELETE", session_url)
            finally:
                driver.terminate()
                driver.wait(timeout=REQUEST_TIMEOUT_S)
                if driver.stdout:
                    driver.stdout.close()

    def visit(self, path: Path, width: int = 960, scheme: str = "dark") -> None:
        """Load a page in a window so wide, for a reader who prefers that colour scheme."""
        self.command("Emulation.setDeviceMetricsOverride", width=width, height=800, deviceScaleFactor=1, mobile=False)
        self.command("Emulation.setEmulatedMedia", features=[{"name": "prefers-color-scheme", "value": scheme}])
        self.requests()
        self.console_errors()
        self._post("url", url=path.resolve().as_uri())

    def press(self, *keys: str) -> None:
        """Type on the focused element: characters, or the W3C codes of other keys."""
        actions = [{"type": kind, "value": key} for key in keys for kind in ("keyDown", "keyUp")]
        self._post("actions", actions=[{"type": "key", "id": "keyboard", "actions": actions}])

    def hover(self, x: int, y: int) -> None:
        """Move the mouse to a place in the window."""
        move = {"type": "pointerMove", "duration": 0, "x": x, "y": y}
        self._post("actions", actions=[{"type": "pointer", "id": "mouse", "actions": [move]}])

    def run(self, script: str) -> Any:
        """What a script returns; it runs in the page."""
        return self._post("execute/sync", script=script, args=[])

    def wait_for(self, script: str, seconds: float = 60.0) -> None:
        """Until a script, which begins with ``return``, returns something true. Raises ``TimeoutError``."""
        deadline = time.monotonic() + seconds
        while not self.run(script):
            if time.monotonic() > deadline:
                raise TimeoutError(script)
            time.sleep(0.05)

    def command(self, name: str, **parameters: Any) -> Any:
        """A command of Chromium's own protocol."""
        return self._post("goog/cdp/execute", cmd=name, params=parameters)

    def requests(self) -> list[str]:
        """Addresses that pages asked for since the last call."""
        messages = [json.loads(entry["message"])["message"] for entry in self._post("se/log", type="performance")]
        return [
            message["params"]["request"]["url"]
            for message in messages
            if message["method"] == "Network.requestWillBeSent"
        ]

    def console_errors(self) -> list[str]:
        """Messages of level SEVERE since the last call."""
        entries = self._post("se/log", type="browser")
        return [entry["message"] for entry in entries if entry["level"] == "SEVERE"]

    def _post(self, command: str, **body: Any) -> Any:
        return _request("POST", f"{self._session_url}/{command}", body)


def _find_chromium() -> str | None:
    return next(
        (path for name in ("chromium", "chromium-browser", "google-chrome") if (path := shutil.which(name))), None
    )


def _port(driver: subprocess.Popen[str]) -> int:
    """The port that chromedriver says it has chosen."""
    assert driver.stdout is not None
    for line in driver.stdout:
        if found := re.search(r"started successfully on port (\d+)", line):
            return int(found[1])
    raise RuntimeError("chromedriver ended before it was ready")


def _new_session(driver_url: str, profile: Path) -> str:
    options = {"binary": _find_chromium(), "args": [*CHROMIUM_ARGUMENTS, f"--user-data-dir={profile}"]}
    wanted = {"browserName": "chrome", "goog:chromeOptions": options, "goog:loggingPrefs": LOGS}
    session = _request("POST", f"{driver_url}/session", {"capabilities": {"alwaysMatch": wanted}})
    return f"{driver_url}/session/{session['sessionId']}"


def _request(method: str, url: str, body: dict[str, Any] | None = None) -> Any:
    """One WebDriver command; its error message becomes a RuntimeError."""
    data = None if body is None else json.dumps(body).encode()
    request = urllib.request.Request(url, data, {"Content-Type": "application/json"}, method=method)
    opener = urllib.request.build_opener(urllib.request.ProxyHandler({}))  # the driver is on this machine
    try:
        with opener.open(request, timeout=REQUEST_TIMEOUT_S) as answer:
            return json.load(answer)["value"]
    except urllib.error.HTTPError as error:
        raise RuntimeError(json.load(error)["value"]["message"]) from error
