"""Forms as browsers send them, and as nobody should."""

import asyncio

import pytest
from starlette.requests import Request
from starlette.types import Message

from server.domain.errors import InvalidInput, InvalidRequest, Refusal, TooLarge
from server.page.forms import FIELDS_MAX, FORM_LIMIT, read_form

FORM = b"application/x-www-form-urlencoded"


def fields(body: bytes, kind: bytes = FORM) -> dict[str, str]:
    async def receive() -> Message:
        return {"type": "http.request", "body": body}

    scope = {"type": "http", "headers": [(b"content-type", kind)]}
    return asyncio.run(read_form(Request(scope, receive)))


def test_a_form_is_read() -> None:
    assert fields(b"a=1&b=%C3%A4+%26&c=", FORM + b"; charset=UTF-8") == {
        "a": "1",
        "b": "ä &",
        "c": "",
    }
    assert fields(b"text=one%0D%0Atwo") == {"text": "one\ntwo"}
    assert fields(b"") == {}


@pytest.mark.parametrize(
    ("body", "kind", "refusal"),
    [
        (b"a=1", b"text/plain", InvalidRequest),
        (b"{}", b"application/json", InvalidRequest),
        (b"a=1", b"", InvalidRequest),
        (b"a=" + b"x" * FORM_LIMIT, FORM, TooLarge),
        (b"a=1&a=2", FORM, InvalidInput),
        (b"a=%00", FORM, InvalidInput),
        (b"%00=a", FORM, InvalidInput),
        (b"a=\xc3\xa4", FORM, InvalidInput),
        (b"a=%C3", FORM, InvalidInput),
        (b"a=%ED%A0%80", FORM, InvalidInput),
        (b"&".join(b"a%d=" % number for number in range(FIELDS_MAX + 1)), FORM, InvalidInput),
    ],
)
def test_what_is_no_form_is_refused(body: bytes, kind: bytes, refusal: type[Refusal]) -> None:
    with pytest.raises(refusal):
        fields(body, kind)
