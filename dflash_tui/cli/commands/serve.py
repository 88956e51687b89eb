"""``dflash-chat serve``: the engine for editors, agents and everything else that speaks OpenAI's interface."""

from __future__ import annotations

import sys
import time
from contextlib import suppress
from dataclasses import replace
from queue import SimpleQueue
from threading import Thread
from typing import TYPE_CHECKING, Any

import click

from dflash_tui.core.exit_codes import ExitCode
from dflash_tui.core.figures.labels import TOKENS_PER_ROUND
from dflash_tui.core.sessions.sessions import SessionLog
from dflash_tui.core.settings.decoding import of_flags
from dflash_tui.core.source import Emit, Happening, Source, SourceFactory
from dflash_tui.core.text.counted import counted
from engine.commands import AUTO, NO_DRAFTER, EngineOptions, GenerationSettings
from engine.events import EngineError, EngineReady, LoadProgress, TurnFinished

from ..flags.decoding import decoding_flag
from ..flags.pair import pair_flags
from ..flags.screen import saved_screen_options, screen_flags, theme_flag
from ..headless.output import DEFAULT_OUT
from ..headless.status import ProgressLine, describe_models
from ..headless.turn import JOIN_SECONDS, Inbox, signals_into
from ..invocation import Invocation
from ..logs import log_to_file
from ..problems import Problem, engine_problem, value_problem
from ..terminal.saying import remark, say
from ..terminal.screen import has_screen

if TYPE_CHECKING:
    from dflash_tui.serve.scheduler import Ticket
    from dflash_tui.serve.server import ServeOptions, Serving

KEY_VARIABLE = "DFLASH_CHAT_SERVE_KEY"
SHORTEST_KEY = 8
HELP = "dflash-chat serve --help lists the flags."


@click.command(context_settings={"help_option_names": ["-h", "--help"]})
@pair_flags
@click.option("--context", type=click.IntRange(min=1), metavar="N", help="Tokens to keep room for.")
@click.option("--host", default="127.0.0.1", show_default=True, metavar="ADDRESS", help="Where to listen.")
@click.option(
    "--port", type=click.IntRange(0, 65535), default=8000, show_default=True, metavar="N", help="0: any free."
)
@click.option(
    "--api-key", envvar=KEY_VARIABLE, metavar="KEY",
    help=f"Who asks must send it. Others see a command line: ${KEY_VARIABLE} is better.",
)  # fmt: skip
@click.option("--no-api-key", is_flag=True, help="Let everybody ask who reaches an address beyond this machine.")
@click.option(
    "--queue", type=click.IntRange(0, 100_000), default=32, show_default=True, metavar="N",
    help="Requests that may wait; others are told to come back.",
)  # fmt: skip
@click.option("--watch", is_flag=True, help="Show what is being answered on the chat's screen.")
@decoding_flag("block_size")
@decoding_flag("speculation", help="Decode one token at a time.")
@decoding_flag("thinking", help="Let the model think first, unless a request says otherwise.")
@decoding_flag("temperature", help="Of requests that don't say.")
@theme_flag("Colours of the screen of --watch.")
@screen_flags
@click.pass_obj
def serve(
    invocation: Invocation,
    /,
    options: EngineOptions,
    context: int | None,
    host: str,
    port: int,
    api_key: str | None,
    no_api_key: bool,
    queue: int,
    watch: bool,
    theme: str | None,
    **decoding: Any,
) -> int:
    """Serve a pair to clients of OpenAI's interface: editors, agents, scripts.

    Requests are answered one after the other, clients in turns. MODEL is a folder or a hub name; without it, the
    bundled pair. What requests may hold: dflash_tui/serve/API.md.
    """
    log_to_file()
    try:
        settings = GenerationSettings(**of_flags(decoding))
    except ValueError as error:
        raise value_problem(error, HELP) from error
    from dflash_tui.serve.server import ServeOptions  # no other command waits for what serves

    served = ServeOptions(host, port, _key_to_ask_for(host, api_key, no_api_key), queue, settings)
    drafter, timed = options.drafter if settings.speculation else NO_DRAFTER, settings.block_size == AUTO
    source = invocation.engine(replace(options, drafter=drafter, max_context=context, time_rounds=timed))
    return _watch(source, served, theme) if watch else _Server(source, served).run()


def _key_to_ask_for(host: str, key: str | None, nobody_asked: bool) -> str | None:
    """The key that clients have to send; None for none. Raises :class:`Problem` where anybody could ask and nobody said
    that this is meant."""
    from dflash_tui.serve.server import is_local

    if key is not None and nobody_asked:
        raise Problem("--api-key and --no-api-key exclude each other.", f"Leave one out; ${KEY_VARIABLE} is a key too.")
    if key is not None and (len(key) < SHORTEST_KEY or not (key.isascii() and key.isprintable()) or " " in key):
        words = f"An API key has at least {SHORTEST_KEY} letters, digits and signs, and no blanks."
        raise Problem(words, 'A good one: python -c "import secrets; say(secrets.token_urlsafe())"')
    if key is None and not nobody_asked and not is_local(host):
        hint = f"Set ${KEY_VARIABLE} (or --api-key), or say --no-api-key if everybody there may ask."
        raise Problem(f"Other machines reach {host}, and anybody on them could ask.", hint)
    return key


class _Server:
    """A server without a screen: lines on stdout say where it is, lines on stderr what it answered."""

    def __init__(self, source: SourceFactory, options: ServeOptions) -> None:
        from dflash_tui.serve.server import Serving

        self._inbox: Inbox = SimpleQueue()
        """Events and signals for the main thread."""
        self._options = options
        self._status = ProgressLine()
        self._serving = Serving(source, options, self._hear, _tell_answer)

    def run(self) -> int:
        """Serve until a signal ends it; returns that signal's exit code. Raises :class:`Problem` when the engine
        fails."""
        use_short_turns()
        why = "an error"
        with signals_into(self._inbox):
            self._serving.start()
            try:
                code = self._follow()
                why = "SIGINT" if code is ExitCode.INTERRUPTED else "SIGTERM"
                return code
            finally:
                self._status.finish()
                self._end()
                left = self._serving.unanswered
                _log(f"ended by {why}", *([f"{counted(left, 'request')} without a whole answer"] if left else []))

    def _follow(self) -> int:
        while True:
            match self._inbox.get():
                case ExitCode() as code:
                    return code
                case EngineError() as error:
                    raise engine_problem(error)
                case EngineReady() as ready:
                    self._status.finish()
                    say(f"{describe_models(ready)}\n{about(self._serving, self._options)}")
                case LoadProgress() as progress:
                    self._status.show(progress)

    def _end(self) -> None:
        """End the server and wait for that; a second signal waits no longer."""
        ending = Thread(target=self._end_all, name="ending", daemon=True)
        ending.start()
        while not isinstance(self._inbox.get(), ExitCode):
            pass

    def _end_all(self) -> None:
        self._serving.end()
        self._serving.join(JOIN_SECONDS)
        self._inbox.put(ExitCode.OK)

    def _hear(self, event: Happening) -> None:
        if isinstance(event, EngineReady | LoadProgress) or (isinstance(event, EngineError) and event.fatal):
            self._inbox.put(event)


def _watch(source: SourceFactory, options: ServeOptions, theme: str | None) -> int:
    if not has_screen():
        raise Problem("--watch needs a terminal to draw in.", "Leave --watch out.")
    from dflash_tui.serve.server import Serving
    from dflash_tui.serve.watch import WatchSource

    def create(emit: Emit) -> Source:
        def made(mirror: Emit) -> Serving:
            return Serving(source, options, mirror, lambda *_: None)

        return WatchSource(emit, made, lambda serving: about(serving, options))

    from dflash_tui.app.main import run_chat

    nowhere, screen_options = SessionLog.nowhere(), saved_screen_options()
    return run_chat(create, options.defaults, DEFAULT_OUT, theme, log=nowhere, screen_options=screen_options)


def use_short_turns() -> None:
    """Have threads hand over the interpreter's lock sooner, so that the engine doesn't wait for what is being sent."""
    from dflash_tui.serve.server import SWITCH_INTERVAL

    sys.setswitchinterval(SWITCH_INTERVAL)


def about(serving: Serving, options: ServeOptions) -> str:
    """How to reach a server: its URL, and a line to copy."""
    key = f' -H "Authorization: Bearer ${KEY_VARIABLE}"' if options.key is not None else ""
    needs = "with its API key" if options.key is not None else "any API key will do"
    return "\n".join([
        f"Serving at {serving.url}/v1 ({needs})",
        f"  curl {serving.url}/v1/chat/completions{key} -H 'Content-Type: application/json' \\",
        """    -d '{"messages": [{"role": "user", "content": "Write a quicksort in Python"}]}'""",
    ])  # fmt: skip


def _tell_answer(ticket: Ticket, finished: TurnFinished) -> None:
    """Print a line on stderr about an answer that has ended."""
    facts = finished.statistics
    parts = [f"{facts.num_prompt_tokens} + {counted(facts.num_tokens, 'token')}", f"{facts.tok_s:.0f} tok/s"]
    if facts.num_spec_steps:
        parts.append(f"{facts.tokens_per_round:.2f} {TOKENS_PER_ROUND.name}")
    if facts.num_reused_tokens:
        parts.append(f"{facts.num_reused_tokens} reused")
    if ticket.gone:
        parts.append("its client went")
    elif finished.reason == "error":
        parts.append("failed")
    _log(*parts)


def _log(*parts: str) -> None:
    with suppress(OSError, ValueError):  # nobody reads the log any more
        remark(f"{time.strftime('%H:%M:%S')} {' · '.join(parts)}")
