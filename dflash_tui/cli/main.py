"""``dflash-chat``: which command, its settings, and its exit code."""

from __future__ import annotations

import logging
import os
import shlex
import sys
import traceback
from collections.abc import Sequence
from contextlib import suppress
from difflib import get_close_matches
from importlib import import_module
from pathlib import Path
from typing import Any, NoReturn

import click

from dflash_tui.core.exit_codes import ExitCode
from dflash_tui.core.failures import Failure
from dflash_tui.core.files.places import log_file, settle_home
from dflash_tui.core.platforms import UNFIT
from dflash_tui.core.settings.config import Config
from dflash_tui.core.text.harmless import signed
from dflash_tui.sources import Attach, Engine, local_source, server_source
from engine.errors import EngineFailure
from engine.threads import native_threads_run

from .chat import chat
from .flags.chat_flags import HELP_HINT
from .flags.config_files import SHARED, defaults_of, load_config
from .invocation import COMPLETION, Invocation
from .problems import Problem, engine_problem, show_problem
from .terminal.streams import prepare_streams, silence_stdout

COMMANDS = (
    "pull", "doctor", "serve", "replay", "race", "lesson", "tour", "export", "bench", "selftest", "train",
    "sessions", "completion", "help",
)  # fmt: skip
OF_THE_PROGRAM = ("completion", "help")
"""Commands that describe the program itself."""


def command_named(name: str) -> click.Command:
    """A command of ``COMMANDS``, imported when it is asked for: most starts want none of them."""
    module = import_module(f"{__package__}.commands.{name}")
    command = getattr(module, f"{name}_command")(chat) if name in OF_THE_PROGRAM else getattr(module, name)
    assert isinstance(command, click.Command)
    return command


SURE = 0.75
"""How alike two words are, in [0, 1], when one is offered for the other."""
CHATS_WORDS = {
    "--temp": "--temperature",
    "--block": "--block-size",
    "--think": "--thinking",
    "--speculation": "--no-speculation",
    "--preset": "--system",
}
"""The flags that do what the chat's commands of these names do, where that is another word."""
WITHOUT_CONFIG = ("help", "doctor", "completion")
"""Commands that must work when a configuration file doesn't."""


def program() -> NoReturn:
    """What ``dflash-chat`` runs: :func:`main`, then out: in an orderly way, unless a thread is in native code still, as
    when the program is left while models load."""
    if UNFIT:
        raise SystemExit(UNFIT)
    code = main()
    if code in (ExitCode.INTERRUPTED, ExitCode.TERMINATED, ExitCode.TIMEOUT):
        with suppress(OSError, ValueError):
            silence_stdout()  # whatever still waits there waits for a reader that may never come
    if native_threads_run():
        with suppress(OSError, ValueError):
            sys.stdout.flush()
            sys.stderr.flush()
        logging.shutdown()
        os._exit(code)
    sys.exit(code)


def main(arguments: Sequence[str] | None = None, engine: Engine = local_source, attach: Attach = server_source) -> int:
    """Run the program and return its exit code; ``engine`` and ``attach`` make the source of events."""
    prepare_streams()
    settle_home()
    if request := os.environ.get(COMPLETION):
        from .commands.completion import answer_shell

        return answer_shell(chat, {name: command_named(name) for name in COMMANDS}, request)
    words = list(sys.argv[1:] if arguments is None else arguments)
    try:
        return _run(words, engine, attach)
    except Problem as problem:
        return _give_up(problem)
    except EngineFailure as failure:
        return _give_up(engine_problem(failure))
    except Failure as failure:
        return _give_up(Problem(str(failure), failure.hint))
    except click.NoSuchOption as error:
        if (misplaced := _chats_flag(error, words)) is not None:
            return _give_up(misplaced)
        meant = CHATS_WORDS.get(error.option_name)
        near = [meant] if meant else get_close_matches(error.option_name, error.possibilities or (), 1, cutoff=SURE)
        message = f"{error.message} Did you mean {near[0]!r}?" if near else error.message
        return _give_up(Problem(message, _where_flags_are(error)))
    except click.ClickException as error:
        return _give_up(Problem(error.format_message(), _where_flags_are(error)))
    except (click.Abort, KeyboardInterrupt):
        return ExitCode.INTERRUPTED
    except BrokenPipeError:
        silence_stdout()
        return ExitCode.BROKEN_PIPE
    except OSError as error:
        silence_stdout()
        if error.filename is not None:
            what = f"{error.filename} can't be used: {error.strerror or error}."
            return _give_up(Problem(what, "Correct it, and ask again."))
        what = f"The output could not be written: {error.strerror or error}."  # stdout on a full disk, for one
        return _give_up(Problem(what, "Make room, and ask again.", ExitCode.GENERATION))
    except Exception as error:
        return _give_up(_exhausted(error) or _unexpected(error))


def _exhausted(error: Exception) -> Problem | None:
    """What the machine, or a limit on it, refused to give; None for anything else."""
    if "can't start new thread" in str(error):
        what, hint = (
            "The system gives the program no further thread.",
            "Raise ulimit -u, or the container's pids limit.",
        )
    elif isinstance(error, MemoryError):
        what, hint = "The system gives the program no further memory.", "Raise ulimit -v, or close other programs."
    else:
        return None
    return Problem(what, f"{hint} Then start again.", ExitCode.DEVICE)


def _unexpected(error: Exception) -> Problem:
    """A fault of this program's own, whose traceback goes to the log."""
    where = log_file()
    try:
        where.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
        with where.open("a", encoding="utf-8", errors="replace") as file:
            file.write(signed("".join(traceback.format_exception(error))))
        hint = f"That is a fault of its own. Please report it with the end of {where}."
    except OSError:
        hint = f"That is a fault of its own, at {traceback.extract_tb(error.__traceback__)[-1]}. Please report it."
    return Problem(f"The program failed: {type(error).__name__}: {error}", hint, ExitCode.GENERATION)


def _where_flags_are(error: click.ClickException) -> str:
    """A hint at what lists the flags of the command in which the error was made."""
    context = error.ctx if isinstance(error, click.UsageError) else None
    if context is None or context.command is chat:
        return HELP_HINT
    return f"{context.command_path} --help lists the flags."


def _give_up(problem: Problem) -> ExitCode:
    show_problem(problem)
    return problem.code


def _run(arguments: list[str], engine: Engine, attach: Attach) -> int:
    """Run the command that the first argument names, else the chat; a folder of such a name is ``./name``."""
    arguments = _command_first(arguments)
    name = arguments[0] if arguments and arguments[0] in COMMANDS else ""
    if arguments and not name:
        _refuse_typo(arguments[0])
    chosen = command_named(name) if name else chat
    _refuse_other_encodings(chosen, arguments)
    config = Config() if name in WITHOUT_CONFIG or _asks_for_help(arguments) else load_config(chat)
    path, words = f"dflash-chat {name}".rstrip(), arguments[1:] if name else arguments
    invocation, defaults = Invocation(engine, attach, config), defaults_of(config, SHARED if name else None)
    try:  # not by main(), which makes exit code 1 of a reader that is gone
        with chosen.make_context(path, words, obj=invocation, default_map=defaults) as context:
            code = chosen.invoke(context)
    except click.exceptions.Exit as left:
        code = left.exit_code
    sys.stdout.flush()  # while a failure can still be told
    return int(code or 0)


def _refuse_other_encodings(command: click.Command, arguments: Sequence[str]) -> None:
    """Raise :class:`Problem` for a word that is no UTF-8, unless it names a file, whose name may be anything."""
    options = {name: each for each in command.params for name in each.opts}
    for before, word in zip(["", *arguments], arguments, strict=False):
        if word.isascii() or not _is_other_encoding(word):
            continue
        name, _, value = word.partition("=")
        flag = options.get(name if word.startswith("-") and value else before)
        takes_path = isinstance(flag, click.Option) and isinstance(flag.type, click.Path)
        if takes_path or os.path.lexists(word.removeprefix("@")):
            continue
        shown = word.encode("utf-8", "surrogateescape").decode("utf-8", "replace")
        raise Problem(
            f"An argument is not UTF-8 text: {shown!r}.", "Convert it first, for example with iconv, or pipe it in so."
        )


def _is_other_encoding(word: str) -> bool:
    try:
        word.encode()
    except UnicodeEncodeError:
        return True
    return False


def _refuse_typo(word: str) -> None:
    """Raise :class:`Problem` for a word that is nearly a command's name, and nothing that could be a model's."""
    near = [] if word.startswith("-") or "/" in word else get_close_matches(word, COMMANDS, 1, cutoff=SURE)
    if near and not Path(word).exists():
        raise Problem(
            f"There is no command {word!r}. Did you mean {near[0]}?",
            f"Type: dflash-chat {near[0]}. A folder of that name would be ./{word}",
        )


def _command_first(arguments: list[str]) -> list[str]:
    """The arguments with a command's name in front that was typed behind flags, where it would be taken for a model."""
    if set(COMMANDS).isdisjoint(arguments):
        return arguments
    lenient: dict[str, Any] = {"resilient_parsing": True, "ignore_unknown_options": True, "allow_extra_args": True}
    model = chat.make_context("dflash-chat", [*arguments], **lenient).params["model"]
    if model not in COMMANDS or Path(model).exists():
        return arguments
    index = len(arguments) - 1 - arguments[::-1].index(model)  # the last: one before it is a flag's
    return [model, *arguments[:index], *arguments[index + 1 :]]


def _chats_flag(error: click.NoSuchOption, arguments: list[str]) -> Problem | None:
    """A flag of the chat behind a command that has none of this name: in words, with the line without it."""
    option = next((each for each in chat.params if error.option_name in each.opts), None)
    if error.ctx is None or error.ctx.command is chat or not isinstance(option, click.Option):
        return None
    index = next((n for n, word in enumerate(arguments) if word.partition("=")[0] == error.option_name), None)
    if index is None:
        return None
    takes_next = not (option.is_flag or isinstance(option.flag_value, str)) and "=" not in arguments[index]
    rest = arguments[:index] + arguments[index + 1 + takes_next :]
    return Problem(
        f"{error.option_name} is a flag of the chat; {error.ctx.command_path} has none of this name.",
        f"Type: dflash-chat {shlex.join(_command_first(rest))}. {error.ctx.command_path} --help lists the flags.",
    )


def _asks_for_help(arguments: list[str]) -> bool:
    """Whether help or the version is asked for, which must not fail on a configuration that does."""
    return any(argument in ("-h", "--help", "--version") for argument in arguments)
