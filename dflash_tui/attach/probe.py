"""Finds out what answers at an address: by asking it, or as the user says."""

from __future__ import annotations

from dflash_tui.core.settings.servers import ServerAddress

from .dialects import KINDS, Facts, OpenAi
from .failures import Loading
from .model_list import models_of
from .transport.connection import Connection
from .untrusted import mapping, words


async def ask_server(connection: Connection, address: ServerAddress) -> Facts:
    """Returns what the server at ``address`` says of itself. Raises ``ServerFailure`` where no chat server answers."""
    listed, failure = await models_of(connection, address.model)
    owner = words(mapping(next(iter(listed), None)).get("owned_by"))
    forced = address.dialect or next((name for name, kind in KINDS.items() if kind.owner == owner != ""), None)
    if failure is not None and not address.dialect and not isinstance(failure, Loading):
        raise failure
    for name in [forced] if forced else KINDS:
        if forced or KINDS[name] is not OpenAi:
            facts = await KINDS[name].found(connection, listed, forced is not None)
            if facts is not None:
                return facts
    if failure is not None:
        raise failure
    return await OpenAi.found(connection, listed, False)
