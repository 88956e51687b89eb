"""``dflash-chat help TOPIC``: the flags of one topic, with what else there is to know of it."""

from __future__ import annotations

import shutil

import click

from dflash_tui.core.exit_codes import ExitCode
from dflash_tui.core.settings.addresses import KEY_VARIABLE
from dflash_tui.core.settings.servers import DIALECTS
from engine.hub.pairs import targets_with_mtp
from engine.hub.published_drafters import drafter_lines
from engine.tools.gpus import first_gpu

from ..flags.completing import among
from ..flags.options import TOPICS, flags_of, write_options
from ..problems import Problem
from ..sizes import size_lines

EXIT_CODES = {
    ExitCode.OK: "done",
    ExitCode.GENERATION: "generation failed",
    ExitCode.USAGE: "a flag, a file or a prompt that can't be used",
    ExitCode.WEIGHTS: "weights missing, damaged, or not what their config says",
    ExitCode.DEVICE: "no usable GPU, or not enough memory",
    ExitCode.REMOTE: "a server that can't be reached, refuses, or breaks off",
    ExitCode.TIMEOUT: "--timeout ran out; the partial answer was printed",
    ExitCode.INTERRUPTED: "Ctrl+C; the partial answer was printed",
    ExitCode.BROKEN_PIPE: "the reader of stdout went away",
    ExitCode.TERMINATED: "terminated; the partial answer was printed",
}


SERVERS = f"""
  dflash-chat http://gpu-box:8000      attach to it; {KEY_VARIABLE} holds its key, if it wants one
  dflash-chat --server team            attach to [servers.team] of your config.toml:

  [servers.team]
  url = "https://models.example.org"
  model = "google/gemma-4-26B-A4B-it"  its only or first one without
  key_variable = "TEAM_KEY"            or key_command = "secret-tool lookup service team"
  headers = {{X-Team = "speech"}}        sent with every request
  dialect = "vllm"                     otherwise found out by asking: {", ".join(DIALECTS)}

llama.cpp tells its rounds as they happen; vLLM at the end of an answer, when it was started with
--per-request-spec-decode-metrics detailed; SGLang sums, which prove what was seen. Others answer.
"""
"""What ``help servers`` says beside the flags."""


DRAFTERS = (
    "Published drafters, with kind, size and licence as far as they are known. --draft NAME takes any of them, a"
    " folder, or the address of a model's page on the hub; dflash-chat race MODEL --draft NAME,dflash,lookup,none"
    " tells which is faster."
)
"""What ``help models`` says before the table of drafters."""


def help_command(program: click.Command) -> click.Command:
    """``dflash-chat help [TOPIC]`` for the flags of ``program``."""

    @click.command("help", context_settings={"help_option_names": ["-h", "--help"]})
    @click.argument("topic", required=False, shell_complete=among(lambda: TOPICS))
    def show(topic: str | None) -> int:
        """Show the flags of one TOPIC; without one, which topics there are."""
        click.echo(topic_text(program, topic) if topic else topics_text(), nl=False)
        return ExitCode.OK

    return show


def mtp_text() -> str:
    """Which targets draft by MTP, and how that is asked for."""
    assisted, own = (", ".join(name.rpartition("/")[2] for name in names) for names in targets_with_mtp())
    return (
        f"--draft mtp drafts by a target's own MTP in DFlash's place: a layer among the files of {own};"
        f" an assistant, which is fetched beside them, of {assisted}. dflash-chat race MODEL --draft dflash,mtp tells"
        " which is faster."
    )


def topics_text() -> str:
    lines = [f"  dflash-chat help {name:<10} {about}\n" for name, about in TOPICS.items()]
    return "".join(["dflash-chat --help shows the most used flags on one screen.\n\n", *lines])


def topic_text(program: click.Command, topic: str) -> str:
    """The help of one topic. Raises :class:`Problem` for an unknown one."""
    if topic not in TOPICS:
        raise Problem(f"There is no help topic {topic!r}.", f"Topics: {', '.join(TOPICS)}.")
    width = min(shutil.get_terminal_size().columns, 100)
    formatter = click.HelpFormatter(width=width)
    formatter.write(f"{topic}: {TOPICS[topic]}\n")
    context = click.Context(program, info_name="dflash-chat")
    write_options(program, context, formatter, flags_of(program, topic))
    if topic == "models":
        formatter.write("\n" + "\n".join(size_lines(first_gpu())) + "\n")
        formatter.write("\n" + click.wrap_text(mtp_text(), width) + "\n")
        formatter.write("\n" + click.wrap_text(DRAFTERS, width) + "\n" + "\n".join(drafter_lines()) + "\n")
    if topic == "servers":
        formatter.write(SERVERS)
    if topic == "scripts":
        with formatter.section("Exit codes"):
            formatter.write_dl([(str(int(code)), meaning) for code, meaning in EXIT_CODES.items()])
    return formatter.getvalue()
