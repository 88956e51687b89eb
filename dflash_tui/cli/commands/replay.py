"""``dflash-chat replay``: a recorded run on the same screen, or its text into a pipe."""

from __future__ import annotations

from pathlib import Path

import click

from dflash_tui.core.exit_codes import ExitCode
from dflash_tui.core.replay.bundled import (
    DEMO,
    DEMO_RECORDING,
    SHOWN,
    bundled_recordings,
    find_recording,
    latest_recording,
)
from dflash_tui.core.replay.recording import read_recording
from dflash_tui.core.replay.replay_source import FASTEST, SLOWEST
from dflash_tui.core.sessions.sessions import SessionLog
from dflash_tui.sources import replay_source
from engine.commands import GenerationSettings
from engine.events import TurnStarted

from ..flags.completing import among, recordings
from ..flags.screen import saved_screen_options, screen_flags, theme_flag
from ..headless.output import DEFAULT_OUT, StandardOutput
from ..headless.render import render_events, render_text
from ..logs import log_to_file
from ..problems import Problem, show_problem
from ..terminal.saying import say
from ..terminal.screen import has_screen


class Pace(click.ParamType[float]):
    """A multiple of the recorded pace, or ``max``."""

    name = "pace"

    def convert(self, value: object, param: click.Parameter | None, ctx: click.Context | None) -> float:
        if value == "max":
            return FASTEST
        try:
            pace = float(str(value))
        except ValueError:
            pace = 0.0
        if not SLOWEST <= pace <= FASTEST:
            self.fail(f"{value} is no pace: say max, or a number from {SLOWEST} to {FASTEST:.0f}.", param, ctx)
        return pace


@click.command(context_settings={"help_option_names": ["-h", "--help"]})
@click.argument("recording", default="", shell_complete=among(recordings, files=True))
@click.option(
    "--pace",
    type=Pace(),
    metavar="X",
    help=f"Times the recorded pace ({SLOWEST} and up), or max; by default 1, slower for a run of few seconds.",
)
@click.option("--stream-json", is_flag=True, help="Print every event as a line of JSON.")
@click.option("--last", is_flag=True, help="Play the conversation in which something was last said.")
@click.option("--list", "list_them", is_flag=True, help="Name the bundled recordings.")
@click.option(
    "--out", type=click.Path(path_type=Path), default=DEFAULT_OUT, metavar="DIR", help="Where the screen saves code."
)
@theme_flag("Colours of the screen.")
@screen_flags
def replay(
    recording: str, pace: float | None, stream_json: bool, last: bool, list_them: bool, out: Path, theme: str | None
) -> int:
    """Show a conversation again, as it was decoded. RECORDING is a file, a part of a conversation's id or name, the
    name of a bundled recording, or "demo". No model is loaded, and no GPU is needed. Into a pipe: the answers' text."""
    if list_them:
        shown = {DEMO: f"what is played where nothing is named: {DEMO_RECORDING}", **SHOWN}
        say("\n".join(f"{name:<14}{shown.get(name, '')}".rstrip() for name in (DEMO, *bundled_recordings())))
        return ExitCode.OK
    path = latest_recording() if last else find_recording(recording or DEMO)
    if stream_json or not has_screen():
        return _print(path, stream_json)
    log_to_file()
    return _show(path, pace, out, theme)


def _print(path: Path, stream_json: bool) -> int:
    """Print everything at once. One that is not whole is printed as far as it goes, and the exit code says so."""
    output, recording, turns = StandardOutput(), read_recording(path), 0
    for event in recording.events():
        if stream_json:
            output.write(render_events(event))
            continue
        if isinstance(event, TurnStarted):
            output.write("\n\n" if turns else "")
            turns += 1
        output.write(render_text(event))
    output.close()
    if recording.problem is None:
        return ExitCode.OK
    show_problem(Problem(recording.problem, ""))
    return ExitCode.GENERATION


def _show(path: Path, pace: float | None, out: Path, theme: str | None) -> int:
    # Imported here, like the chat: a pipe must not wait for Textual.
    from dflash_tui.app.main import run_chat

    source, nowhere = replay_source(path, pace), SessionLog.nowhere()
    return run_chat(source, GenerationSettings(), out, theme, log=nowhere, screen_options=saved_screen_options())
