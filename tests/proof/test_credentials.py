from typing import Any

import pytest

from contracts.recognise import read
from proof.credentials import missing_credentials
from proof.messages import WireRequest

SCHEMES = {
    "key": {"type": "apiKey", "in": "header", "name": "X-Key"},
    "asked": {"type": "apiKey", "in": "query", "name": "key"},
    "session": {"type": "apiKey", "in": "cookie", "name": "sid"},
    "basic": {"type": "http", "scheme": "basic"},
    "oauth": {"type": "oauth2", "flows": {}},
    "tls": {"type": "mutualTLS"},
}


def missing(security: Any, **given: Any) -> str | None:
    content = {
        "openapi": "3.1.0",
        "paths": {"/a": {"get": {"security": security, "responses": {}}}},
        "components": {"securitySchemes": SCHEMES},
    }
    interface = read(content, "openapi")
    (operation,) = interface.operations
    return missing_credentials(interface, operation, WireRequest("GET", "/a", **given))


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
