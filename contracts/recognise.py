"""Recognises what a content is written in, and reduces it to the inner form (`contracts.model`).

`DIALECTS` is where a dialect is added.
"""

from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import Any, NamedTuple

from contracts import graphql_sdl, protobuf
from contracts.asyncapi import is_asyncapi, read_asyncapi
from contracts.endpoint import is_endpoint, read_endpoint
from contracts.graphql_sdl import is_graphql, read_graphql
from contracts.json_schema import (
    is_json_schema,
    is_shorthand_model,
    read_json_schema,
    read_shorthand,
)
from contracts.model import DocumentProblem, Interface, Located
from contracts.openapi import is_openapi, read_openapi
from contracts.protobuf import is_protobuf, read_protobuf
from contracts.reading import STEPS_MAX, shown
from contracts.refs import files_of
from contracts.work import TooMuchWork
from schemas.dialect import DialectName


class ContractDialect(NamedTuple):
    """A way to write contracts.

    `is_in` recognises it in a content of which nobody said what it is. `read` takes any content,
    and the contract's type, None if it has none; what is wrong becomes the interface's problems.
    """

    name: DialectName
    is_in: Callable[[Mapping[str, Any]], bool]
    read: Callable[[Mapping[str, Any], str | None], Interface]


DIALECTS = (
    ContractDialect("openapi", is_openapi, read_openapi),
    ContractDialect("asyncapi", is_asyncapi, read_asyncapi),
    ContractDialect("graphql", is_graphql, read_graphql),
    ContractDialect("protobuf", is_protobuf, read_protobuf),
    ContractDialect("endpoint", is_endpoint, read_endpoint),
    ContractDialect("json-schema", is_json_schema, read_json_schema),
    ContractDialect("shorthand", is_shorthand_model, read_shorthand),
)
"""Every dialect, the one that is recognised most surely first."""


_PARSED = frozenset({"files", *graphql_sdl.MEMBERS, *protobuf.MEMBERS})


def is_parsed(content: Mapping[str, Any], dialect: str | None) -> bool:
    """Whether to read a content may take a parser: some are imported first, and all are slow."""
    return dialect in ("graphql", "protobuf") or not _PARSED.isdisjoint(content)


def read(
    content: Mapping[str, Any], dialect: str | None = None, contract_type: str | None = None
) -> Interface:
    """The inner form of a content, of any JSON. Never raises; its work is bounded.

    In a dialect that is named, what is wrong becomes `problems`. Else the dialect is recognised,
    and the same are `warnings`: nothing is refused that nobody said to be anything. A content that
    is in no dialect is opaque.

    >>> read({"method": "GET", "path": "/users/{id}", "response": "string"}).operations[0].key
    'GET /users/{}'
    """
    if dialect == "opaque":
        return opaque(content)
    if dialect is not None:
        named = {known.name: known for known in DIALECTS}
        if dialect not in named:
            why = f"{shown(dialect)} is no dialect: it is one of {', '.join([*named, 'opaque'])}."
            return replace(opaque(content), problems=(DocumentProblem((), why),))
        return _bounded(named[dialect], content, contract_type)
    for known in DIALECTS:
        if known.is_in(content):
            interface = _bounded(known, content, contract_type)
            warnings = interface.problems + interface.warnings
            return replace(interface, problems=(), warnings=warnings)
    return opaque(content)


def dialect_of(content: Mapping[str, Any]) -> DialectName:
    """The dialect that a content is recognised to be in. It is not read: that takes longer."""
    return next((known.name for known in DIALECTS if known.is_in(content)), "opaque")


def opaque(content: Mapping[str, Any]) -> Interface:
    """A content of which nothing is known."""
    unread = (Located(content, ()),)
    return Interface("opaque", "2020-12", (), content, files_of(content), unread=unread)


def _bounded(
    dialect: ContractDialect, content: Mapping[str, Any], contract_type: str | None
) -> Interface:
    try:
        return dialect.read(content, contract_type)
    except TooMuchWork:
        why = f"It refers to its parts more than {STEPS_MAX} times, so it was not read."
        return replace(opaque(content), problems=(DocumentProblem((), why),))
