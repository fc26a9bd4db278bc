"""Starts the provider of a checkout, waits until it answers itself, and ends it with all that it
has started."""

import asyncio
import os
import signal
import socket
import subprocess
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import BinaryIO
from urllib.parse import urlsplit

from proof.git_tree import clean_environment
from proof.own_processes import end_all_of, knows, listens, shell_words, started_by
from proof.sender import BaseUrl

LOOK_SECONDS = 0.05
ANSWER_SECONDS = 5.0
GRACE_SECONDS = 5.0
SHOWN_BYTES, SHOWN_LINES = 10_000, 20


class NotAnswering(Exception):
    """Why no provider was started, or it does not answer, in one line; and what it printed last."""

    def __init__(self, why: str, printed: list[str] | None = None) -> None:
        super().__init__(why)
        self.printed = printed or []


class ServedProvider:
    """A provider that was started, and what it prints."""

    def __init__(self, process: subprocess.Popen[bytes], output: BinaryIO) -> None:
        self._process, self._output = process, output

    def check(self, url: BaseUrl) -> None:
        """Raises NotAnswering where something else listens at the address: another process can take
        it after the provider was started. Believed where the system doesn't tell (`knows`)."""
        if self.ended is not None:
            why = f"it ended with status {self.ended}, so something else has answered"
            raise NotAnswering(why, self.printed())
        if knows() and not listens(started_by(self._process.pid), *_place(url)):
            raise NotAnswering(
                f"something else answers at {url.origin}, which it has not started: take another "
                "port. What a service such as Docker starts for it is probed without --serve",
                self.printed(),
            )

    @property
    def ended(self) -> int | None:
        """Its exit status, negative for a signal; None while it runs."""
        return self._process.poll()

    def printed(self) -> list[str]:
        """The last lines that it printed."""
        number = self._output.fileno()
        tail = os.pread(number, SHOWN_BYTES, max(0, os.fstat(number).st_size - SHOWN_BYTES))
        return tail.decode(errors="replace").splitlines()[-SHOWN_LINES:]


@contextmanager
def serving(command: str, url: BaseUrl, folder: Path, seconds: float) -> Iterator[ServedProvider]:
    """Run a provider's command in a shell while the block runs. `seconds` is how long it may take
    to answer. Raises NotAnswering."""
    if not url.is_near:
        raise NotAnswering(f"{url.origin} is not on this machine, where the provider would start")
    if _listens(url):
        raise NotAnswering(
            f"something answers at {url.origin} already, which need not be this checkout's: end "
            "it, or take another port"
        )
    with tempfile.TemporaryFile() as output:
        process = subprocess.Popen(
            shell_words(command),
            cwd=folder,
            env=clean_environment(),
            stdin=subprocess.DEVNULL,
            stdout=output,
            stderr=subprocess.STDOUT,
            start_new_session=True,
        )
        served = ServedProvider(process, output)
        try:
            _wait(served, url, seconds)
            yield served
        finally:
            _end(process)


def _listens(url: BaseUrl) -> bool:
    try:
        socket.create_connection(_place(url), ANSWER_SECONDS).close()
    except OSError:
        return False
    return True


def _place(url: BaseUrl) -> tuple[str, int]:
    parts = urlsplit(url.origin)
    return str(parts.hostname), parts.port or (443 if parts.scheme == "https" else 80)


def _wait(served: ServedProvider, url: BaseUrl, seconds: float) -> None:
    """Until an HTTP answer of the provider comes, whichever. Raises NotAnswering."""
    deadline = time.monotonic() + seconds
    while True:
        if served.ended is not None:
            why = f"it ended with status {served.ended} before it answered at {url.origin}"
            raise NotAnswering(why, served.printed())
        if asyncio.run(_answers(url, deadline - time.monotonic())):
            return served.check(url)
        if time.monotonic() > deadline:
            why = f"it did not answer at {url.origin} within {seconds:g} s"
            raise NotAnswering(why, served.printed())
        time.sleep(LOOK_SECONDS)


async def _answers(url: BaseUrl, seconds: float) -> bool:
    """Whether an answer begins within the time. Its body is left: it may have no end."""
    import httpx

    with suppress(httpx.HTTPError, TimeoutError):
        async with (
            asyncio.timeout(min(seconds, ANSWER_SECONDS)),
            httpx.AsyncClient(timeout=ANSWER_SECONDS, trust_env=False) as client,
            client.stream("GET", url.origin + url.path),
        ):
            return True
    return False


def _end(process: subprocess.Popen[bytes]) -> None:
    """End a process and what it has started, where that is not known its group: SIGTERM, a grace
    period, SIGKILL."""
    if knows():
        end_all_of(process.pid, GRACE_SECONDS)
    else:
        with suppress(ProcessLookupError):
            os.killpg(process.pid, signal.SIGTERM)
            with suppress(subprocess.TimeoutExpired):
                process.wait(GRACE_SECONDS)
            os.killpg(process.pid, signal.SIGKILL)
    # Another user's process, such as that of sudo, stays.
    with suppress(subprocess.TimeoutExpired):
        process.wait(GRACE_SECONDS)
