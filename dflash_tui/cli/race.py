"""``dflash-chat race``: the target alone against DFlash, measured on this machine without a screen."""

from __future__ import annotations

import json
import sys
from collections.abc import Callable, Sequence
from dataclasses import asdict
from queue import SimpleQueue

import click

from dflash_tui.core.exit_codes import ExitCode
from dflash_tui.core.export.document import origin_of
from dflash_tui.core.export.spans import table_lines
from dflash_tui.core.figures.gpu import GpuMonitor
from dflash_tui.core.race.race import Joules, Race, lanes_for
from dflash_tui.core.race.report import HOW, race_object, race_remarks, race_table
from dflash_tui.core.source import Source, SourceFactory, events_only
from engine.commands import BlockSize, Close, Command, EngineOptions, GenerationSettings, Message, Stop, WeightChoice
from engine.events import EngineError, EngineReady, Event

from .block_size import METAVAR, BlockSizeType
from .config import Invocation
from .logs import log_to_file
from .pair import pair_flags
from .problems import Problem, engine_problem, value_problem
from .prompt import read_prompt
from .status import StatusLine
from .turn import JOIN_SECONDS, Inbox, signals_into

DEFAULTS = GenerationSettings()
DEFAULT_RUNS = 3
Send = Callable[[Command], None]


@click.command(context_settings={"help_option_names": ["-h", "--help"]})
@pair_flags
@click.option("-p", "--prompt", metavar="TEXT", help="The question; what is piped in is added.")
@click.option("--runs", type=click.IntRange(1, 100), default=DEFAULT_RUNS, show_default=True, help="Runs per lane.")
@click.option("--json", "as_json", is_flag=True, help="Print one JSON object.")
@click.option(
    "--block-size",
    "block_sizes",
    type=BlockSizeType(),
    multiple=True,
    default=(DEFAULTS.block_size,),
    show_default=True,
    metavar=METAVAR,
    help="A lane for this block size; may be given several times.",
)
@click.option("--temperature", type=float, default=DEFAULTS.temperature, show_default=True, metavar="0-2")
@click.option("--top-p", type=float, default=DEFAULTS.top_p, show_default=True, metavar="0-1")
@click.option("--top-k", type=int, default=DEFAULTS.top_k, show_default=True, metavar="N")
@click.option("--seed", type=int, default=DEFAULTS.seed, show_default=True, metavar="N")
@click.option("--max-new-tokens", type=int, default=DEFAULTS.max_new_tokens, show_default=True, metavar="N")
@click.option("--system", metavar="TEXT", help="System message before the question.")
@click.option("--context", type=click.IntRange(min=1), metavar="N", help="Tokens to keep room for.")
@click.pass_obj
def race(
    invocation: Invocation,
    /,
    model: str | None,
    prompt: str | None,
    runs: int,
    as_json: bool,
    block_sizes: Sequence[BlockSize],
    system: str | None,
    device: str,
    weights: WeightChoice,
    draft: str | None,
    context: int | None,
    offline: bool,
    **decoding: float,
) -> int:
    """Answer one question with the target alone and with DFlash, in turns, and compare.

    The lanes start from equal caches, warmed up, in alternating order. Figures are medians over the runs; the speed-up
    is of decoding, the time to the first token stands apart.
    """
    log_to_file()
    text = read_prompt(prompt, sys.stdin)
    if text is None:
        raise Problem("A race needs a question.", 'dflash-chat race -p "Write a quicksort in Python"')
    try:
        lanes = lanes_for(GenerationSettings(**decoding), block_sizes)  # type: ignore[arg-type]  # names are its fields
    except ValueError as error:
        raise value_problem(error, "dflash-chat race --help lists the flags.") from error
    head = [Message("system", system)] if system else []
    messages = [*head, Message("user", text)]
    options = EngineOptions(model, draft, device, context, offline, weights=weights)
    return _Track(invocation.engine(options)).run(
        lambda send, joules: Race(messages, lanes, runs, send, joules), as_json
    )


class _Track:
    """An engine, and what it says, for the length of one race."""

    def __init__(self, source: SourceFactory) -> None:
        self._inbox: Inbox = SimpleQueue()
        self._engine: Source = source(events_only(self._inbox.put))
        self._status = StatusLine()
        self._show_progress = self._status.counting("racing, runs done")
        self._ready: EngineReady | None = None
        self._monitor = GpuMonitor()

    def run(self, create: Callable[[Send, Joules], Race], as_json: bool) -> int:
        """Load the engine, race, and print the result. Raises :class:`Problem` when there is none."""
        with signals_into(self._inbox):
            self._engine.start()
            try:
                held = create(self._engine.send, self._monitor.joules)
                interrupted = self._follow(held)
            finally:
                self._status.finish()
                self._monitor.stop()
                self._engine.send(Stop())
                self._engine.send(Close())
                self._engine.join(JOIN_SECONDS)
        if interrupted is not None:
            return interrupted
        self._print(held, as_json)
        return ExitCode.OK

    def _follow(self, held: Race) -> ExitCode | None:
        """Until the race is over; the signal's exit code when one ended it."""
        while not held.over:
            item = self._inbox.get()
            if isinstance(item, ExitCode):
                return item
            self._take(held, item)
        if held.failure is not None:
            raise engine_problem(held.failure)
        return None

    def _take(self, held: Race, event: Event) -> None:
        if isinstance(event, EngineReady):
            if event.drafter is None:
                raise Problem("There is no drafter to race with.", "Choose a model that has one, or name it: --draft.")
            self._ready = event
            self._status.show(event)
            if event.device != "cpu":
                self._monitor.start()
            held.start()
        elif self._ready is None and not isinstance(event, EngineError):
            self._status.show(event)
        else:
            before = held.progress
            held.apply(event)
            if held.progress != before:
                self._show_progress(*held.progress)

    def _print(self, held: Race, as_json: bool) -> None:
        result = held.result
        assert result is not None
        if as_json:
            origin = asdict(origin_of(self._ready))
            print(json.dumps({"models": {key: origin[key] for key in _MODEL_KEYS}, **race_object(result)}, indent=1))
            return
        print("\n".join([*table_lines(race_table(result)), "", *race_remarks(result), "", HOW]))


_MODEL_KEYS = ("target", "drafter", "device", "dtype")
