"""The body of a request: its content type, and reading it under a limit."""

from starlette.types import Message, Receive

from server.domain.errors import TooLarge

JSON = (b"application/json", b"application/json-rpc")


class Disconnected(Exception):
    """The caller disconnected before its body was complete."""


def is_json(content_type: bytes | None) -> bool:
    """Whether a body of this content type is read as JSON."""
    if content_type == b"application/json":
        return True
    return content_type is not None and content_type.partition(b";")[0].strip().lower() in JSON


async def read_body(receive: Receive, headers: dict[bytes, bytes], limit: int) -> bytes:
    """The request's body. Raises TooLarge as soon as it exceeds the limit."""
    length = headers.get(b"content-length")
    if length is not None and length.isdigit() and int(length[:20]) > limit:
        raise _body_too_large(limit)
    message = await receive()
    if message["type"] == "http.request" and not message.get("more_body"):
        body: bytes = message.get("body", b"")
        if len(body) > limit:
            raise _body_too_large(limit)
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
        if size > limit:
            raise _body_too_large(limit)
        parts.append(part)
        if not message.get("more_body"):
            return b"".join(parts)
        message = await receive()


def _body_too_large(limit: int) -> TooLarge:
    return TooLarge(f"The body may have {limit} bytes at most", limit=limit)
