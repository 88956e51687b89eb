"""The child: ``python -m dflash_tui.llamacpp.child``. It holds llama.cpp's server, and ends when its stdin does.

Lines of JSON: it says what it runs on, reads what to do, says where it listens. Its stderr is llama.cpp's log. It
imports nothing of this program: what it holds in memory is the server's.
"""

from __future__ import annotations

import ctypes
import json
import os
import signal
import sys
import threading
import time
from typing import Any

LOG_SECONDS = 0.5
"""What llama.cpp's own thread gets to write the log's last lines, which say why: nothing tells when it is done."""


def main() -> None:
    _die_with_parent()
    try:
        import xllamacpp
    except ImportError as error:
        _say({"missing": str(error)})
        return
    devices = [
        {"name": str(each["description"] or each["name"]), "free": int(each["memory_free"]), "gpu": _is_gpu(each)}
        for each in xllamacpp.get_device_info()
    ]
    _say({"version": xllamacpp.__version__, "devices": devices})
    line = sys.stdin.readline()
    if not line:
        return
    threading.Thread(target=_end_with_stdin, daemon=True).start()
    try:
        server = xllamacpp.Server(parameters(json.loads(line)))
    except RuntimeError as error:
        _say({"failed": str(error)})
        time.sleep(LOG_SECONDS)
        _leave(1)
    _say({"url": server.listening_address})
    threading.Event().wait()


def parameters(orders: dict[str, Any]) -> Any:
    """llama.cpp's own parameters, from a plan's orders."""
    import xllamacpp

    params = xllamacpp.CommonParams()
    params.model.path = orders["model"]
    params.hostnames, params.port = ["127.0.0.1"], 0
    params.api_keys = [orders["key"]]
    params.cors_origins = ""
    params.ui = False
    params.endpoint_metrics = params.endpoint_slots = True
    params.n_parallel = 1
    params.n_ctx = orders["context"]
    params.n_gpu_layers = -1 if orders["gpu"] else 0
    params.fit_params = orders["gpu"]
    params.cache_ram_mib, params.cache_idle_slots = 0, False
    spec = params.speculative
    if orders["threads"]:
        for one in (params.cpuparams, params.cpuparams_batch, spec.draft.cpuparams, spec.draft.cpuparams_batch):
            one.n_threads = orders["threads"]
    kind = orders["drafting"].upper().replace("-", "_")
    spec.types = [getattr(xllamacpp.common_speculative_type, f"COMMON_SPECULATIVE_TYPE_{kind}")]
    spec.draft.n_max = orders["draft_length"]
    spec.draft.n_gpu_layers = params.n_gpu_layers
    spec.draft.mparams.path = orders["drafter"]
    params.load_mtp = orders["drafting"] == "draft-mtp" and not orders["drafter"]
    spec.ngram_simple.size_n, spec.ngram_simple.size_m = orders["lookup"]
    return params


def _is_gpu(device: dict[str, Any]) -> bool:
    return "GPU" in device["type"].name


def _end_with_stdin() -> None:
    """Ends this process when its stdin does: whoever holds the other end of the pipe is gone, or wants it to go."""
    sys.stdin.read()
    _leave(0)


def _leave(code: int) -> None:
    """Ends the process at once; native threads might keep an orderly shutdown from ending."""
    sys.stdout.flush()
    os._exit(code)


def _die_with_parent() -> None:
    """Asks Linux to end this process with its parent, since no other thread of Python runs while llama.cpp loads a
    model."""
    if sys.platform == "linux":
        parent, death = os.getppid(), 1
        ctypes.CDLL(None).prctl(death, signal.SIGKILL)
        if os.getppid() != parent:
            _leave(0)


def _say(message: dict[str, Any]) -> None:
    print(json.dumps(message), flush=True)


if __name__ == "__main__":
    main()
