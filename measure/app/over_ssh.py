"""``python -m measure.app.over_ssh [KILOBYTES ...]``: is a key answered soon at the near end of a slow line?

Starts an ``sshd`` of its own on this machine, and between it and ``ssh`` a line that carries so many kilobytes per
second. The chat streams at 1000 tokens per second over it, in a terminal of 120x36.
"""

from __future__ import annotations

import argparse
import os
import shlex
import shutil
import socket
import statistics
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

from measure.quick import parse
from tests.app.terminal import Terminal

from .soak import CODE, PAUSE, QUIT, SIZE, User
from .soaked import percentile

LINES = (2000, 500, 100)
"""Rates of the line in kilobytes per second: a town away, a country away, a telephone in a train."""
SECONDS = 15.0
BUFFER = 16 * 1024
"""Bytes in the line's own buffer; the two systems and ssh have theirs on top."""
CONFIGURATION = """
Port {port}
ListenAddress 127.0.0.1
HostKey {folder}/host
AuthorizedKeysFile {folder}/user.pub
StrictModes no
UsePAM no
PasswordAuthentication no
"""


def free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


def needed(program: str) -> str:
    """The path of a program of OpenSSH. Raises ``SystemExit`` with what to install where it is missing."""
    path = shutil.which(program, path=f"{os.environ.get('PATH', '')}:/usr/sbin")
    if path is None:
        sys.exit(f"There is no {program} here. On Debian and Ubuntu: apt install openssh-server openssh-client")
    return path


@contextmanager
def server(folder: Path) -> Iterator[int]:
    """Runs an sshd that lets this user in; yields its port."""
    port = free_port()
    for name in ("host", "user"):
        subprocess.run([needed("ssh-keygen"), "-q", "-t", "ed25519", "-N", "", "-f", folder / name], check=True)
    (folder / "sshd_config").write_text(CONFIGURATION.format(port=port, folder=folder))
    with subprocess.Popen([needed("sshd"), "-D", "-f", folder / "sshd_config"], stderr=subprocess.DEVNULL) as process:
        try:
            time.sleep(0.5)
            yield port
        finally:
            process.terminate()


def carry(source: socket.socket, sink: socket.socket, bytes_per_second: float) -> None:
    """Carries one direction of the line, until either end closes."""
    due = time.monotonic()
    with suppress(OSError):
        while data := source.recv(4096):
            due = max(due, time.monotonic()) + len(data) / bytes_per_second
            time.sleep(max(due - time.monotonic(), 0.0))
            sink.sendall(data)
    with suppress(OSError):
        sink.shutdown(socket.SHUT_WR)


@contextmanager
def line(port: int, bytes_per_second: float) -> Iterator[int]:
    """Runs a slow line to ``port``; yields the port where it begins."""
    with socket.socket() as listener:
        listener.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, BUFFER)
        listener.bind(("127.0.0.1", 0))
        listener.listen()

        def connect() -> None:
            near, _ = listener.accept()
            far = socket.socket()
            far.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, BUFFER)
            far.connect(("127.0.0.1", port))
            for ends in ((near, far), (far, near)):
                threading.Thread(target=carry, args=(*ends, bytes_per_second), daemon=True).start()

        threading.Thread(target=connect, daemon=True).start()
        yield int(listener.getsockname()[1])


def echoes(folder: Path, port: int) -> list[float]:
    """Milliseconds from pressing each letter to seeing it, while an answer streams."""
    code = CODE.format(source="Tape(emit, seconds=3600)", report=3, log="SessionLog.nowhere()")
    report = folder / "report"
    variables = {"DFLASH_CHAT_CONFIG": "", "DFLASH_CHAT_STATE": str(folder), "COLORTERM": "truecolor"}
    environment = " ".join(f"{name}={shlex.quote(value)}" for name, value in variables.items())
    chat = f"cd {Path.cwd()} && {environment} {sys.executable} -c {shlex.quote(code)} 3>{report}"
    options = ["StrictHostKeyChecking=no", "UserKnownHostsFile=/dev/null", "LogLevel=ERROR"]
    flags = [word for option in options for word in ("-o", option)]
    command = [needed("ssh"), "-tt", "-i", str(folder / "user"), "-p", str(port), *flags, "127.0.0.1", chat]
    with Terminal(f"import os; os.execvp({command[0]!r}, {command!r})", SIZE) as terminal:
        terminal.answers = True
        user = User(terminal)
        terminal.wait_for("F1 help", 60)
        user.watch(1.0)
        terminal.send("go on\r")
        user.watch(3.0)
        deadline = time.monotonic() + SECONDS
        while time.monotonic() < deadline:
            user.type_letter()
            user.watch(PAUSE)
        terminal.send(QUIT)
        with suppress(Exception):
            terminal.wait_for_exit()
    return user.echoes


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("kilobytes", nargs="*", type=float, default=LINES)
    speeds = parse(parser, "400").kilobytes
    for program in ("sshd", "ssh-keygen", "ssh"):
        needed(program)
    for kilobytes in speeds:
        with tempfile.TemporaryDirectory() as name:
            folder = Path(name)
            with server(folder) as port, line(port, 1000 * kilobytes) as near:
                found = echoes(folder, near)
        print(
            f"{kilobytes:6.0f} kB/s   {len(found):3} keys   echo p50 {statistics.median(found):5.0f} ms   "
            f"p95 {percentile(found, 95):5.0f} ms   max {max(found):5.0f} ms",
            flush=True,
        )


if __name__ == "__main__":
    main()
