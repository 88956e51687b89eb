"""Opens a saved page in headless Chromium, as a visitor would, and reports what it did.

Speaks the W3C WebDriver protocol to `chromedriver` with the standard library only.
"""

from __future__ import annotations

import base64
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

FRAME_GAP_S = 0.4
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


def open_page(path: Path, screenshot: Path | None = None) -> PageReport:
    """Open one saved page and watch it; see `Browser.open_page`."""
    with Browser.started() as browser:
        return browser.open_page(path, screenshot)


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

    def open_page(self, path: Path, screenshot: Path | None = None) -> PageReport:
        """Load a page, compare its canvas at two moments, and collect what the console says.

        A picture of the window is written to `screenshot` when one is given.
        """
        self._console_errors()  # what an earlier page left behind is not this page's fault
        self._post("url", url=path.resolve().as_uri())
        time.sleep(FRAME_GAP_S)
        before = self._run(CANVAS_PIXELS)
        time.sleep(FRAME_GAP_S)
        after = self._run(CANVAS_PIXELS)
        if screenshot:
            screenshot.write_bytes(base64.b64decode(_request("GET", f"{self._session_url}/screenshot")))
        return PageReport(self._console_errors(), changed=before != after)

    def _console_errors(self) -> list[str]:
        entries = self._post("se/log", type="browser")
        return [entry["message"] for entry in entries if entry["level"] == "SEVERE"]

    def _run(self, script: str) -> Any:
        return self._post("execute/sync", script=script, args=[])

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
    wanted = {"browserName": "chrome", "goog:chromeOptions": options, "goog:loggingPrefs": {"browser": "ALL"}}
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
