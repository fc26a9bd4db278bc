"""The credentials that a contract asks for: whether a request has them, whatever they are, and
requests without them."""

from collections.abc import Iterable, Mapping
from typing import Any

from contracts.model import Interface, Operation
from proof.messages import Headers, WireRequest, header_of


def missing_credentials(
    interface: Interface, operation: Operation, request: WireRequest
) -> str | None:
    """What a request lacks, in one line; None if it has one of the alternatives."""
    alternatives = operation.security
    if not alternatives:
        return None
    lacks = [_lacking(interface.schemes, names, request) for names in alternatives]
    if not all(lacks):
        return None
    return "It needs " + ", or ".join(" and ".join(lack) for lack in lacks) + "."


def without_credentials(
    interface: Interface, operation: Operation, headers: Headers
) -> Headers | None:
    """Headers without those that carry credentials of an operation; None if it can be called
    without any, or none of them is among the headers."""
    alternatives = operation.security
    if not alternatives or not all(alternatives):
        return None
    schemes = [interface.schemes.get(name) for names in alternatives for name in names]
    carrying = {_header(scheme) for scheme in schemes if isinstance(scheme, Mapping)}
    rest = tuple(pair for pair in headers if pair[0].lower() not in carrying)
    return None if len(rest) == len(headers) else rest


def _header(scheme: Mapping[str, Any]) -> str:
    """The header, in lower case, that carries the credentials of a scheme; empty for none."""
    if scheme.get("type") != "apiKey":
        return "authorization"
    names = {"header": str(scheme.get("name")).lower(), "cookie": "cookie"}
    return names.get(str(scheme.get("in")), "")


def _lacking(schemes: Mapping[str, Any], names: Iterable[str], request: WireRequest) -> list[str]:
    wanted = (_wanted(schemes.get(name), request) for name in names)
    return [text for text in wanted if text is not None]


def _wanted(scheme: Any, request: WireRequest) -> str | None:
    """What a scheme wants of a request that it lacks; None if nothing, or if nobody knows."""
    if not isinstance(scheme, Mapping):
        return None
    kind, name = scheme.get("type"), str(scheme.get("name"))
    if kind == "apiKey":
        where = scheme.get("in")
        given = {
            "header": header_of(request.headers, name) is not None,
            "query": any(key == name for key, _ in request.pairs),
            "cookie": f"{name}=" in (header_of(request.headers, "cookie") or ""),
        }
        return None if given.get(str(where), True) else f"the {where} {name}"
    if kind in ("oauth2", "openIdConnect"):
        return _authorization("Bearer", request)
    if kind == "http":
        return _authorization(str(scheme.get("scheme", "Bearer")).capitalize(), request)
    return None


def _authorization(scheme: str, request: WireRequest) -> str | None:
    given = header_of(request.headers, "authorization") or ""
    if given.partition(" ")[0].lower() == scheme.lower():
        return None
    return f'the header "Authorization: {scheme} …"'
