"""The command without a name: with a prompt it answers and ends; without one it opens the chat."""

from __future__ import annotations

import sys
import time
from collections.abc import Collection, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any, get_args

import click

from dflash_tui.core.attachments.attachment import Attachment
from dflash_tui.core.conversation.start import Start
from dflash_tui.core.sessions.prompts import PromptHistory
from dflash_tui.core.sessions.sessions import Conversation, SessionLog
from dflash_tui.core.settings.config import Gauges
from dflash_tui.core.settings.servers import ServerAddress
from dflash_tui.core.source import SourceFactory, Wanted
from dflash_tui.core.version import PROGRAM, installed_version
from dflash_tui.sources import Target
from engine.commands import BUNDLED, AttentionBackend, EngineOptions
from engine.loading.cuda_context import wake_gpu

from .commands.sessions import continued, conversation_to_continue
from .first_contact import suggest_model
from .flags.chat_flags import ENGINE_TOPICS, Flags, attached_files, wanted_by
from .flags.completing import A_MODEL, among
from .flags.decoding import decoding_flags
from .flags.options import TOPICS, Flag, flag, variable_of, write_options
from .flags.pair import DEVICE, DIALECT, OFFLINE, SERVER, WEIGHTS, typed_flags
from .flags.screen import SCREEN_FLAGS, check_theme, chosen_screen_options, themes
from .flags.values import Amount, ModelName
from .headless.answer import Request, WhenFull, answer
from .headless.output import DEFAULT_OUT, check_directory
from .headless.prompt import read_prompt
from .invocation import Invocation
from .logs import log_to_file
from .models import models_of
from .problems import Problem
from .terminal.saying import remark
from .terminal.screen import bare_terminal, has_screen
from .tracing import finish_trace, open_trace, recorded

EXAMPLES = """\
Chat with a DFlash pair in the terminal; with a prompt: print the answer and end.
MODEL: a folder, a hub name or a server's URL; without it, the bundled pair.

  dflash-chat                                     open the chat
  dflash-chat -p "Write a quicksort in Python"    print the answer
  dflash-chat -p "A drone page" -x -o drone.html  save the code of the answer
  dflash-chat http://localhost:8000               attach to vLLM, llama.cpp, SGLang
  dflash-chat pull google/gemma-4-26B-A4B-it      fetch a model and its drafter
  dflash-chat doctor                              what this machine can run
  dflash-chat lesson, or dflash-chat tour         speculative decoding, explained
  dflash-chat replay demo                         watch a recorded run
  dflash-chat help                                every other flag, by topic
"""
EXIT_LINE = """\
Exit codes: 0 done, 1 generation failed, 2 wrong flag or prompt, 3 weights missing
or damaged, 4 no GPU or memory, 5 no server, 124 --timeout, 130 Ctrl+C, 141 reader
of stdout gone, 143 terminated. A partial answer is printed."""
MORE_COMMANDS = "Commands too: serve|bench|race|export|sessions|train|selftest|completion"
EXAMPLE = 'dflash-chat -p "Write a quicksort in Python"'

_HEADLESS_FLAGS = {
    "output": "--output",
    "force": "--force",
    "extract": "--extract",
    "as_json": "--json",
    "stream_json": "--stream-json",
    "timeout": "--timeout",
    "save_dir": "--save-dir",
}

LONGEST_TIMEOUT = 1e9
"""Seconds: thirty years, and less than a clock can be asked to wait."""


class _Command(click.Command):
    """Help that begins with what to type and fits on one screen."""

    def format_help(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        self.format_usage(ctx, formatter)
        formatter.write(f"\n{EXAMPLES}")
        common = [option for option in self.get_params(ctx) if not isinstance(option, Flag) or option.common]
        write_options(self, ctx, formatter, common)
        formatter.write(f"\n{MORE_COMMANDS}\nMore flags: dflash-chat help {'|'.join(TOPICS)}\n{EXIT_LINE}")


def _show_version(context: click.Context, _option: click.Parameter, wanted: bool) -> None:
    if wanted:
        click.echo(f"{PROGRAM} {installed_version()}")
        context.exit()


@click.command(cls=_Command, context_settings={"help_option_names": ["-h", "--help"]})
@click.argument("model", required=False, type=ModelName(), envvar=variable_of("model"), shell_complete=A_MODEL)
@flag("-p", "--prompt", topic="scripts", common=True, metavar="TEXT", help="Answer this; what is piped in is added.")
@flag(
    "-o",
    "--output",
    topic="scripts",
    common=True,
    type=click.Path(path_type=Path),
    metavar="FILE",
    help="Write the output to a file.",
)
@flag("--force", topic="scripts", is_flag=True, help="Let -o replace a file.")
@flag(
    "-f",
    "--file",
    "files",
    topic="scripts",
    common=True,
    multiple=True,
    type=click.Path(),
    metavar="PATH",
    help="A text file beside the prompt; repeatable.",
)
@flag("-x", "--extract", topic="scripts", common=True, is_flag=True, help="Print only the last code block.")
@flag(
    "--save-dir",
    topic="scripts",
    type=click.Path(path_type=Path),
    metavar="DIR",
    help="Save every code block of the answer there.",
)
@flag("--json", "as_json", topic="scripts", common=True, is_flag=True, help="Print one JSON object with statistics.")
@flag("--stream-json", topic="scripts", is_flag=True, help="Print every event as a line of JSON.")
@flag("--system", topic="decoding", keeps=False, metavar="TEXT", help="System message; @FILE reads it.")
@flag(
    "--timeout",
    topic="scripts",
    type=Amount(LONGEST_TIMEOUT),
    metavar="SECONDS",
    help="Stop after that time.",
)
@decoding_flags
@DEVICE
@WEIGHTS
@flag(
    "--draft",
    topic="models",
    common=True,
    type=ModelName(),
    metavar="MODEL",
    help="Another drafter than its own; 'mtp', 'none'.",
)
@flag("--context", topic="models", type=click.IntRange(min=1), metavar="N", help="Tokens to keep room for.")
@OFFLINE
@SERVER
@DIALECT
@flag(
    "--attention-backend",
    topic="models",
    type=click.Choice(get_args(AttentionBackend)),
    default="auto",
    help="Kernels of attention.",
)
@flag(
    "--out",
    topic="screen",
    common=True,
    type=click.Path(path_type=Path),
    metavar="DIR",
    help="Where the chat saves code (dflash-out).",
)
@flag(
    "--when-full",
    topic="chats",
    type=click.Choice(get_args(WhenFull)),
    default="stop",
    show_default=True,
    help="When a prompt no longer fits behind a conversation: end with exit code 2, or leave the oldest questions out.",
)
@flag("-c", "--continue", "latest", topic="chats", is_flag=True, help="Go on where you left off.")
@flag(
    "--resume",
    topic="chats",
    is_flag=False,
    flag_value="",
    metavar="[ID]",
    help="Go on with an older conversation; without ID: choose it in the chat.",
)
@flag(
    "--trace",
    topic="chats",
    type=click.Path(path_type=Path),
    metavar="FILE",
    help="Record the run, for dflash-chat replay FILE.",
)
@flag("--no-history", topic="chats", is_flag=True, help="Don't keep the questions for ↑ and Ctrl+R.")
@flag(
    "--theme",
    topic="screen",
    common=True,
    metavar="NAME",
    callback=check_theme,
    shell_complete=among(themes),
    help="Colours: mono, high-contrast, dflash-light, dflash-dark, mono-light, okabe-ito, classic.",
)
@flag("--ascii", topic="screen", is_flag=True, help=SCREEN_FLAGS["ascii"])
@flag("--reduced-motion", topic="screen", is_flag=True, help=SCREEN_FLAGS["reduced_motion"])
@flag("--no-mouse", topic="screen", is_flag=True, help=SCREEN_FLAGS["no_mouse"])
@flag("--rendered", topic="screen", is_flag=True, help="Draw finished answers: code in frames, with syntax colours.")
@flag("--gauges", topic="screen", type=click.Choice(get_args(Gauges)), default="full", help="How wide the gauges are.")
@flag("--plain", topic="screen", is_flag=True, help="Chat in lines: for screen readers; piped lines are questions.")
@click.option(
    "--version",
    is_flag=True,
    expose_value=False,
    is_eager=True,
    callback=_show_version,
    help="Show the version and exit.",
)
@click.pass_obj
def chat(invocation: Invocation, /, **flags: Any) -> int:
    log_to_file()
    chosen, given = Flags.of(flags), typed_flags()
    target = chosen.target(given, typed_flags(ENGINE_TOPICS), invocation.config)
    files = attached_files(chosen.files)
    wanted = wanted_by(given)
    if chosen.out is not None:
        check_directory(chosen.out)
    in_lines = chosen.prompt is None and (chosen.plain or bare_terminal())
    if chosen.resume == "" and not in_lines:
        _require_a_choice(chosen)
    begun = time.monotonic()
    text = None if in_lines else read_prompt(chosen.prompt, sys.stdin, chosen.timeout)
    if chosen.timeout is not None:  # waiting for stdin counts
        chosen = replace(chosen, timeout=max(chosen.timeout - (time.monotonic() - begun), 0.0))
    if text is not None:
        return _answer(text, files, target, chosen, wanted, invocation)
    _require_a_chat(given, in_lines)
    attached = isinstance(target, ServerAddress)
    source = invocation.source(target if isinstance(target, ServerAddress) else suggest_model(target))
    if in_lines:
        return _chat_in_lines(source, chosen, wanted, invocation)
    if not (attached or chosen.device == "cpu"):
        wake_gpu()  # takes the driver seconds: the screen is imported and drawn meanwhile
    return _open_chat(source, chosen, wanted, invocation)


def _require_a_choice(flags: Flags) -> None:
    """Raise :class:`Problem` where nobody could choose a conversation."""
    if flags.prompt is not None or not (sys.stdin.isatty() and sys.stdout.isatty()):
        hint = "Name one with --resume ID; dflash-chat sessions lists them."
        raise Problem("--resume without an ID lets you choose in the chat, and none opens here.", hint)


def _require_a_chat(given: Collection[str], in_lines: bool) -> None:
    """Raise :class:`Problem` when there is no prompt, and no chat can or should open instead."""
    flag = next((name for name in _HEADLESS_FLAGS if name in given), None)
    if flag is not None:
        raise Problem(f"{_HEADLESS_FLAGS[flag]} needs a prompt.", f"Add one with -p, such as: {EXAMPLE}")
    if not in_lines and not has_screen():
        raise Problem("There is no prompt, and stdout is not a terminal to chat in.", f"Add a prompt: {EXAMPLE}")


def _answer(
    text: str,
    files: Sequence[Attachment],
    target: Target,
    flags: Flags,
    wanted: Wanted,
    invocation: Invocation,
) -> int:
    if isinstance(target, EngineOptions) and target.target == BUNDLED:
        target = replace(target, target=None)
    if flags.save_dir is not None:
        check_directory(flags.save_dir, "--save-dir")
    form = flags.output_format()
    earlier, log = conversation_to_continue(flags.latest, flags.resume) or (None, None)
    recording = open_trace(flags.trace)
    given = (flags.output, flags.system, flags.timeout, flags.save_dir)
    settings = continued(flags.settings, earlier)
    request = Request(text, settings, form, *given, earlier, log, wanted, flags.force, tuple(files), flags.when_full)
    try:
        return answer(request, recorded(invocation.source(target), recording))
    finally:
        finish_trace(recording)


def _open_chat(source: SourceFactory, flags: Flags, wanted: Wanted, invocation: Invocation) -> int:
    conversation, log = conversation_to_continue(flags.latest, flags.resume) or (None, None)
    settings = continued(flags.settings, conversation)
    screen_options = chosen_screen_options(flags.ascii, flags.reduced_motion, flags.no_mouse)
    screen_options = replace(screen_options, rendered=flags.rendered, gauges=flags.gauges)
    trace = open_trace(flags.trace)
    # Imported where the screen opens: headless mode must not wait for Textual.
    from dflash_tui.app.main import run_chat

    begin = _start(flags, conversation, wanted, invocation)
    return run_chat(source, settings, flags.out or DEFAULT_OUT, flags.theme, begin, log, trace, screen_options)


def _chat_in_lines(source: SourceFactory, flags: Flags, wanted: Wanted, invocation: Invocation) -> int:
    if not flags.plain:
        remark("On this terminal (TERM=dumb) the chat is one in lines, as with --plain.")
    conversation, log = conversation_to_continue(flags.latest, flags.resume) or (None, None)
    settings = continued(flags.settings, conversation)
    begin = _start(flags, conversation, wanted, invocation)
    trace = open_trace(flags.trace)
    from .plain.chat import PlainChat  # as the screen, where it opens

    try:
        chat = PlainChat(
            recorded(source, trace), settings, log or SessionLog.create(), begin, flags.out or DEFAULT_OUT,
            flags.when_full,
        )  # fmt: skip
        return chat.run()
    finally:
        finish_trace(trace)


def _start(flags: Flags, conversation: Conversation | None, wanted: Wanted, invocation: Invocation) -> Start:
    return Start(
        PromptHistory.default(not flags.no_history),
        conversation,
        flags.resume == "",
        wanted,
        flags.system,
        tuple(str(Path(name)) for name in flags.files),
        models_of(flags, invocation),
    )
