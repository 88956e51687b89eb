"""``dflash-chat race``: the target alone against DFlash, or a server against another or this engine, in a table."""

from __future__ import annotations

import json
import sys
from collections.abc import Callable, Collection, Sequence
from dataclasses import asdict, replace
from pathlib import Path
from queue import SimpleQueue
from typing import Any

import click

from dflash_tui.core.exit_codes import ExitCode
from dflash_tui.core.export.document import origin_of
from dflash_tui.core.export.formats import render
from dflash_tui.core.export.spans import table_lines
from dflash_tui.core.race.lanes import LOOKUP, kind_of, lanes_against, lanes_for, lanes_of
from dflash_tui.core.race.race import Race
from dflash_tui.core.race.report import host_of, how, race_document, race_object, race_remarks, race_table
from dflash_tui.core.settings.addresses import address_for, is_address
from dflash_tui.core.settings.config import Config
from dflash_tui.core.settings.servers import ServerAddress
from dflash_tui.core.source import Emit, Source, SourceFactory, Wanted, events_only
from dflash_tui.sources import Target
from engine.commands import (
    NO_DRAFTER,
    BlockSize,
    Close,
    Command,
    EngineOptions,
    GenerationSettings,
    Message,
    Stop,
    WeightChoice,
)
from engine.events import EngineError, EngineReady, Event

from ..flags.chat_flags import wanted_by
from ..flags.completing import A_MODEL
from ..flags.decoding import decoding_flag, number_flags
from ..flags.pair import SERVER, engine_flags, typed_flags
from ..flags.values import ModelName
from ..headless.output import FileOutput
from ..headless.prompt import read_prompt
from ..headless.status import ProgressLine
from ..headless.turn import JOIN_SECONDS, Inbox, lacking, signals_into
from ..invocation import Invocation
from ..logs import log_to_file
from ..problems import Problem, engine_problem, value_problem
from ..terminal.saying import say

DEFAULTS = GenerationSettings()
DEFAULT_RUNS = 3
Send = Callable[[Command], None]


@click.command(context_settings={"help_option_names": ["-h", "--help"]})
@click.argument("model", required=False, type=ModelName(), shell_complete=A_MODEL)
@engine_flags
@SERVER
@click.option("--against", metavar="URL", help="Race against this server: a URL, or a name of [servers].")
@click.option(
    "-o",
    "--output",
    type=click.Path(path_type=Path),
    metavar="FILE",
    help="Write a page with the lanes side by side, such as race.html.",
)
@click.option("-p", "--prompt", metavar="TEXT", help="The question; what is piped in is added.")
@click.option("--runs", type=click.IntRange(1, 100), default=DEFAULT_RUNS, show_default=True, help="Runs per lane.")
@click.option("--json", "as_json", is_flag=True, help="Print one JSON object.")
@decoding_flag(
    "block_size",
    "block_sizes",
    multiple=True,
    default=(DEFAULTS.block_size,),
    help="A lane for this block size; may be given several times.",
)
@number_flags
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
    server: str | None,
    against: str | None,
    output: Path | None,
    **decoding: Any,
) -> int:
    """Answer one question with the target alone and with DFlash, in turns, and compare.

    --draft dflash,mtp,lookup,none: a lane for each. Drafters are loaded beside one another, each with its own target.

    With --against, MODEL with DFlash races a server; where MODEL is a URL, or --server names one, two servers race.

    The lanes start from equal caches, warmed up, in alternating order. Figures are medians over the runs; the speed-up
    is of decoding, the time to the first token stands apart.
    """
    log_to_file()
    text = read_prompt(prompt, sys.stdin)
    if text is None:
        raise Problem("A race needs a question.", 'dflash-chat race -p "Write a quicksort in Python"')
    typed = typed_flags()
    options = EngineOptions(model, draft, device, context, offline, weights=weights)
    drafters = [] if draft is None else [each.strip() for each in draft.split(",")]
    if drafters in ([LOOKUP], [NO_DRAFTER]):
        drafters = [NO_DRAFTER, LOOKUP]
    sides: list[Target] = []
    if len(drafters) < 2:
        sides = _sides(options, server, against, typed, invocation.config)
    elif against is not None or server is not None or is_address(model):
        raise Problem(f"--draft {draft} races on this engine alone.", "Leave the server out, or name one drafter.")
    servers = [host_of(side.url) for side in sides if isinstance(side, ServerAddress)]
    try:
        settings = GenerationSettings(**decoding)
        if len(drafters) > 1:
            lanes, own = lanes_of(settings, block_sizes, drafters)
            sides = [replace(options, drafter=each) for each in own]
        elif against is None:
            lanes = lanes_for(settings, block_sizes, kind_of(draft))
        else:
            own_sizes = block_sizes if len(servers) < len(sides) else ()
            lanes = lanes_against(settings, own_sizes, servers, kind_of(draft))
    except ValueError as error:
        raise value_problem(error, "dflash-chat race --help lists the flags.") from error
    head = [Message("system", system)] if system else []
    messages = [*head, Message("user", text)]
    page = None if output is None else FileOutput(output)
    track = _Track([invocation.source(side) for side in sides], wanted_by(typed))
    return track.run(lambda sends: Race(messages, lanes, runs, sends), as_json, page)


def _sides(
    options: EngineOptions, server: str | None, against: str | None, typed: Collection[str], config: Config
) -> list[Target]:
    """What races: one engine, or two of engine and servers. Raises :class:`Problem` and ``ServerError``."""
    named = server if server is not None and ("server" in typed or "model" not in typed) else None
    if named is not None and "model" in typed:
        raise Problem("MODEL and --server both say what is to race.", "Leave one of them out.")
    address = named or (options.target if is_address(options.target) else None)
    if address is None:
        return [options, *([address_for(against, config)] if against else [])]
    if against is None:
        raise Problem("A server has to be raced against something.", "Add another server: --against http://host:8000")
    if "block_sizes" in typed:
        raise Problem("Servers chose their block sizes when they were started.", "Leave --block-size out.")
    return [address_for(address, config), address_for(against, config)]


class _Track:
    """What runs the lanes, and what it says, for the length of one race."""

    def __init__(self, sources: Sequence[SourceFactory], wanted: Wanted) -> None:
        self._inbox: Inbox = SimpleQueue()
        self._ready: dict[int, EngineReady] = {}
        """The models of the sides that are ready, by the side's number."""
        self._sides: list[Source] = [source(self._hear(side)) for side, source in enumerate(sources)]
        self._started: list[Source] = []
        self._wanted = wanted
        self._status = ProgressLine()
        self._show_progress = self._status.counting("racing, runs done")

    def _hear(self, side: int) -> Emit:
        def hear(event: Event) -> None:
            if isinstance(event, EngineReady):
                self._ready[side] = event
            self._inbox.put(event)

        return events_only(hear)

    def run(self, create: Callable[[Sequence[Send]], Race], as_json: bool, page: FileOutput | None = None) -> int:
        """Load the engine, race, and print the result. Raises :class:`Problem` when there is none."""
        with signals_into(self._inbox):
            self._start_next()
            try:
                held = create([side.send for side in self._sides])
                interrupted = self._follow(held)
            finally:
                self._status.finish()
                for side in self._started:
                    side.send(Stop())
                    side.send(Close())
                for side in self._started:
                    side.join(JOIN_SECONDS)
        if interrupted is not None:
            return interrupted
        self._print(held, as_json)
        if page is not None and held.result is not None:
            page.write(render(race_document(held.result, origin_of(self._ready[0])), "html"))
            page.close()
        return ExitCode.OK

    def _start_next(self) -> None:
        """Start the next side. They load one after the other, since each plans with the memory that is left."""
        self._started.append(self._sides[len(self._started)])
        self._started[-1].start()

    def _follow(self, held: Race) -> ExitCode | None:
        """Hear events until the race is over; returns the signal's exit code when one ended it, else None."""
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
            self._status.show(event)
            if len(self._ready) < len(self._sides):
                self._start_next()
            elif not held.sides:
                self._begin(held)
        elif len(self._ready) < len(self._sides) and not isinstance(event, EngineError):
            self._status.show(event)
        else:
            before = held.progress
            held.apply(event)
            if held.progress != before:
                self._show_progress(*held.progress)

    def _begin(self, held: Race) -> None:
        """Begin the race, now that every side is ready."""
        own = [ready for ready in self._ready.values() if not ready.server]
        drafts = any(lane.settings.speculation and lane.settings.draft_by != LOOKUP for lane in held.lanes)
        if drafts and len(self._sides) == len(own) == 1 and own[0].drafter is None:
            hint = "Choose a model that has one, name one with --draft, or race lookup alone: --draft lookup."
            raise Problem("There is no drafter to race with.", hint)
        for side in self._sides:
            if problem := lacking(side, self._wanted):
                raise problem
        held.sides = tuple(self._ready[side] for side in range(len(self._sides)))
        held.start()

    def _print(self, held: Race, as_json: bool) -> None:
        result = held.result
        assert result is not None
        if as_json:
            models, *others = [_models(ready) for ready in held.sides]
            against = {"against": others[0] if len(others) == 1 else others} if others else {}
            say(json.dumps({"models": models, **against, **race_object(result)}, indent=1))
            return
        say("\n".join([*table_lines(race_table(result)), "", *race_remarks(result), "", how(result.sides)]))


def _models(ready: EngineReady) -> dict[str, Any]:
    keys = ("target", "drafter", "device", "dtype", *(("server", "dialect", "times") if ready.server else ()))
    origin = asdict(origin_of(ready))
    return {key: origin[key] for key in keys}
