"""A small GraphQL service, honest or with one bug planted. Its contract is `CONTENT`."""

from typing import Any

from graphql import GraphQLError, build_schema, graphql_sync
from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import JSONResponse, PlainTextResponse, Response
from starlette.routing import Route

SDL = """
scalar DateTime
enum Role { ADMIN GUEST }
interface Node { id: ID! }
type User implements Node { id: ID! name: String! role: Role! born: DateTime friends: [User!]! }
type Robot implements Node { id: ID! model: String }
input NewUser { name: String! role: Role = GUEST age: Int }
type Query { user(id: ID!): User nodes(first: Int!): [Node!]! }
type Mutation { makeUser(given: NewUser!): User! }
"""
CONTENT = {"graphql": SDL}
BUGS = ("null_name", "wrong_role", "no_list", "missing_field", "unchecked", "crash", "text")
_SCHEMA = build_schema(SDL)
_USER: dict[str, Any] = {"__typename": "User", "id": "1", "name": "Ana", "role": "ADMIN"}


class _Root:
    def user(self, _: Any, id: str) -> Any:
        return {**_USER, "id": id, "friends": [{**_USER, "friends": []}]}

    def nodes(self, _: Any, first: int) -> Any:
        return [{**_USER, "friends": []}, {"__typename": "Robot", "id": "2", "model": None}]

    def makeUser(self, _: Any, given: dict[str, Any]) -> Any:
        if given.get("age") == 0:
            raise GraphQLError("nobody is that young")
        return {**_USER, "name": given["name"], "friends": []}


def _spoilt(value: Any, bug: str) -> Any:
    """An answer with a bug in it."""
    if isinstance(value, list):
        return [_spoilt(part, bug) for part in value]
    if not isinstance(value, dict):
        return value
    fields = {name: _spoilt(part, bug) for name, part in value.items()}
    for name, part in value.items():
        if bug == "null_name" and part == "Ana":
            fields[name] = None
        if bug == "wrong_role" and part == "ADMIN":
            fields[name] = "OWNER"
        if bug == "no_list" and isinstance(part, list):
            fields[name] = {}
    if bug == "missing_field" and len(fields) > 1:
        fields.pop(next(iter(fields)))
    return fields


def application(bug: str = "") -> Starlette:
    async def graphql(request: Request) -> Response:
        if bug == "text":
            return PlainTextResponse("{}")
        given = await request.json()
        done = graphql_sync(
            _SCHEMA, given["query"], _Root(), variable_values=given.get("variables")
        )
        if done.errors and bug == "crash":
            return PlainTextResponse("boom", 500)
        if done.data is None and bug == "unchecked":
            return JSONResponse({"data": {"user": None}})
        answer: dict[str, Any] = {"data": _spoilt(done.data, bug) if bug else done.data}
        if done.errors:
            answer["errors"] = [error.formatted for error in done.errors]
        return JSONResponse(answer)

    return Starlette(routes=[Route("/graphql", graphql, methods=["POST"])])
