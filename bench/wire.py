"""A minimal HTTP/1.1 client: the benchmark measures the node, not the client."""

import asyncio
import re
from types import TracebackType
from typing import Self

_LENGTH = re.compile(rb"\r\ncontent-length: *(\d+)", re.IGNORECASE)


class Wire:
    """A pool of connections to a port of this machine. A POST holds one of them."""

    def __init__(self, port: int, connections: int) -> None:
        self._port = port
        self._connections = connections
        self._free: asyncio.LifoQueue[tuple[asyncio.StreamReader, asyncio.StreamWriter]]

    async def __aenter__(self) -> Self:
        self._free = asyncio.LifoQueue()
        for _ in range(self._connections):
            self._free.put_nowait(await asyncio.open_connection("127.0.0.1", self._port))
        return self

    async def __aexit__(
        self,
        type: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        while not self._free.empty():
            _, writer = self._free.get_nowait()
            writer.close()

    async def post(self, body: bytes) -> bytes:
        """The response body for a JSON body. AssertionError when the response has no length."""
        reader, writer = connection = await self._free.get()
        writer.write(
            b"POST / HTTP/1.1\r\nhost: 127.0.0.1:%d\r\ncontent-type: application/json\r\n"
            b"content-length: %d\r\n\r\n%s" % (self._port, len(body), body)
        )
        head = await reader.readuntil(b"\r\n\r\n")
        length = _LENGTH.search(head)
        assert length is not None, head
        answer = await reader.readexactly(int(length[1]))
        self._free.put_nowait(connection)
        return answer
