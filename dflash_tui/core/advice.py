"""What the engine advises, in the words of the command line: its flags and commands."""

from __future__ import annotations

from engine.errors import Advice, Attach, Fetch, Load, Option, Reinstall

FLAGS = {
    "drafter": "--draft",
    "device": "--device",
    "max_context": "--context",
    "offline": "--offline",
    "attention_backend": "--attention-backend",
    "noise_embed_scale": "--noise-embed-scale",
    "weights": "--weights",
}
"""The flags of the options that the engine gives advice on."""


def as_command(advice: Advice) -> str:
    """The advice as what to type, such as ``--context 4096`` or ``dflash-chat pull NAME``."""
    match advice:
        case Option(name, None | True):
            return FLAGS[name]
        case Option(name, value):
            return f"{FLAGS[name]} {value}"
        case Load(None):
            return "dflash-chat"
        case Load(name) | Attach(name):
            return f"dflash-chat {name}"
        case Fetch(name):
            return f"dflash-chat pull {name}"
        case Reinstall():
            return "Install dflash-chat again"
