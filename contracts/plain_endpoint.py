"""Endpoints of which it is soon seen that nothing about them is odd, as nothing is about most.

To read a content takes some tens of microseconds, a fifth of what a whole proposal does. Of a plain
endpoint its warnings are known without that: there are none.
"""

from collections.abc import Mapping
from typing import Any

_MEMBERS = frozenset({"method", "path", "headers", "requestBody", "responseBody", "description"})
_METHODS = frozenset({"GET", "POST", "PUT", "PATCH", "DELETE"})
_TYPES = frozenset({"string", "integer", "number", "boolean", "null"})
_SCHEMA = frozenset({"type", "properties", "required", "items", "description", "title"})
DEPTH_MAX = 8


def is_plain_endpoint(content: Mapping[str, Any]) -> bool:
    """Whether a content is an endpoint that is read without a warning; False may mean either."""
    if not content.keys() <= _MEMBERS or content.get("method") not in _METHODS:
        return False
    path, headers = content.get("path"), content.get("headers")
    if not isinstance(path, str) or not path.startswith("/") or "{" in path or ":" in path:
        return False
    if headers is not None and not _are_texts(headers):
        return False
    if not isinstance(content.get("description", ""), str):
        return False
    bodies = [content[name] for name in ("requestBody", "responseBody") if name in content]
    return all(isinstance(body, dict) and _is_plain(body, DEPTH_MAX) for body in bodies)


def _are_texts(headers: Any) -> bool:
    return isinstance(headers, dict) and all(type(value) is str for value in headers.values())


def _is_plain(schema: Any, levels: int) -> bool:
    """Whether a value is a schema of types, members and elements, and nothing else."""
    if type(schema) is not dict or not levels or not schema.keys() <= _SCHEMA:
        return False
    kind = schema.get("type")
    if kind == "object":
        members, required = schema.get("properties", {}), schema.get("required", [])
        if type(members) is not dict or type(required) is not list or "items" in schema:
            return False
        return all(type(name) is str and name in members for name in required) and all(
            _is_plain(member, levels - 1) for member in members.values()
        )
    if "properties" in schema or "required" in schema:
        return False
    if kind == "array":
        return _is_plain(schema.get("items"), levels - 1)
    return type(kind) is str and kind in _TYPES and "items" not in schema
