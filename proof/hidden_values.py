"""The credentials of requests, which no recording or output has: where they stand, and what is left
of them."""

from collections.abc import Iterable, Mapping
from dataclasses import replace
from typing import NamedTuple
from urllib.parse import unquote_plus

from contracts.model import Interface
from proof.exchange import RuleBreach
from proof.messages import Headers, WireAnswer, WireRequest

HIDDEN = "[hidden]"
USUAL = frozenset(
    {
        "access-token", "access_token", "api-key", "api_key", "apikey", "auth-token", "auth_token",
        "authorization", "client_secret", "id_token", "password", "private-token",
        "proxy-authorization", "refresh_token", "secret", "signature", "token", "x-access-token",
        "x-amz-security-token", "x-api-key", "x-apikey", "x-auth-token", "x-csrf-token",
        "x-goog-api-key", "x-xsrf-token",
    }
)  # fmt: skip
"""The usual names of credentials, of headers and of members of a query. Every cookie is one."""
DID_NOT_FIT = "Its value, which is hidden here, doesn't fit."


class HiddenValues(NamedTuple):
    """The names whose values are hidden, in lower case."""

    names: frozenset[str] = USUAL

    @classmethod
    def of(cls, interfaces: Iterable[Interface]) -> "HiddenValues":
        """The usual names, and those of the API keys that contracts declare."""
        schemes = (scheme for each in interfaces for scheme in each.schemes.values())
        declared = {
            str(scheme.get("name")).lower()
            for scheme in schemes
            if isinstance(scheme, Mapping) and scheme.get("type") == "apiKey"
        }
        return cls(USUAL | declared)

    def request(self, request: WireRequest) -> WireRequest:
        """A request with its credentials hidden; everything else is as it was sent."""
        return replace(
            request, query=self._query(request.query), headers=self._headers(request.headers)
        )

    def answer(self, answer: WireAnswer) -> WireAnswer:
        return replace(answer, headers=self._headers(answer.headers))

    def breaches(
        self, request: WireRequest, breaches: Iterable[RuleBreach]
    ) -> tuple[RuleBreach, ...]:
        """What is wrong with a request, without the values that are hidden in it."""
        places = hidden_places(self.request(request))
        return tuple(
            breach._replace(why=DID_NOT_FIT) if is_of(breach, places) else breach
            for breach in breaches
        )

    def _query(self, query: str) -> str:
        return "&".join(map(self._member, query.split("&")))

    def _member(self, member: str) -> str:
        name, equals, _ = member.partition("=")
        is_hidden = equals and unquote_plus(name).lower() in self.names
        return f"{name}={HIDDEN}" if is_hidden else member

    def _headers(self, headers: Headers) -> Headers:
        return tuple((name, self._header(name.lower(), value)) for name, value in headers)

    def _header(self, name: str, value: str) -> str:
        if name == "cookie":
            return "; ".join(_cookie(pair) for pair in value.split(";"))
        if name == "set-cookie":
            return HIDDEN
        if name not in self.names:
            return value
        scheme, space, _ = value.partition(" ")
        return f"{scheme} {HIDDEN}" if name.endswith("authorization") and space else HIDDEN


def hidden_places(request: WireRequest) -> frozenset[tuple[str, str]]:
    """The places and names, in lower case, of the values that are hidden in a recorded request."""
    cookies = (
        pair.strip().partition("=")
        for name, value in request.headers
        if name.lower() == "cookie"
        for pair in value.split(";")
    )
    headers = (header for header in request.headers if header[0].lower() != "cookie")
    return frozenset(
        {("query", name.lower()) for name, value in request.pairs if value == HIDDEN}
        | {("header", name.lower()) for name, value in headers if value.endswith(HIDDEN)}
        | {("cookie", name.lower()) for name, _, value in cookies if value == HIDDEN}
    )


def is_of(breach: RuleBreach, places: frozenset[tuple[str, str]]) -> bool:
    """Whether a breach is of a value in one of some places. That one is missing is no value."""
    place, _, where = breach.where.lower().partition(" ")
    return breach.rule == f"{place}_schema" and any(
        place == at and (where == name or where.startswith(f"{name}/")) for at, name in places
    )


def _cookie(pair: str) -> str:
    name, equals, _ = pair.strip().partition("=")
    return f"{name}={HIDDEN}" if equals else HIDDEN
