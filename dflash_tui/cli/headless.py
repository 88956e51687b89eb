"""Answer one prompt without a screen: the answer to stdout or a file, everything else to stderr."""

from __future__ import annotations

import sys
from dataclasses import dataclass, field
from pathlib import Path
from typing import Literal

from dflash_tui.core.exit_codes import ExitCode
from dflash_tui.core.files.saving import SavingError, save_block
from dflash_tui.core.sessions.sessions import Conversation, SessionLog
from dflash_tui.core.source import SourceFactory, Wanted
from dflash_tui.core.text.fences import CodeBlock, find_blocks
from engine.commands import Ask, GenerationSettings, Message
from engine.events import Event, TurnFinished

from .output import FileOutput, Output, StandardOutput, show_on_stderr
from .problems import Problem, show_problem
from .render import JsonRenderer, Renderer, render_events, render_last_block, render_text
from .status import StatusLine
from .streams import silence_stdout
from .turn import run_turn

OutputFormat = Literal["text", "code", "json", "events"]


@dataclass(frozen=True, slots=True)
class Request:
    """One prompt, and how its answer is wanted."""

    prompt: str
    settings: GenerationSettings
    output_format: OutputFormat = "text"
    output_file: Path | None = None
    system: str | None = None
    timeout: float | None = None
    save_dir: Path | None = None
    """Where every code block of the answer is saved."""
    earlier: Conversation | None = None
    """The conversation that this prompt goes on with."""
    log: SessionLog | None = None
    """Its record."""
    wanted: Wanted = field(default_factory=dict)
    """Settings that were asked for: a source that lacks one is not asked."""

    def ask(self) -> Ask:
        system = self.system or (self.earlier.system if self.earlier else None)
        messages = [Message("system", system)] if system else []
        messages += self.earlier.messages() if self.earlier else ()
        turn = self.earlier.last_turn + 1 if self.earlier else 1
        return Ask(turn, (*messages, Message("user", self.prompt)), self.settings)


def answer(request: Request, source: SourceFactory) -> ExitCode:
    """Run ``request`` and print what came; problems decide the exit code. :class:`Problem` if nothing could begin."""
    output = _open_output(request.output_file)
    render, status, blocks = _renderer(request.output_format), StatusLine(), BlockCollector(request)
    ask = request.ask()

    def handle(event: Event) -> None:
        if request.log is not None:
            request.log.record(event)
        output.write(render(event))
        status.show(event)
        blocks.note(event)

    if request.log is not None:
        request.log.user(ask.turn, request.prompt, request.system)
    ending = run_turn(source, ask, handle, request.timeout, request.wanted)
    if request.log is not None:
        request.log.close()
    if ending.code is ExitCode.BROKEN_PIPE:
        silence_stdout()
        return ending.code
    problems = [ending.problem, _close(output)]
    status.finish()
    problems.append(blocks.save())
    for problem in filter(None, problems):
        show_problem(problem)
    return next((problem.code for problem in problems if problem), ending.code)


class BlockCollector:
    """What a script is promised about code: blocks are saved, and an answer without one is told as a failure."""

    def __init__(self, request: Request) -> None:
        self._directory = request.save_dir
        self._wanted = request.save_dir is not None or request.output_format == "code"
        self._printed = request.output_format != "code"
        self._text: str | None = None

    def note(self, event: Event) -> None:
        if isinstance(event, TurnFinished):
            self._text = event.text

    def save(self) -> Problem | None:
        """Called when the turn has ended. The files' names go to stderr."""
        if not self._wanted or self._text is None:
            return None
        blocks = find_blocks(self._text)
        if not blocks:
            if not self._printed:
                show_on_stderr(self._text)
            hint = "Ask for code in the prompt, or leave -x and --save-dir out."
            return Problem("The answer has no code block.", hint, ExitCode.GENERATION)
        if not blocks[-1].closed:
            print("The last code block has no end: this is what is there of it.", file=sys.stderr)
        return _save_all(blocks, self._directory) if self._directory is not None else None


def _save_all(blocks: list[CodeBlock], directory: Path) -> Problem | None:
    try:
        for block in blocks:
            print(f"saved {save_block(block, directory)}", file=sys.stderr)
    except SavingError as error:
        return Problem(str(error), error.hint)
    return None


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
