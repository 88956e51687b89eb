"""Answer one prompt without a screen: the answer to stdout or a file, everything else to stderr."""

from __future__ import annotations

import os
import sys
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

from dflash_tui.core.exit_codes import ExitCode
from dflash_tui.core.source import EngineFactory
from engine.commands import Ask, EngineOptions, GenerationSettings, Message
from engine.events import Event

from .output import FileOutput, Output, StandardOutput
from .problems import Problem, show_problem
from .render import JsonRenderer, Renderer, render_events, render_last_block, render_text
from .status import StatusLine
from .turn import run_turn

OutputFormat = Literal["text", "code", "json", "events"]


@dataclass(frozen=True, slots=True)
class Request:
    """One prompt, and how its answer is wanted."""

    prompt: str
    options: EngineOptions
    settings: GenerationSettings
    output_format: OutputFormat = "text"
    output_file: Path | None = None
    system: str | None = None
    timeout: float | None = None

    def ask(self) -> Ask:
        system = [Message("system", self.system)] if self.system else []
        return Ask(1, (*system, Message("user", self.prompt)), self.settings)


def answer(request: Request, engine: EngineFactory) -> ExitCode:
    """Run ``request`` and print its answer. Problems on the way are shown on stderr and decide the exit code; what
    was generated until then is printed all the same. Raises :class:`Problem` if nothing could begin."""
    output = _open_output(request.output_file)
    render, status = _renderer(request.output_format), StatusLine()

    def handle(event: Event) -> None:
        output.write(render(event))
        status.show(event)

    ending = run_turn(engine, request.options, request.ask(), handle, request.timeout)
    if ending.code is ExitCode.BROKEN_PIPE:
        silence_stdout()
        return ending.code
    problems = [ending.problem, _close(output)]
    status.finish()
    for problem in filter(None, problems):
        show_problem(problem)
    return next((problem.code for problem in problems if problem), ending.code)


def silence_stdout() -> None:
    """Point stdout nowhere, so that flushing it at exit does not complain about a reader that went away."""
    os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())


def _open_output(path: Path | None) -> Output:
    return StandardOutput() if path is None or str(path) == "-" else FileOutput(path)


def _close(output: Output) -> Problem | None:
    try:
        output.close()
    except Problem as problem:
        return problem
    return None


def _renderer(output_format: OutputFormat) -> Renderer:
    match output_format:
        case "text":
            return render_text
        case "code":
            return render_last_block
        case "json":
            return JsonRenderer()
        case "events":
            return render_events
