"""What a client is told when it can't have what it asked for: a status and OpenAI's error object."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from engine.events import EngineError

_TYPES = {
    400: "invalid_request_error",
    401: "authentication_error",
    403: "permission_error",
    404: "not_found_error",
    429: "rate_limit_error",
    503: "overloaded_error",
}


class ApiFailure(Exception):
    """A request that gets no answer. ``str()`` is what happened and what to do, for people."""

    def __init__(
        self,
        status: int,
        message: str,
        *,
        param: str | None = None,
        code: str | None = None,
        retry_after: int | None = None,
    ) -> None:
        """``retry_after`` says after how many seconds to ask again; None to say nothing."""
        super().__init__(message)
        self.status = status
        self.param = param
        self.code = code
        self.retry_after = retry_after

    @property
    def headers(self) -> Mapping[str, str]:
        headers = {"WWW-Authenticate": "Bearer"} if self.status == 401 else {}
        return headers if self.retry_after is None else headers | {"Retry-After": str(self.retry_after)}

    def body(self) -> dict[str, Any]:
        """OpenAI's error object."""
        kind = _TYPES.get(self.status, "server_error" if self.status >= 500 else "invalid_request_error")
        return {"error": {"message": str(self), "type": kind, "param": self.param, "code": self.code}}


def engine_failure(error: EngineError) -> ApiFailure:
    words = f"{error.message} {error.hint}".rstrip()
    code = "context_length_exceeded" if error.kind == "usage" and "context holds" in error.message else None
    return ApiFailure(400 if error.kind == "usage" else 500, words, code=code)
