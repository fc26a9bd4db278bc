"""GraphQL over HTTP: requests, and whether what is answered is of the schema."""

import json
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from contracts.graphql_sdl import read_sdl
from proof.agreed import AgreedContract
from proof.exchange import RuleBreach
from proof.messages import WireAnswer, WireRequest, is_json, json_of, media_of
from schemas.plain import one_line

if TYPE_CHECKING:
    from graphql import DocumentNode, GraphQLSchema

PATH = "/graphql"
"""Where a GraphQL service is, unless a base URL says otherwise."""
TOKENS_MAX = 20_000
BREACHES_MAX = 5
WHY_MAX = 300


def graphql_schema(contract: AgreedContract) -> "GraphQLSchema | None":
    """The schema of a contract of GraphQL; None for another, or one that can't be read."""
    if contract.interface.dialect != "graphql":
        return None
    return read_sdl(contract.content).schema


def graphql_request(path: str, text: str) -> WireRequest:
    body = json.dumps({"query": text}).encode()
    return WireRequest("POST", path, "", (("Content-Type", "application/json"),), body)


def validation_problem(schema: "GraphQLSchema", text: str) -> str | None:
    """What is wrong with the text of a request, in one line; None if it is valid."""
    from graphql import GraphQLError, parse, validate

    try:
        errors = validate(schema, parse(text, max_lexical_tokens=TOKENS_MAX), max_errors=1)
    except GraphQLError as error:
        return one_line(error.message, WHY_MAX)
    except RecursionError:
        return "It is nested too deep."
    return one_line(errors[0].message, WHY_MAX) if errors else None


def answered(answer: WireAnswer) -> Mapping[str, Any] | RuleBreach:
    """The JSON of an answer, with `data`, `errors` or both; else what is wrong with it."""
    media = media_of(answer.headers)
    if not is_json(media):
        why = f"it is {one_line(media, 80) or 'missing'}; right is application/json."
        return RuleBreach("media_type", "header Content-Type", why)
    try:
        value = json_of(answer.body)
    except ValueError as error:
        return RuleBreach("malformed_body", "body", f"It is no JSON: {error}.")
    if not isinstance(value, dict) or not {"data", "errors"} & value.keys():
        return RuleBreach("body_schema", "body", 'An answer is an object with "data" or "errors".')
    if "errors" in value and not (isinstance(value["errors"], list) and value["errors"]):
        return RuleBreach("body_schema", "body/errors", "It is a list of errors, at least one.")
    return value


def data_breaches(
    schema: "GraphQLSchema", document: "DocumentNode", value: Any
) -> list[RuleBreach]:
    """Where the `data` of an answer is not what its request asked for, by the schema."""
    from graphql import execute_sync

    if not isinstance(value, dict):
        why = "Without errors it is an object."
        return [RuleBreach("body_schema", "body/data", why)]
    check = _DataCheck()
    execute_sync(
        schema,
        document,
        root_value=value,
        field_resolver=check.resolve,
        type_resolver=lambda source, *_: source.get("__typename"),
    )
    return check.breaches[:BREACHES_MAX]


class _DataCheck:
    """Walks an answer as an execution would: each field's value is what was answered."""

    def __init__(self) -> None:
        self.breaches: list[RuleBreach] = []

    def resolve(self, source: Any, info: Any, **_: Any) -> Any:
        """The answered value of a field, if it is one of its type; else nothing."""
        where = "body/data/" + "/".join(str(step) for step in info.path.as_list())
        if not isinstance(source, dict) or info.path.key not in source:
            self.breaches.append(RuleBreach("body_schema", where, "It was asked for, and missing."))
            return None
        value = source[info.path.key]
        if (why := misfit(info.return_type, value)) is not None:
            self.breaches.append(RuleBreach("body_schema", where, why))
            return None
        return value


def misfit(kind: Any, value: Any) -> str | None:
    """Why a value is not one of a type of GraphQL, in one line; None if it is. The fields of an
    object are not looked at."""
    from graphql import (
        GraphQLError,
        GraphQLList,
        GraphQLNonNull,
        is_enum_type,
        is_leaf_type,
        is_specified_scalar_type,
    )

    if isinstance(kind, GraphQLNonNull):
        return f"It is null; right is {kind}." if value is None else misfit(kind.of_type, value)
    if value is None:
        return None
    if isinstance(kind, GraphQLList):
        if not isinstance(value, list):
            return f"It is no list; right is {kind}."
        return next((why for part in value if (why := misfit(kind.of_type, part))), None)
    if not is_leaf_type(kind):
        return None if isinstance(value, dict) else f"It is no object; right is {kind}."
    if not is_specified_scalar_type(kind) and not is_enum_type(kind):
        return None
    try:
        kind.parse_value(value)
    except GraphQLError as error:
        return one_line(error.message, WHY_MAX)
    return None
