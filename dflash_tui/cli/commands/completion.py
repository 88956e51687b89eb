"""``dflash-chat completion bash|zsh|fish``: what a shell needs to complete commands, flags and their values."""

from __future__ import annotations

from collections.abc import Mapping

import click
from click.shell_completion import BashComplete, CompletionItem, FishComplete, ShellComplete, ZshComplete

from dflash_tui.core.exit_codes import ExitCode

from ..flags.completing import among, models
from ..invocation import COMPLETION

SHELLS: Mapping[str, type[ShellComplete]] = {"bash": BashComplete, "zsh": ZshComplete, "fish": FishComplete}
INSTALL = {
    "bash": 'eval "$(dflash-chat completion bash)" in ~/.bashrc',
    "zsh": 'eval "$(dflash-chat completion zsh)" in ~/.zshrc',
    "fish": "dflash-chat completion fish > ~/.config/fish/completions/dflash-chat.fish",
}


class _Everything(click.Group):
    """The program as a shell sees it: flags of the chat, and the commands beside them."""

    def __init__(self, program: click.Command, commands: Mapping[str, click.Command]) -> None:
        options = [parameter for parameter in program.params if isinstance(parameter, click.Option)]
        super().__init__("dflash-chat", commands=dict(commands), params=list(options), invoke_without_command=True)

    def shell_complete(self, ctx: click.Context, incomplete: str) -> list[CompletionItem]:
        """Commands and flags, and models to chat with."""
        return [*super().shell_complete(ctx, incomplete), *among(models)(ctx, self.params[0], incomplete)]


def answer_shell(program: click.Command, commands: Mapping[str, click.Command], request: str) -> int:
    """Answer what a shell asked through ``COMPLETION``, such as ``bash_complete``."""
    shell, _, instruction = request.partition("_")
    if shell not in SHELLS or instruction != "complete":
        return ExitCode.USAGE
    complete = SHELLS[shell](_Everything(program, commands), {}, "dflash-chat", COMPLETION)
    click.echo(complete.complete())
    return ExitCode.OK


def completion_command(program: click.Command) -> click.Command:
    @click.command("completion", context_settings={"help_option_names": ["-h", "--help"]})
    @click.argument("shell", type=click.Choice(list(SHELLS)))
    def show(shell: str) -> int:
        """Print the completion script of SHELL."""
        click.echo(_source(shell, program))
        click.echo(f"# {INSTALL[shell]}")
        return ExitCode.OK

    return show


def _source(shell: str, program: click.Command) -> str:
    made = SHELLS[shell](program, {}, "dflash-chat", COMPLETION)
    return made.source_template % made.source_vars()  # BashComplete.source() would run bash to learn its version
