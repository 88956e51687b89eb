"""Settings in the environment with which the hub's client can't even be imported, told before it is."""

from __future__ import annotations

import os
from urllib.parse import urlsplit

from ..errors import WeightsFailure

ENDPOINT = "HF_ENDPOINT"
SECONDS = ("HF_HUB_ETAG_TIMEOUT", "HF_HUB_DOWNLOAD_TIMEOUT")


def require_settings() -> None:
    """Raises ``WeightsFailure`` for an address of the hub, or a number of seconds, that is none. To be called in front
    of imports of the client."""
    endpoint = os.environ.get(ENDPOINT) or "https://huggingface.co"
    try:
        parts = urlsplit(endpoint)
        clean = endpoint.isprintable() and " " not in endpoint  # the client would blame a proxy
        usable = clean and parts.scheme in ("http", "https") and bool(parts.hostname) and parts.port != 0
    except ValueError:
        usable = False
    if not usable:
        raise WeightsFailure(
            f"{ENDPOINT} is {endpoint!r}, which is no address of a hub.",
            "Addresses look like https://huggingface.co; unset it for the usual one.",
        )
    for name in SECONDS:
        if (value := os.environ.get(name)) and not value.strip().isdecimal():
            raise WeightsFailure(f"{name} is {value!r}, which is no whole number of seconds.", "Correct or unset it.")
