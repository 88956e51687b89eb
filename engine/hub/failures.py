"""Says in words what can go wrong between this machine and the hub: what happened, and the next step."""

from __future__ import annotations

import errno
import os
from collections.abc import Iterator
from contextlib import contextmanager
from importlib import import_module
from socket import gaierror
from ssl import SSLError

from filelock import Timeout
from huggingface_hub import constants, get_token, whoami
from huggingface_hub.errors import (
    FileMetadataError,
    GatedRepoError,
    HfHubHTTPError,
    HFValidationError,
    OfflineModeIsEnabled,
    RepositoryNotFoundError,
)

from ..errors import Fetch, Load, WeightsFailure
from .environment import ENDPOINT

TRANSPORT_ERROR: type[Exception] = HfHubHTTPError.__bases__[0]
"""The HTTP library's base error: httpx in ``huggingface_hub`` 1, httpx2 in 2."""

INVALID_ADDRESS: type[Exception] = import_module(TRANSPORT_ERROR.__module__.partition(".")[0]).InvalidURL

SIGN_IN = "hf auth login            (or: export HF_TOKEN=...)"
KEPT = "what was fetched is kept"
IN_BETWEEN = (
    "A network that wants you to sign in first, or a proxy, may answer instead: open the address in a browser."
    f" {ENDPOINT}, where it is set, must name a hub."
)
STATUS_HINTS = {
    403: IN_BETWEEN,
    404: IN_BETWEEN,
    407: "The proxy wants a name and a password: HTTPS_PROXY=http://NAME:PASSWORD@host:port.",
    429: f"It was asked too often: wait some minutes, then run the same command again; {KEPT}.",
    451: "It may not be had where you are, for legal reasons: name another model.",
}
"""What to do about a status that a later try gets, too."""
CERTIFICATES = "SSL_CERT_FILE"
"""The environment's variable that names a file of certificates, for clients of the hub, too."""


@contextmanager
def explained(name: str) -> Iterator[None]:
    """Turns what the hub's client raises about model ``name`` into a ``WeightsFailure`` with a next step."""
    require_token()
    try:
        yield
    except HFValidationError:
        raise WeightsFailure(f"{name!r} is not a model's name.", "Names look like google/gemma-4-26B-A4B-it.") from None
    except HfHubHTTPError as error:
        raise _refused(name, error, error.response.status_code) from None
    except Timeout as error:
        raise WeightsFailure(
            f"Another program is fetching {name} at the moment, or one that ended early left its lock.",
            f"Wait for it to end, then run the same command again. If none runs, delete {error.lock_file}.",
        ) from None
    except (TRANSPORT_ERROR, OSError) as error:
        raise _unreachable_or_unwritable(name, error) from None
    except (INVALID_ADDRESS, ValueError, ImportError) as error:
        if str(error) == "Invalid IPv6 URL":  # urllib's words, of the address to which an answer leads
            raise no_hub("it leads to an address that is none") from None
        if not isinstance(error, INVALID_ADDRESS) and "prox" not in str(error).lower():
            raise
        raise WeightsFailure(
            f"The hub can't be asked for {name}: a proxy in this environment is none that can be used ({error}).",
            "Correct or unset HTTPS_PROXY, HTTP_PROXY and ALL_PROXY.",
        ) from None


def no_hub(what: str) -> WeightsFailure:
    """The failure where something else answers in the hub's place, as a network's page to sign in does."""
    return WeightsFailure(f"What answers at {constants.ENDPOINT} is not the hub: {what}.", IN_BETWEEN)


def require_token() -> None:
    """Raises ``WeightsFailure`` for an access token that can't be sent: the client's own error names none."""
    token = read_token()
    if token is not None and not (token.isascii() and token.isprintable() and " " not in token):
        raise WeightsFailure(
            "The access token holds what can't be sent: a blank, a line break, or letters that aren't ASCII.",
            f"Correct HF_TOKEN or {constants.HF_TOKEN_PATH}, or sign in again with hf auth login.",
        )


def read_token() -> str | None:
    """The access token; None where there is none. Raises ``WeightsFailure`` where its file can't be read."""
    try:
        return get_token()
    except NotADirectoryError:  # the cache's folder is a file, which is told when it is used
        return None
    except (OSError, UnicodeDecodeError) as error:
        raise WeightsFailure(
            f"The access token in {constants.HF_TOKEN_PATH} can't be read ({error}).",
            "Sign in again with hf auth login, or set HF_TOKEN.",
        ) from None


def _refused(name: str, error: BaseException, status: int) -> WeightsFailure:
    if isinstance(error, GatedRepoError):  # first, because it is a RepositoryNotFoundError, too
        return _gated(name, status)
    if isinstance(error, RepositoryNotFoundError):
        # The hub answers 401 for every unknown name when nobody is signed in, so as not to reveal private models.
        private = "it may be private to another account." if read_token() else f"if it is private: {SIGN_IN}"
        return WeightsFailure(f"The hub has no model {name}.", f"Check the spelling; {private}")
    if status == 401:
        return WeightsFailure(
            "The hub doesn't know the access token that this machine sends (HTTP 401).",
            "Sign in again with hf auth login, or correct HF_TOKEN.",
        )
    if status == 403 and read_token():
        return WeightsFailure(
            f"The access token has no right to read {name} (HTTP 403).",
            "Fine-grained tokens need the permission to read gated repositories: https://huggingface.co/settings/tokens",
        )
    what = f"The hub, or what stands before it, answered {status} when asked for {name}."
    return WeightsFailure(what, STATUS_HINTS.get(status, f"Try again later; {KEPT}."))


def _gated(name: str, status: int) -> WeightsFailure:
    who = "you are not signed in" if status == 401 else f"you are signed in as {_user()}"
    return WeightsFailure(
        f"{name} needs a licence click (HTTP {status}, {who}).",
        (
            f"1. open {constants.ENDPOINT}/{name} and accept the terms\n"
            f"2. {SIGN_IN}     fine-grained tokens need the right to read gated repos\n"
            "3. ",
            Fetch(name),
            f"     {KEPT}\nAlready have the weights? ",
            Load("/path/to/model"),
            "     No GPU? ",
            Load(),
            " alone runs the bundled pair",
        ),
    )


def _user() -> str:
    try:
        return str(whoami()["name"])
    except (TRANSPORT_ERROR, OSError, KeyError):
        return "somebody it doesn't name"


def _unreachable_or_unwritable(name: str, error: Exception) -> WeightsFailure:
    named = os.environ.get(CERTIFICATES)
    if named and (isinstance(error, SSLError) or not os.path.isfile(named)):
        return WeightsFailure(
            f"The hub can't be asked: {CERTIFICATES} names {named}, which holds no certificates.",
            "Correct or unset it.",
        )
    cause = error.__cause__ or error  # the client wraps the error in advice of its own
    if isinstance(cause, FileMetadataError):
        return no_hub("it says of no file which revision it is")
    if (response := getattr(cause, "response", None)) is not None:
        return _refused(name, cause, response.status_code)
    number = error.errno if isinstance(error, OSError) else None
    if number in (errno.ENOSPC, errno.EDQUOT):
        return WeightsFailure(
            f"The disk of {constants.HF_HUB_CACHE} is full.",
            f"Make room, or set HF_HOME to a folder on a larger disk, then run the same command again; {KEPT}.",
        )
    if number in (errno.ENOTDIR, errno.EEXIST):
        return WeightsFailure(
            f"The cache {constants.HF_HUB_CACHE} can't be used: a file stands where a folder must be.",
            "Move that file away, or set HF_HOME to a folder.",
        )
    if number == errno.EISDIR:
        where = getattr(error, "filename", None) or "one of its files"
        return WeightsFailure(
            f"The cache {constants.HF_HUB_CACHE} can't be used: a folder stands in place of a file.",
            f"Move it away: {where}.",
        )
    if number in (errno.ENOLCK, errno.ENOSYS, errno.EOPNOTSUPP):
        return WeightsFailure(
            f"The cache {constants.HF_HUB_CACHE} lies where files can't be locked ({error!s}).",
            "Set HF_HOME to a folder on a local disk.",
        )
    if number in (errno.EACCES, errno.EPERM, errno.EROFS):
        return WeightsFailure(
            f"The cache {constants.HF_HUB_CACHE} can't be written.", "Set HF_HOME to a folder that you may write to."
        )
    if number and not isinstance(error, ConnectionError | TimeoutError | gaierror | SSLError):
        return WeightsFailure(
            f"The cache {constants.HF_HUB_CACHE} can't be used ({error}).", "Set HF_HOME to a folder on a local disk."
        )
    if isinstance(error, OfflineModeIsEnabled):
        return WeightsFailure(f"{name} is not on this machine, and HF_HUB_OFFLINE is set.", "Unset it to download.")
    if "CERTIFICATE_VERIFY" in str(cause):
        return WeightsFailure(
            f"What answers at {constants.ENDPOINT} can't show that it is the hub ({cause}).",
            f"Where a proxy signs connections anew, {CERTIFICATES} must name its certificates. {IN_BETWEEN}",
        )
    return WeightsFailure(
        f"The hub can't be reached to fetch {name} ({str(cause) or type(cause).__name__}).",
        f"Check the network and its proxy, then run the same command again; {KEPT}.",
    )
