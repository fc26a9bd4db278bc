from typing import Any

import pytest

from contracts.model import Interface, Operation
from contracts.recognise import read
from proof.credentials import missing_credentials, without_credentials
from proof.messages import WireRequest

SCHEMES = {
    "key": {"type": "apiKey", "in": "header", "name": "X-Key"},
    "asked": {"type": "apiKey", "in": "query", "name": "key"},
    "session": {"type": "apiKey", "in": "cookie", "name": "sid"},
    "basic": {"type": "http", "scheme": "basic"},
    "oauth": {"type": "oauth2", "flows": {}},
    "tls": {"type": "mutualTLS"},
}


def secured(security: Any) -> tuple[Interface, Operation]:
    content = {
        "openapi": "3.1.0",
        "paths": {"/a": {"get": {"security": security, "responses": {}}}},
        "components": {"securitySchemes": SCHEMES},
    }
    interface = read(content, "openapi")
    (operation,) = interface.operations
    return interface, operation


def missing(security: Any, **given: Any) -> str | None:
    return missing_credentials(*secured(security), WireRequest("GET", "/a", **given))


@pytest.mark.parametrize(
    ("security", "given"),
    [
        ([], {}),
        ([{}], {}),
        ([{"key": []}], {"headers": (("x-key", "1"),)}),
        ([{"asked": []}], {"query": "key=1"}),
        ([{"session": []}], {"headers": (("Cookie", "a=b; sid=1"),)}),
        ([{"basic": []}], {"headers": (("Authorization", "basic YTpi"),)}),
        ([{"oauth": ["read"]}, {"key": []}], {"headers": (("Authorization", "Bearer x"),)}),
        ([{"oauth": ["read"]}, {"key": []}], {"headers": (("X-Key", "1"),)}),
        ([{"tls": []}], {}),
    ],
)
def test_a_request_with_credentials_lacks_nothing(security: Any, given: Any) -> None:
    assert missing(security, **given) is None


@pytest.mark.parametrize(
    ("security", "text"),
    [
        ([{"key": []}], "It needs the header X-Key."),
        ([{"asked": []}, {"session": []}], "It needs the query key, or the cookie sid."),
        (
            [{"oauth": [], "key": []}],
            'It needs the header "Authorization: Bearer …" and the header X-Key.',
        ),
        ([{"basic": []}], 'It needs the header "Authorization: Basic …".'),
    ],
)
def test_what_is_lacking_is_named(security: Any, text: str) -> None:
    assert missing(security) == text


TEAM = ("X-Team", "blue")


@pytest.mark.parametrize(
    ("security", "headers", "rest"),
    [
        ([{"key": []}], (TEAM, ("x-key", "1")), (TEAM,)),
        (
            [{"oauth": []}, {"key": []}],
            (("Authorization", "Bearer x"), TEAM, ("X-Key", "1")),
            (TEAM,),
        ),
        ([{"session": []}], (("Cookie", "sid=1"),), ()),
        # There is none among them, or it can be called without.
        ([{"key": []}], (TEAM,), None),
        ([{"asked": []}], (TEAM,), None),
        ([{"key": []}, {}], (("X-Key", "1"),), None),
        ([], (("X-Key", "1"),), None),
    ],
)
def test_credentials_are_taken_away(security: Any, headers: Any, rest: Any) -> None:
    assert without_credentials(*secured(security), headers) == rest
