"""What answers at an address: found by asking, or said by the user."""

from __future__ import annotations

from dflash_tui.core.settings.servers import ServerAddress

from .dialects import KINDS, Facts, OpenAi
from .failures import Loading
from .listing import models_of
from .reading import mapping, words
from .transport.connection import Connection


async def ask_server(connection: Connection, address: ServerAddress) -> Facts:
    """Raises ``ServerFailure`` where nothing answers that can be asked questions."""
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
