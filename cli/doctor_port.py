"""What `cacp doctor` checks at the node's port: is it free, or does this node answer on it?"""

import errno
import socket
from collections.abc import Iterator
from contextlib import closing, suppress
from typing import TYPE_CHECKING, Any

from cli.client import own_url
from cli.doctor_check import DoctorCheck
from schemas.plain import one_line

if TYPE_CHECKING:
    from server.settings import Settings

ANSWER_SECONDS = 3.0


def port_checks(settings: "Settings") -> Iterator[DoctorCheck]:
    """Whether the node can listen, or already does; if it does, whether it is healthy."""
    address = f"{settings.host}:{settings.port}"
    try:
        family = socket.getaddrinfo(settings.host, settings.port, type=socket.SOCK_STREAM)[0][0]
        with closing(socket.create_server((settings.host, settings.port), family=family)):
            yield _free_port_check(settings, address)
            return
    except OSError as error:
        if error.errno != errno.EADDRINUSE:
            finding = f"{address}: {error.strerror}"
            yield DoctorCheck("port", "broken", finding, "choose another host")
            return
    health = _health(settings)
    agent = one_line(str(health.get("agentId") or ""))
    if agent != settings.agent:
        listener = agent or "another program"
        yield DoctorCheck(
            "port",
            "broken",
            f"{listener} listens on {address}",
            "stop it, or choose another port with --port or CACP_PORT",
        )
        return
    yield DoctorCheck("port", "ok", f"the node answers on {address}")
    if health.get("detail"):
        yield DoctorCheck("health", "warning", str(health["reason"]), one_line(health["detail"]))


def _free_port_check(settings: "Settings", address: str) -> DoctorCheck:
    from server.store.file_lock import is_locked

    if not is_locked(settings.db):
        return DoctorCheck("port", "ok", f"{address} is free: the node isn't running")
    return DoctorCheck(
        "port",
        "warning",
        f"{address} is free, but a node runs on this database: on another port",
        "give `cacp doctor` that node's settings (CACP_PORT or --config)",
    )


def _health(settings: "Settings") -> dict[str, Any]:
    """The body of /health; empty when the port doesn't answer as a node does."""
    import httpx

    url = own_url(settings.host, settings.port)
    with suppress(httpx.HTTPError, ValueError):
        body = httpx.get(f"{url}/health", timeout=ANSWER_SECONDS, trust_env=False).json()
        return body if isinstance(body, dict) else {}
    return {}
