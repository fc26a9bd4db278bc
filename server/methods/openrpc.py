"""The OpenRPC document, generated from the models (OpenRPC 1.3.2)."""

from functools import cache
from importlib.metadata import version
from typing import Any, Literal

import orjson
from pydantic import TypeAdapter
from pydantic.json_schema import GenerateJsonSchema

from schemas.errors import ErrorCode
from server.methods.base import METHODS, Method

REF = "#/components/schemas/{model}"

ERRORS = {
    ErrorCode.INVALID_PARAMS: "Invalid params, not found, illegal transition; see data.reason",
    ErrorCode.UNAUTHENTICATED: "Unauthenticated",
    ErrorCode.FORBIDDEN: "Forbidden",
    ErrorCode.CONFLICT: "Conflict",
    ErrorCode.RATE_LIMITED: "Rate limited; see data.retryAfter",
    ErrorCode.TOO_LARGE: "Too large: the body, a file, or the answer; for an answer, "
    "data.instead names a call to make instead",
    ErrorCode.SERVER_ERROR: "Server error; data.id finds it in the node's log. The reason busy "
    "means that the node has no room for the answer now: see data.retryAfter",
}


@cache
def document() -> bytes:
    """The whole document as JSON."""
    params, results, definitions = _schemas()
    return orjson.dumps(
        {
            "openrpc": "1.3.2",
            "info": {
                "title": "CACP 2.0 node",
                "version": version("cacp-server"),
                "license": {"name": "Apache-2.0"},
            },
            "methods": [
                {
                    "name": name,
                    "summary": method.summary,
                    "paramStructure": "by-name",
                    "params": _params(params[name]),
                    "result": {"name": "result", "schema": results[name]},
                    "errors": [{"$ref": f"#/components/errors/{code.name}"} for code in ERRORS],
                }
                for name, method in METHODS.items()
            ],
            "components": {
                "schemas": definitions,
                "errors": {
                    code.name: {"code": int(code), "message": message}
                    for code, message in ERRORS.items()
                },
            },
        }
    )


def verbose() -> bytes:
    """Every method with self-contained schemas of its params and its result, as JSON."""
    return orjson.dumps({"methods": [_describe(method) for method in METHODS.values()]})


def _describe(method: Method) -> dict[str, Any]:
    result = TypeAdapter(method.result).json_schema(by_alias=True, mode="serialization")
    return {
        "name": method.name,
        "summary": method.summary,
        "access": method.access,
        "params": method.params.model_json_schema(by_alias=True),
        "result": _publish_absence(result, result.get("$defs", {})),
    }


_Input = tuple[str, Literal["validation", "serialization"], Any]


def _schemas() -> tuple[dict[str, Any], dict[str, Any], dict[str, Any]]:
    inputs: list[_Input] = [
        (name, "validation", method.params.__pydantic_core_schema__)
        for name, method in METHODS.items()
    ]
    outputs: list[_Input] = [
        (name, "serialization", TypeAdapter(method.result).core_schema)
        for name, method in METHODS.items()
    ]
    generator = GenerateJsonSchema(by_alias=True, ref_template=REF)
    schemas, defined = generator.generate_definitions([*inputs, *outputs])
    definitions: dict[str, Any] = {str(name): schema for name, schema in defined.items()}
    for name in METHODS:
        _publish_absence(schemas[name, "serialization"], definitions)
    return (
        {name: _inline(schemas[name, "validation"], definitions) for name in METHODS},
        {name: schemas[name, "serialization"] for name in METHODS},
        definitions,
    )


def _publish_absence(schema: Any, definitions: dict[str, Any]) -> Any:
    """Change a result's schema in place: optional members are absent, never null."""
    waiting = [schema]
    seen = set()
    while waiting:
        node = waiting.pop()
        if isinstance(node, list):
            waiting += node
        if not isinstance(node, dict) or id(node) in seen:
            continue
        seen.add(id(node))
        kinds = [kind for kind in node.get("anyOf", ()) if kind != {"type": "null"}]
        if len(kinds) == 1:
            del node["anyOf"]
            node |= kinds[0]
        if node.get("default", ...) is None:
            del node["default"]
        waiting += [value for name, value in node.items() if name != "$defs"]
        if "$ref" in node:
            waiting.append(definitions[node["$ref"].rpartition("/")[2]])
    return schema


def _inline(schema: Any, definitions: dict[str, Any]) -> dict[str, Any]:
    reference = schema.get("$ref")
    resolved: dict[str, Any] = definitions[reference.rpartition("/")[2]] if reference else schema
    return resolved


def _params(schema: dict[str, Any]) -> list[dict[str, Any]]:
    required = schema.get("required", [])
    params = [
        {"name": name, "required": name in required, "schema": member}
        for name, member in schema.get("properties", {}).items()
    ]
    # Optional params must come after all required ones (OpenRPC, Method Object).
    return sorted(params, key=lambda param: not param["required"])
