"""Connections that go only to addresses which were checked (design §6).

The pool keeps connections by scheme, name and port, never by address: one that was made for a name,
and whose certificate was checked for it, serves no other name.
"""

import asyncio
import socket
from collections.abc import Iterable
from typing import Any

import httpcore
import httpx

from peers.errors import PeerUnreachable, Problem

CONNECTIONS = 100
KEPT_SECONDS = 4.0
"""A connection that was idle for longer isn't used again: many servers close theirs after 5 s."""
CONNECT_SECONDS = 5.0
GONE_SECONDS = 10
"""A machine that acknowledges nothing for so long is gone, and so is a peer that reads nothing of a
large body for so long. A peer that is only slow to respond is given more time."""


def _gone() -> list[tuple[int, int, int]]:
    """Socket options that end a connection to a machine that is gone, as far as the system has
    them."""
    tcp = {
        "TCP_USER_TIMEOUT": GONE_SECONDS * 1_000,
        "TCP_KEEPIDLE": GONE_SECONDS // 2 - 1,
        "TCP_KEEPINTVL": 2,
        "TCP_KEEPCNT": 3,
    }
    known = [(getattr(socket, name, None), value) for name, value in tcp.items()]
    supported = [(socket.IPPROTO_TCP, name, value) for name, value in known if name is not None]
    return [(socket.SOL_SOCKET, socket.SO_KEEPALIVE, 1), *supported]


def pool(address_problem: Problem) -> httpcore.AsyncConnectionPool:
    return httpcore.AsyncConnectionPool(
        ssl_context=httpx.create_ssl_context(),
        max_connections=CONNECTIONS,
        keepalive_expiry=KEPT_SECONDS,
        network_backend=Checked(address_problem),
    )


class Checked(httpcore.AnyIOBackend):
    """Resolves a name, checks every address that it has, and connects to the first that answers."""

    def __init__(self, address_problem: Problem) -> None:
        self._address_problem = address_problem

    async def connect_tcp(
        self,
        host: str,
        port: int,
        timeout: float | None = None,  # noqa: ASYNC109 - httpcore's own signature
        local_address: str | None = None,
        socket_options: Iterable[Any] | None = None,
    ) -> httpcore.AsyncNetworkStream:
        *others, last = await self._resolved(host, port)
        for address in others:
            try:
                return await self._connected(address, port)
            except (httpcore.ConnectError, httpcore.ConnectTimeout):
                continue
        return await self._connected(last, port)

    async def _connected(self, address: str, port: int) -> httpcore.AsyncNetworkStream:
        return await super().connect_tcp(address, port, CONNECT_SECONDS, socket_options=_gone())

    async def _resolved(self, host: str, port: int) -> list[str]:
        """The addresses of a host. Raises PeerUnreachable if any of them may not be called."""
        loop = asyncio.get_running_loop()
        try:
            entries = await loop.getaddrinfo(host, port, type=socket.SOCK_STREAM)
        except (OSError, UnicodeError):
            raise PeerUnreachable(f"can't be reached: no address is known for {host}") from None
        addresses = list(dict.fromkeys(str(entry[4][0]) for entry in entries))
        for address in addresses:
            problem = self._address_problem(address)
            if problem is not None:
                raise PeerUnreachable(f"may not be called: {problem}")
        return addresses
