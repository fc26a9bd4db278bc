"""A small provider of users, honest or with one bug planted. Its contract is `CONTRACT`."""

import json
import os
import socket
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import uvicorn
from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import JSONResponse, PlainTextResponse, RedirectResponse, Response
from starlette.routing import Mount, Route

from tests.proof import graphql_provider

BUGS = (
    "wrong_type",
    "missing_member",
    "undeclared_status",
    "error_on_edge",
    "wrong_content_type",
    "accepts_invalid",
    "accepts_malformed",
    "ignores_bounds",
    "missing_header",
    "redirects_away",
    "exits",
)
USER: dict[str, Any] = {
    "type": "object",
    "properties": {
        "id": {"type": "integer"},
        "email": {"type": "string", "minLength": 3, "maxLength": 60},
        "age": {"type": "integer", "minimum": 0, "maximum": 150},
        "tags": {"type": "array", "items": {"type": "string"}, "maxItems": 5},
    },
    "required": ["id", "email"],
}
NEW_USER: dict[str, Any] = {
    "type": "object",
    "properties": {name: USER["properties"][name] for name in ("email", "age", "tags")},
    "required": ["email"],
    "additionalProperties": False,
}
PROBLEM: dict[str, Any] = {
    "type": "object",
    "properties": {"error": {"type": "string"}},
    "required": ["error"],
}


def _json(schema: Any, description: str = "") -> dict[str, Any]:
    return {"description": description, "content": {"application/json": {"schema": schema}}}


_USER = {"$ref": "#/components/schemas/User"}
_BAD = {"400": _json({"$ref": "#/components/schemas/Problem"})}
_ID = {"name": "id", "in": "path", "required": True, "schema": {"type": "integer", "minimum": 1}}
_LIMIT = {
    "name": "limit",
    "in": "query",
    "schema": {"type": "integer", "minimum": 1, "maximum": 50},
}
_RATE = {"X-Rate-Left": {"required": True, "schema": {"type": "integer"}}}
CONTRACT: dict[str, Any] = {
    "openapi": "3.1.0",
    "info": {"title": "Users", "version": "1"},
    "paths": {
        "/users": {
            "get": {
                "parameters": [_LIMIT],
                "responses": {
                    "200": {**_json({"type": "array", "items": _USER}), "headers": _RATE},
                    **_BAD,
                },
            },
            "post": {
                "requestBody": {
                    "required": True,
                    "content": {"application/json": {"schema": NEW_USER}},
                },
                "responses": {"201": _json(_USER), **_BAD},
            },
        },
        "/users/{id}": {
            "get": {
                "parameters": [_ID],
                "responses": {"200": _json(_USER), "404": _json(PROBLEM), **_BAD},
            },
            "delete": {
                "parameters": [_ID],
                "responses": {"204": {"description": ""}, "404": _json(PROBLEM), **_BAD},
            },
        },
    },
    "components": {"schemas": {"User": USER, "Problem": PROBLEM}},
}


class Users:
    """The provider's state, and its bug."""

    def __init__(self, bug: str) -> None:
        self.bug = bug
        self.by_id: dict[int, dict[str, Any]] = {}
        self.last = 0

    def problem(self, text: str, status: int = 400) -> Response:
        return JSONResponse({"error": text}, status)

    async def make(self, request: Request) -> Response:
        try:
            given = json.loads(await request.body())
        except ValueError:
            if self.bug != "accepts_malformed":
                return self.problem("not JSON")
            given = {"email": "nobody"}
        wrong = None if self.bug == "accepts_invalid" else self.wrong_with(given)
        if wrong is not None:
            return self.problem(wrong)
        if not isinstance(given, dict):
            given = {}
        email = str(given.get("email", "nobody"))
        if self.bug == "error_on_edge" and given.get("age") == 0:
            raise ZeroDivisionError
        if self.bug == "exits" and given.get("age", 1) == 0:
            os._exit(3)
        self.last += 1
        user = {**given, "id": self.last, "email": email}
        self.by_id[self.last] = user
        if self.bug == "undeclared_status" and "tags" in given:
            return JSONResponse(user, 202)
        return self.shown(user, 201)

    def wrong_with(self, given: Any) -> str | None:
        if not isinstance(given, dict) or not given.keys() <= {"email", "age", "tags"}:
            return "a user has an email, an age and tags"
        if not isinstance(given.get("email"), str):
            return "email is a text"
        if self.bug != "ignores_bounds" and not 3 <= len(given["email"]) <= 60:
            return "email has 3 to 60 characters"
        age = given.get("age", 1)
        if isinstance(age, float) and age.is_integer():
            age = int(age)
        if not isinstance(age, int) or isinstance(age, bool) or not 0 <= age <= 150:
            return "age is a number from 0 to 150"
        tags = given.get("tags", [])
        if not isinstance(tags, list) or len(tags) > 5:
            return "tags is a list of up to five"
        return None if all(isinstance(tag, str) for tag in tags) else "a tag is a text"

    def shown(self, user: dict[str, Any], status: int = 200) -> Response:
        if self.bug == "wrong_type" and "age" in user:
            user = {**user, "age": str(user["age"])}
        if self.bug == "missing_member":
            user = {name: value for name, value in user.items() if name != "email"}
        if self.bug == "wrong_content_type":
            return PlainTextResponse(json.dumps(user), status)
        return JSONResponse(user, status)

    async def listed(self, request: Request) -> Response:
        limit = request.query_params.get("limit", "10")
        if not limit.isascii() or not limit.isdecimal() or not 1 <= int(limit) <= 50:
            return self.problem("limit is a number from 1 to 50")
        if self.bug == "redirects_away":
            return RedirectResponse("http://127.0.0.1:9/elsewhere")
        users = list(self.by_id.values())[: int(limit)]
        headers = {} if self.bug == "missing_header" else {"X-Rate-Left": "7"}
        return JSONResponse(users, headers=headers)

    def known(self, request: Request) -> int | Response:
        text = request.path_params["id"]
        if not text.isascii() or not text.isdecimal() or int(text) < 1:
            return self.problem("an id is a number from 1")
        return int(text) if int(text) in self.by_id else self.problem("no such user", 404)

    async def one_user(self, request: Request) -> Response:
        known = self.known(request)
        return known if isinstance(known, Response) else self.shown(self.by_id[known])

    async def remove(self, request: Request) -> Response:
        known = self.known(request)
        if isinstance(known, Response):
            return known
        del self.by_id[known]
        return Response(status_code=204)


def application(bug: str = "") -> Starlette:
    users = Users(bug)
    return Starlette(
        routes=[
            Route("/users", users.listed, methods=["GET"]),
            Route("/users", users.make, methods=["POST"]),
            Route("/users/{id}", users.one_user, methods=["GET"]),
            Route("/users/{id}", users.remove, methods=["DELETE"]),
        ]
    )


def every_application() -> Starlette:
    """The honest provider at /honest, and one for each bug at the bug's name; the same of GraphQL
    below /of-graphql."""
    mounts = [Mount(f"/{bug}", application(bug)) for bug in BUGS]
    graphs = [
        Mount(f"/of-graphql/{bug or 'honest'}", graphql_provider.application(bug))
        for bug in ("", *graphql_provider.BUGS)
    ]
    return Starlette(routes=[Mount("/honest", application()), *mounts, *graphs])


@contextmanager
def running() -> Iterator[str]:
    """The address at which a process serves `every_application`."""
    process = subprocess.Popen(
        [sys.executable, "-m", "tests.proof.provider"], stdout=subprocess.PIPE, text=True
    )
    assert process.stdout is not None
    try:
        yield f"http://127.0.0.1:{process.stdout.readline().strip()}"
    finally:
        process.kill()
        process.wait()
        process.stdout.close()


if __name__ == "__main__":
    listening = socket.create_server(("127.0.0.1", int(sys.argv[1]) if sys.argv[1:] else 0))
    print(listening.getsockname()[1], flush=True)
    server = uvicorn.Server(uvicorn.Config(every_application(), log_level="critical"))
    server.run(sockets=[listening])
