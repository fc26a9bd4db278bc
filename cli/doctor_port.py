"""What `cacp doctor` checks at the port where `cacp serve` would listen."""

import errno
import socket
import sys
from collections.abc import Iterator
from contextlib import closing
from typing import TYPE_CHECKING

from schemas.plain import one_line
from server.domain.doctor_check import DoctorCheck

if TYPE_CHECKING:
    from server.settings import Settings


def port_checks(settings: "Settings") -> Iterator[DoctorCheck]:
    """Whether a node can listen there. Only for a node that doesn't run."""
    from cli.doctor_node import health_at
    from cli.node_url import own_url

    address = f"{settings.host}:{settings.port}"
    try:
        family = socket.getaddrinfo(settings.host, settings.port, type=socket.SOCK_STREAM)[0][0]
        with closing(socket.create_server((settings.host, settings.port), family=family)):
            yield DoctorCheck("port", "ok", f"{address} is free")
            return
    except OSError as error:
        if error.errno != errno.EADDRINUSE:
            finding = f"{address}: {error.strerror}"
            yield DoctorCheck("port", "broken", finding, "choose another host")
            return
    agent = health_at(own_url(settings.host, settings.port)).get("agentId")
    if sys.platform == "win32" and agent == settings.agent:
        # Without locks it is not known whose database it has open.
        yield DoctorCheck("port", "ok", f"the node answers on {address}")
        return
    listener = f"{one_line(agent)}, a node of another database," if agent else "another program"
    yield DoctorCheck(
        "port",
        "broken",
        f"{listener} listens on {address}",
        "stop it, or choose another port with --port or CACP_PORT",
    )
