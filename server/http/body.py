"""The body of a request: its content type, and reading it under a limit."""

from typing import Protocol

from starlette.types import Message, Receive

from server.domain.errors import TooLarge

JSON = (b"application/json", b"application/json-rpc")


class Disconnected(Exception):
    """The caller disconnected before its body was complete."""


class ReadBody(Protocol):
    """Reads the body of a request."""

    async def __call__(self, headers: dict[bytes, bytes], limit: int, /) -> bytes:
        """The body. Raises TooLarge as soon as it exceeds the limit, and Disconnected."""


def is_json(content_type: bytes | None) -> bool:
    """Whether a body of this content type is read as JSON."""
    if content_type == b"application/json":
        return True
    return content_type is not None and content_type.partition(b";")[0].strip().lower() in JSON


async def read_body(receive: Receive, headers: dict[bytes, bytes], limit: int) -> bytes:
    """The request's body. Raises TooLarge as soon as it exceeds the limit."""
    length = headers.get(b"content-length")
    if length is not None and length.isdigit():
        check_size(int(length[:20]), limit)
    message = await receive()
    if message["type"] == "http.request" and not message.get("more_body"):
        body: bytes = message.get("body", b"")
        check_size(len(body), limit)
        return body
    return await _read_rest(receive, message, limit)


async def _read_rest(receive: Receive, message: Message, limit: int) -> bytes:
    parts: list[bytes] = []
    size = 0
    while True:
        if message["type"] != "http.request":
            raise Disconnected
        part = message.get("body", b"")
        size += len(part)
        check_size(size, limit)
        parts.append(part)
        if not message.get("more_body"):
            return b"".join(parts)
        message = await receive()


def check_size(size: int, limit: int) -> None:
    """Raise TooLarge for a body of more bytes than the limit."""
    if size > limit:
        raise TooLarge(f"The body may have {limit} bytes at most", limit=limit)
