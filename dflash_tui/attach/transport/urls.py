"""Reads addresses: where a server's paths begin, whether it is this machine, and which proxy leads there."""

from __future__ import annotations

import re
from ipaddress import ip_address, ip_network
from urllib.request import getproxies, proxy_bypass

import httpx2

from dflash_tui.core.settings.addresses import KEY_VARIABLE

from ..failures import ServerFailure

INTERFACE = "/v1"
"""The path under which nearly every server has the interface."""
_PLACES = re.compile(r"/(?:chat/completions|completions|responses|embeddings|models)$")
_HINT = "An address looks like http://host:8000"


def root_of(url: str) -> tuple[httpx2.URL, str]:
    """The root of a server's own paths, and the prefix of the interface below it (``/v1`` or empty). The address may
    end with ``/v1`` or with an endpoint such as ``/v1/chat/completions``. Raises ``ServerFailure``."""
    try:
        root = httpx2.URL(url.strip())
    except (httpx2.InvalidURL, ValueError, TypeError):
        raise ServerFailure("The server's address is no URL.", _HINT) from None
    if root.scheme not in ("http", "https") or not root.host:
        raise ServerFailure("The server's address is no URL of http or https.", _HINT)
    if root.userinfo or root.query:
        raise ServerFailure(
            "The server's address holds a password or a query.",
            f"Its key goes into {KEY_VARIABLE}, or where key_variable of [servers.NAME] says.",
        )
    path = re.sub(r"/{2,}", "/", root.path).rstrip("/")
    base = _PLACES.sub("", path)
    named = base != path and not base.endswith(INTERFACE)  # an endpoint whose interface doesn't begin with /v1
    base, interface = (base, "") if named else (base.removesuffix(INTERFACE).rstrip("/"), INTERFACE)
    return root.copy_with(path=base or "/", fragment=None), interface


def same_server(here: httpx2.URL, there: httpx2.URL) -> bool:
    """Whether both are the same host and port, or the second is the same host with TLS."""
    if (here.scheme, here.host, here.port) == (there.scheme, there.host, there.port):
        return True
    encrypted = (here.scheme, there.scheme) == ("http", "https") and here.port is there.port is None
    return here.host == there.host and encrypted


def is_this_machine(host: str) -> bool:
    """Whether a host name or address never leaves this machine."""
    name = host.lower().rstrip(".").strip("[]")
    if name in ("localhost", "localhost.localdomain") or name.endswith(".localhost"):
        return True
    try:
        address = ip_address(name.partition("%")[0])
    except ValueError:
        return False
    address = getattr(address, "ipv4_mapped", None) or address
    return address.is_loopback or address.is_unspecified


def proxy_for(url: httpx2.URL) -> str | None:
    """The proxy that the environment names for an address; None where it is asked without one."""
    proxies = getproxies()
    proxy = proxies.get(url.scheme) or proxies.get("all")
    netloc = url.host if url.port is None else f"{url.host}:{url.port}"
    if not proxy or proxy_bypass(netloc) or _in_network(url.host, proxies.get("no", "")):
        return None
    return proxy if "://" in proxy else f"http://{proxy}"


def without_password(proxy: str) -> str:
    return re.sub(r"//[^/@]*@", "//", proxy).rstrip("/")


def _in_network(host: str, named: str) -> bool:
    """Whether the host lies in one of the networks of a ``NO_PROXY`` entry, such as ``10.0.0.0/8``."""
    try:
        address = ip_address(host.strip("[]"))
    except ValueError:
        return False
    for each in named.split(","):
        try:
            if address in ip_network(each.strip().strip("[]"), strict=False):
                return True
        except ValueError:
            continue
    return False
