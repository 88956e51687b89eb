"""``dflash-chat doctor``: what this machine can run, as a list for people or as JSON for a bug report."""

from __future__ import annotations

import json
import os
import shutil
import sys
from collections.abc import Iterable, Iterator
from dataclasses import asdict, replace
from typing import Any

import click

from dflash_tui.core.advice import as_command
from dflash_tui.core.exit_codes import ExitCode, exit_code_for
from dflash_tui.core.files.places import log_file, sessions_directory
from dflash_tui.core.settings.config import config_directory, user_file
from dflash_tui.core.text.harmless import in_line
from dflash_tui.core.version import PROGRAM, installed_version
from dflash_tui.sources import require_folder
from engine.errors import worded
from engine.tools.doctor import Finding, examine
from engine.tools.gpus import CARDS, first_gpu, planned_gpu

from ..problems import Problem
from ..sizes import size_lines, size_objects
from ..terminal.saying import say

_MARKS = {"ok": " ", "note": "!", "broken": "✗"}
_NAME_WIDTH = 18
_SMALLEST_SIZE = (80, 24)


@click.command(context_settings={"help_option_names": ["-h", "--help"]})
@click.option("--json", "as_json", is_flag=True, help="Print one JSON object.")
@click.option("--memory", metavar="GB|CARD", help="Only say what would fit on such a card: 24, or 4090.")
def doctor(as_json: bool, memory: str | None) -> int:
    """Look at the GPU, the packages, the models and the terminal, and say which models fit. Nothing is sent anywhere.

    The exit code is 0 unless something is broken that the bundled pair needs, or with which the hub can't be asked.
    """
    if memory is not None:
        return _plan_for(memory, as_json)
    require_folder()
    findings = []
    for finding in all_findings():
        findings.append(finding)
        if not as_json:
            _print_line(finding, new_section=len(findings) == 1 or findings[-2].section != finding.section)
    gpu, pace = first_gpu(), _pace(findings)
    if as_json:
        say(json.dumps({**_as_object(findings), "sizes": size_objects(gpu, pace)}, indent=2))
    else:
        say("\n".join(["sizes", *(f"  {line}" for line in size_lines(gpu, pace))]))
    broken = [finding for finding in findings if finding.standing == "broken"]
    return exit_code_for(broken[0].kind) if broken else ExitCode.OK


def _pace(findings: Iterable[Finding]) -> int | None:
    """Bytes that the memory of the first GPU was measured to read in a second."""
    return next((each.value.get("read_per_second_bytes") for each in findings if each.name == "cuda:0"), None)


def _plan_for(what: str, as_json: bool) -> int:
    """Print what fits on a card that may be elsewhere, by its name or its memory in GB."""
    gpu = planned_gpu(what)
    if gpu is None:
        cards = ", ".join(card.name for card in CARDS)
        raise Problem(f"{what!r} is neither a size in GB nor a card that is known.", f"Cards: {cards}.")
    say(
        json.dumps({"card": asdict(gpu), "sizes": size_objects(gpu)}, indent=2)
        if as_json
        else "\n".join(size_lines(gpu))
    )
    return ExitCode.OK


def all_findings() -> Iterator[Finding]:
    for package in (PROGRAM, "textual"):
        yield Finding("versions", package, installed_version(package))
    yield from (replace(finding, hint=worded(finding.hint, as_command)) for finding in examine())
    yield from _places()
    yield from _terminal()


def _places() -> Iterator[Finding]:
    yield Finding("places", "configuration", str(user_file()) if user_file() else None)
    yield Finding("places", "themes", str(config_directory() / "themes"))
    yield Finding("places", "conversations", str(sessions_directory()))
    yield Finding("places", "log", str(log_file()))


def _terminal() -> Iterator[Finding]:
    """Findings on the terminal, by what the environment tells: asking it would need it in raw mode."""
    if not sys.stdout.isatty():
        yield Finding("terminal", "size", None, "note", "stdout is no terminal: only headless mode works here.")
        return
    size = shutil.get_terminal_size()
    small = size.columns < _SMALLEST_SIZE[0] or size.lines < _SMALLEST_SIZE[1]
    hint = "The chat is made for 80x24 and more." if small else ""
    yield Finding("terminal", "size", f"{size.columns}x{size.lines}", "note" if small else "ok", hint)
    yield Finding("terminal", "TERM", os.environ.get("TERM"))
    yield Finding("terminal", "program", os.environ.get("TERM_PROGRAM"))
    yield Finding("terminal", "colours", _colours())
    utf8 = (sys.stdout.encoding or "").lower().replace("-", "") == "utf8"
    hint = "" if utf8 else "Set a UTF-8 locale, such as LANG=C.UTF-8."
    yield Finding("terminal", "encoding", sys.stdout.encoding, "ok" if utf8 else "note", hint)


def _colours() -> str:
    if os.environ.get("NO_COLOR"):
        return "none (NO_COLOR)"
    if os.environ.get("COLORTERM", "").lower() in ("truecolor", "24bit"):
        return "16 million"
    return "256" if "256" in os.environ.get("TERM", "") else "16"


def _as_object(findings: Iterable[Finding]) -> dict[str, Any]:
    sections: dict[str, dict[str, Any]] = {}
    for finding in findings:
        sections.setdefault(finding.section, {})[finding.name] = finding.value
    remarks = [
        {"about": f"{finding.section}.{finding.name}", "standing": finding.standing, "hint": finding.hint}
        for finding in findings
        if finding.standing != "ok"
    ]
    return {**sections, "remarks": remarks}


def _print_line(finding: Finding, *, new_section: bool) -> None:
    if new_section:
        say(finding.section)
    say(f"{_MARKS[finding.standing]} {_label(finding.name):<{_NAME_WIDTH}} {_text(finding.name, finding.value)}")
    if finding.hint:
        say(f"  {'':<{_NAME_WIDTH}} {finding.hint}")


def _label(name: str) -> str:
    return in_line(name.removesuffix("_bytes").replace("_", " "))


def _text(name: str, value: Any) -> str:
    match value:
        case dict():
            return ", ".join(f"{_label(key)} {_text(key, item)}" for key, item in value.items())
        case bool():
            return "yes" if value else "no"
        case int() if name.endswith("bytes"):
            return (
                f"{value / 1e12:.2f} TB"
                if value >= 1e12
                else f"{value / 1e9:.1f} GB"
                if value >= 1e9
                else f"{value / 1e6:.1f} MB"
            )
        case None:
            return "-"
        case _:
            return in_line(str(value))
