"""HTML samples: whole pages, every requested slot kept, scripts that a JavaScript engine and a browser accept."""

from __future__ import annotations

import random
import re
import shutil
import subprocess
from functools import cache
from pathlib import Path

import pytest

from engine.lab.demo.corpus import html
from engine.lab.demo.corpus.html.checker import SCRIPT
from engine.lab.demo.corpus.html.plan import Family
from engine.lab.demo.corpus.sample import Sample
from tests.e2e.browser import Browser, missing_browser


def draws(count: int, seed: int = 0) -> list[Sample]:
    rng = random.Random(seed)
    return [html.generate(rng) for _ in range(count)]


def family_draws(family: Family, count: int, seed: int = 0) -> list[Sample]:
    rng = random.Random(f"{family.name} {seed}")
    return [html.generate_family(rng, family) for _ in range(count)]


def page_of(sample: Sample) -> str:
    page = html.extract_page(sample.response)
    assert page is not None, sample.response
    return page


def one_of_each() -> list[Sample]:
    """At least two pages of every family, which together have every module, shape, style and kind of mouse."""
    chosen = []
    for family in html.FAMILIES:
        missing = {*family.modules, *family.mice, *family.shapes, *family.styles}
        for number, sample in enumerate(family_draws(family, 400)):
            new = missing & {*sample.combination.split("/")}
            if new or number < 2:
                chosen.append(sample)
                missing -= new
        assert not missing, (family.name, missing)
    return chosen


@pytest.mark.parametrize("family", html.FAMILIES, ids=lambda family: family.name)
def test_every_sample_passes_its_own_check(family: Family) -> None:
    for sample in family_draws(family, 80):
        verdicts = html.check(sample.response, sample.check)
        assert all(verdicts.values()), (verdicts, sample.prompt, sample.response)


@cache
def _drone_pages() -> list[Sample]:
    return family_draws(html.FAMILIES[0], 1000)


BREAKS = [
    ("valid", "\n```", ""),
    ("valid", "</html>", ""),
    ("valid", "</script>", ""),
    ("valid", "</head>\n", ""),
    ("valid", "function frame(", "function frame(("),
    ("valid", "const canvas = document.querySelector(\"canvas\");", "const canvas = document.querySelector(\"canvas);"),
    ("slot_count", "const count = ", "const count = 1"),
    ("slot_color", "const color = \"#", "const color = \"#0"),
    ("slot_background", "background: #", "background: #0"),
    ("slot_title", "<title>", "<title>My "),
    ("slot_shape", "ctx.closePath();", ""),
    ("slot_trails", "ctx.globalAlpha = 0", "ctx.globalAlpha = 1; // 0"),
    ("slot_speed", "const speed = ", "const speed = 1; // "),
    ("slot_mouse", "event.clientX", "0"),
    ("slot_links", "  link();", ""),
    ("slot_stars", "of stars)", "of none)"),
    ("slot_pause", "paused = !paused", "paused = false"),
    ("slot_heading", "<h1>", "<h1></h1><h2>"),
    ("slot_glow", "ctx.shadowBlur = 1", "ctx.shadowBlur = 0"),
    ("slot_pulse", "const size = ", "let size = "),
    ("slot_hud", "ctx.fillText(", "String("),
    ("slot_click", ".push(", ".concat("),
]  # fmt: skip


@pytest.mark.parametrize(("verdict", "old", "new"), BREAKS, ids=[f"{verdict} {old}" for verdict, old, _ in BREAKS])
def test_check_fails_what_is_broken(verdict: str, old: str, new: str) -> None:
    """The first drone page that has the part fails exactly when the part is taken away."""
    slot = verdict.removeprefix("slot_")
    sample = next(
        sample
        for sample in _drone_pages()
        if old in sample.response and (slot == "valid" or sample.check["slots"].get(slot) not in (None, False))
    )
    assert html.check(sample.response, sample.check)[verdict]
    broken = html.check(sample.response.replace(old, new), sample.check)
    assert not broken[verdict]
    assert slot == "valid" or not broken["slots"]


@pytest.mark.parametrize(
    "response", ["", "```html index.html\n", "I can't.", "```html\n<![x\n```", "```python\n1\n```"]
)
def test_check_survives_anything(response: str) -> None:
    for sample in draws(40, 9):
        assert not html.check(response, sample.check)["valid"]


@pytest.mark.skipif(shutil.which("node") is None, reason="needs node, which is not installed")
def test_scripts_parse_in_a_javascript_engine(tmp_path: Path) -> None:
    """All scripts in one file, each in a function of its own, so that node starts once."""
    scripts = [script for sample in one_of_each() for script in SCRIPT.findall(page_of(sample))]
    assert len(scripts) > 60
    bundle = tmp_path / "scripts.js"
    bundle.write_text("\n".join(f"function page{i}() {{\n{script}\n}}" for i, script in enumerate(scripts)))
    result = subprocess.run(["node", "--check", bundle], capture_output=True, text=True, timeout=60)
    assert result.returncode == 0, result.stderr


@pytest.mark.browser
@pytest.mark.ci
@pytest.mark.slow
def test_pages_run_in_a_browser_without_errors(tmp_path: Path) -> None:
    """A page of each family: no console errors, and every canvas moves."""
    if reason := missing_browser():
        pytest.skip(reason)
    path = tmp_path / "index.html"
    with Browser.started() as browser:
        for family in html.FAMILIES:
            for sample in family_draws(family, 1, seed=1):
                path.write_text(page_of(sample))
                report = browser.open_page(path)
                assert report.console_errors == [], (sample.prompt, report.console_errors)
                assert report.changed == family.canvas, sample.prompt


@pytest.mark.browser
def test_the_browser_reports_what_a_broken_page_does(tmp_path: Path) -> None:
    if reason := missing_browser():
        pytest.skip(reason)
    path = tmp_path / "index.html"
    with Browser.started() as browser:
        path.write_text("<canvas></canvas><script>missing();</script>")
        report = browser.open_page(path)
        assert re.search("missing is not defined", " ".join(report.console_errors))
        assert not report.changed
        path.write_text("<canvas></canvas><script></script>")
        assert browser.open_page(path).console_errors == []
