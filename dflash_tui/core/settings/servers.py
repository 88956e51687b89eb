"""Which server to attach to: its URL, and what a ``[servers.NAME]`` table says beside it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Literal, get_args

Dialect = Literal["dflash", "llama.cpp", "vllm", "sglang", "openai"]
"""How a server tells of its rounds. ``openai`` is any other server with that interface: texts and totals."""
DIALECTS: tuple[Dialect, ...] = get_args(Dialect)


@dataclass(frozen=True, slots=True)
class ServerAddress:
    """Where a server is and how it wants to be asked. What is secret never shows in a ``repr``."""

    url: str
    """``http://host:8000`` or with ``/v1`` behind it; no query, no fragment, no user or password."""
    model: str = ""
    """The model to ask, by the server's name for it; empty: the only one, or the first."""
    dialect: Dialect | None = None
    """How it tells of its rounds; None: find out by asking."""
    key: str = field(default="", repr=False)
    """Sent as ``Authorization: Bearer``; empty for none."""
    headers: Mapping[str, str] = field(default_factory=dict, repr=False)
    """Sent with every request; they may be secret, too."""
