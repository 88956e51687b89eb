"""Answer one prompt without a screen: the answer to stdout or a file, everything else to stderr."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Literal

from dflash_tui.core.attachments.attachment import Attachment
from dflash_tui.core.attachments.attachment_reader import AttachmentError, checked
from dflash_tui.core.conversation.context import Ruler, fit
from dflash_tui.core.conversation.question_context import QuestionContext, messages_of
from dflash_tui.core.conversation.turn import Turn
from dflash_tui.core.exit_codes import ExitCode
from dflash_tui.core.files.saving import SavingError, save_block
from dflash_tui.core.sessions.sessions import Conversation, SessionLog
from dflash_tui.core.source import Source, SourceFactory, Wanted
from dflash_tui.core.text.counted import counted
from dflash_tui.core.text.fences import CodeBlock, find_blocks
from dflash_tui.core.text.harmless import in_line
from engine.commands import Ask, GenerationSettings
from engine.events import EngineReady, Event, TurnFinished

from ..problems import Problem, show_problem
from ..terminal.saying import remark
from ..terminal.streams import silence_stdout
from .output import FileOutput, Output, StandardOutput, show_on_stderr
from .render import JsonRenderer, Renderer, render_events, render_last_block, render_text
from .status import ProgressLine
from .turn import run_turn

OutputFormat = Literal["text", "code", "json", "events"]
RENDERERS: dict[OutputFormat, Callable[[], Renderer]] = {
    "text": lambda: render_text, "code": lambda: render_last_block, "events": lambda: render_events,
    "json": JsonRenderer,
}  # fmt: skip
WhenFull = Literal["stop", "drop"]
"""What becomes of a prompt that no longer fits behind a conversation: none is asked, or the oldest questions go."""


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
    """The folder for the answer's code blocks, of which each is saved; None to save none."""
    earlier: Conversation | None = None
    """The conversation that this prompt goes on with."""
    log: SessionLog | None = None
    """The record of that conversation."""
    wanted: Wanted = field(default_factory=dict)
    """Settings that were asked for: a source that lacks one is not asked."""
    force: bool = False
    """Whether ``output_file`` may be replaced."""
    files: tuple[Attachment, ...] = ()
    """Files that go with the prompt."""
    when_full: WhenFull = "stop"

    @property
    def turn(self) -> int:
        return self.earlier.last_turn + 1 if self.earlier else 1

    def prepare(self, source: Source, ready: EngineReady) -> Ask:
        """The question with what fits beside it, which is written to the log. Raises :class:`Problem` where none
        fits."""
        ruler = Ruler(source.capabilities.count, lambda: self.settings)
        context = self._fitting(self._counted(ruler, ready.max_context), ruler, ready.max_context)
        if self.log is not None:
            self.log.user(self.turn, self.prompt, self.system, context=context)
        return Ask(self.turn, messages_of(self._earlier_turns, self._system, self.prompt, context), self.settings)

    @property
    def _earlier_turns(self) -> Sequence[Turn]:
        return self.earlier.turns if self.earlier else ()

    @property
    def _system(self) -> str | None:
        return self.system or (self.earlier.system if self.earlier else None)

    def _counted(self, ruler: Ruler, limit: int) -> QuestionContext:
        """The files with their tokens. Raises :class:`Problem` for what no context holds."""
        try:
            return QuestionContext(checked(self.files, limit, ruler.text))
        except AttachmentError as error:
            raise Problem(str(error), error.hint) from error

    def _fitting(self, context: QuestionContext, ruler: Ruler, limit: int) -> QuestionContext:
        """What fits is asked as it is; so is a prompt without a conversation before it, which the engine may refuse."""
        if self.earlier is None:
            return context
        fitted = fit(self._earlier_turns, self._system, self.prompt, limit, ruler.prompt, context)
        if not fitted.left_out:
            return context
        if self.when_full == "stop":
            if fitted.tokens < fitted.limit:
                return context
            tokens = counted(fitted.tokens, "token")
            words = f"The conversation has {tokens} with this question, and the context holds {limit:,}."
            raise Problem(words, "Leave its oldest questions out with --when-full drop, or make room with --context.")
        gone = counted(len(fitted.left_out), "oldest question")
        remark(f"Left out to fit the context of {limit:,} tokens: the {gone}.")
        return replace(context, left_out=fitted.left_out)


def answer(request: Request, source: SourceFactory) -> ExitCode:
    """Run ``request`` and print what came; problems decide the exit code. :class:`Problem` if nothing could begin."""
    output = _open_output(request.output_file, request.force)
    render, status, blocks = RENDERERS[request.output_format](), ProgressLine(), BlockCollector(request)

    def handle(event: Event) -> None:
        if request.log is not None:
            request.log.record(event)
        output.write(render(event))
        status.show(event)
        blocks.note(event)

    ending = run_turn(source, request.prepare, handle, request.timeout, request.wanted, output)
    if request.log is not None:
        request.log.close()
    if ending.code is ExitCode.BROKEN_PIPE:
        silence_stdout()
        return ending.code
    problems = [ending.problem, ending.unwritten]
    status.finish()
    problems.append(blocks.save())
    for problem in filter(None, problems):
        show_problem(problem)
    return next((problem.code for problem in problems if problem), ending.code)


class BlockCollector:
    """Sees to what scripts are promised about code: blocks are saved, and an answer without one is told as a
    failure."""

    def __init__(self, request: Request) -> None:
        self._directory = request.save_dir
        self._wanted = request.save_dir is not None or request.output_format == "code"
        self._printed = request.output_format != "code"
        self._text: str | None = None

    def note(self, event: Event) -> None:
        if isinstance(event, TurnFinished):
            self._text = event.text

    def save(self) -> Problem | None:
        """Save the blocks of an answer that has ended, and print the files' names on stderr; returns what went
        wrong."""
        if not self._wanted or self._text is None:
            return None
        blocks = find_blocks(self._text)
        if not blocks:
            if not self._printed:
                show_on_stderr(self._text)
            hint = "Ask for code in the prompt, or leave -x and --save-dir out."
            return Problem("The answer has no code block.", hint, ExitCode.GENERATION)
        if not blocks[-1].closed:
            remark("The last code block has no end: this is what is there of it.")
        return _save_all(blocks, self._directory) if self._directory is not None else None


def _save_all(blocks: list[CodeBlock], directory: Path) -> Problem | None:
    """Save all blocks that can be; returns the problem with the first that can't."""
    problem: Problem | None = None
    for block in blocks:
        try:
            path = save_block(block, directory)
        except SavingError as error:
            problem = problem or Problem(f"Code block {block.number}: {error}", error.hint, ExitCode.GENERATION)
            continue
        meant = block.filename is None or path == directory / block.filename
        called = "" if meant else f" (the answer calls it {block.filename!r})"
        remark(in_line(f"saved {path}{called}"))
    return problem


def _open_output(path: Path | None, force: bool) -> Output:
    return StandardOutput() if path is None or str(path) == "-" else FileOutput(path, force)
