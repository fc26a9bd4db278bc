import pytest

from contracts.recognise import read
from proof.exchange import RuleBreach
from proof.hidden_values import DID_NOT_FIT, HiddenValues, hidden_places, is_of
from proof.messages import WireAnswer, WireRequest

SCHEMES = {
    "a": {"type": "apiKey", "in": "query", "name": "kiosk"},
    "b": {"type": "apiKey", "in": "header", "name": "X-Kiosk"},
    "c": {"type": "http", "scheme": "basic"},
    "d": "no scheme",
}
CONTRACT = read(
    {
        "openapi": "3.1.0",
        "info": {"title": "A", "version": "1"},
        "paths": {"/a": {"get": {"responses": {"200": {"description": ""}}}}},
        "components": {"securitySchemes": SCHEMES},
    },
    None,
    None,
)


def hidden(query: str = "", *headers: tuple[str, str]) -> WireRequest:
    return HiddenValues.of([CONTRACT]).request(WireRequest("GET", "/a", query, headers, b"x"))


@pytest.mark.parametrize(
    ("query", "left"),
    [
        ("", ""),
        ("a=1&kiosk=s3cret&b=%20", "a=1&kiosk=[hidden]&b=%20"),
        ("API%5FKEY=s3cret&api_key=s3cret", "API%5FKEY=[hidden]&api_key=[hidden]"),
        ("access_token=s=3cret&token", "access_token=[hidden]&token"),
    ],
)
def test_members_of_a_query_are_hidden(query: str, left: str) -> None:
    assert hidden(query).query == left


@pytest.mark.parametrize(
    ("name", "value", "left"),
    [
        ("Authorization", "Bearer s3cret", "Bearer [hidden]"),
        ("authorization", "s3cret", "[hidden]"),
        ("X-Auth-Token", "s3 cret", "[hidden]"),
        ("x-kiosk", "s3cret", "[hidden]"),
        ("Cookie", "sid=s3cret; a=s3=cret;s3cret", "sid=[hidden]; a=[hidden]; [hidden]"),
        ("X-Team", "blue", "blue"),
    ],
)
def test_headers_are_hidden(name: str, value: str, left: str) -> None:
    assert hidden("", (name, value)).headers == ((name, left),)


def test_cookies_of_an_answer_are_hidden() -> None:
    answer = WireAnswer(200, (("Set-Cookie", "sid=s3cret; Path=/"), ("A", "b")), b"x")
    assert HiddenValues().answer(answer).headers == (("Set-Cookie", "[hidden]"), ("A", "b"))


def test_a_breach_does_not_quote_what_is_hidden() -> None:
    request = WireRequest("GET", "/a", "kiosk=s3cret&n=x", (("Cookie", "Sid=s3cret"),))
    breaches = (
        RuleBreach("query_schema", "query kiosk", '"s3cret" is too short'),
        RuleBreach("cookie_schema", "cookie Sid", '"s3cret" is too short'),
        RuleBreach("query_schema", "query n", '"x" is no number'),
        RuleBreach("missing", "query kiosk2", "It is required, and missing."),
    )
    shown = HiddenValues.of([CONTRACT]).breaches(request, breaches)
    assert [breach.why for breach in shown[:2]] == [DID_NOT_FIT, DID_NOT_FIT]
    assert shown[2:] == breaches[2:]


def test_places_are_found_again() -> None:
    places = hidden_places(hidden("kiosk=1&n=2", ("X-Kiosk", "3"), ("Cookie", "sid=4")))
    assert places == {("query", "kiosk"), ("header", "x-kiosk"), ("cookie", "sid")}
    assert is_of(RuleBreach("header_schema", "header X-Kiosk/a", ""), places)
    assert not is_of(RuleBreach("header_schema", "header X-Kiosk-2", ""), places)
    assert not is_of(RuleBreach("missing", "header X-Kiosk", ""), places)
    assert not is_of(RuleBreach("body_schema", "body", ""), places)
