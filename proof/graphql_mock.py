"""A mock of GraphQL over HTTP: it executes requests, with values made by their types."""

import json
from typing import TYPE_CHECKING, Any

from proof.exchange import RuleBreach
from proof.graphql_http import TOKENS_MAX, validation_problem
from proof.messages import WireAnswer, WireRequest, json_of

if TYPE_CHECKING:
    from graphql import GraphQLSchema

JSON = (("Content-Type", "application/json"),)
VALUES = {"Int": 1, "Float": 1.5, "String": "text", "Boolean": True, "ID": "1"}


def graphql_answer(
    schema: "GraphQLSchema", request: WireRequest
) -> tuple[WireAnswer, RuleBreach | None]:
    """What a mock answers to a request, and what is wrong with that, if anything is."""
    asked = _asked(request)
    if isinstance(asked, RuleBreach):
        return _refused(asked)
    text, variables, name = asked
    problem = validation_problem(schema, text)
    if problem is not None:
        return _refused(RuleBreach("graphql_request", "query", problem))
    from graphql import execute_sync, parse

    done = execute_sync(
        schema,
        parse(text, max_lexical_tokens=TOKENS_MAX),
        variable_values=variables,
        operation_name=name,
        field_resolver=lambda source, info, **_: _value(info.return_type),
        type_resolver=lambda _source, info, kind: schema.get_possible_types(kind)[0].name,
    )
    if done.data is None and done.errors:
        return _refused(RuleBreach("graphql_request", "variables", done.errors[0].message))
    return WireAnswer(200, JSON, json.dumps({"data": done.data}).encode()), None


def _asked(request: WireRequest) -> tuple[str, dict[str, Any] | None, str | None] | RuleBreach:
    """The text of a request, its variables, and the name of its operation."""
    right = 'It is JSON like {"query": "{ me { name } }", "variables": {…}}.'
    if request.method == "GET":
        given: Any = dict(request.pairs)
        if "variables" in given:
            try:
                given["variables"] = json.loads(given["variables"])
            except ValueError:
                return RuleBreach("malformed_body", "query variables", "It is JSON.")
    else:
        try:
            given = json_of(request.body or b"")
        except ValueError as error:
            return RuleBreach("malformed_body", "body", f"{right} This is no JSON: {error}.")
    if not isinstance(given, dict) or not isinstance(given.get("query"), str):
        return RuleBreach("missing", "body", right)
    variables, name = given.get("variables"), given.get("operationName")
    if not isinstance(variables, dict | None) or not isinstance(name, str | None):
        return RuleBreach("body_schema", "body", right)
    return given["query"], variables, name


def _refused(breach: RuleBreach) -> tuple[WireAnswer, RuleBreach]:
    errors = {"errors": [{"message": str(breach)}]}
    return WireAnswer(400, JSON, json.dumps(errors).encode()), breach


def _value(kind: Any) -> Any:
    """A value of a type; of an object its fields are made when they are asked for."""
    from graphql import GraphQLList, GraphQLNonNull, is_enum_type, is_leaf_type

    if isinstance(kind, GraphQLNonNull):
        return _value(kind.of_type)
    if isinstance(kind, GraphQLList):
        return [_value(kind.of_type)]
    if is_enum_type(kind):
        return next(iter(kind.values.values())).value
    return VALUES.get(kind.name, "text") if is_leaf_type(kind) else {}
