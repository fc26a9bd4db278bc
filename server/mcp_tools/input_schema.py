"""The input schema of a tool, made from the params of its methods."""

from typing import Any

from server.mcp_tools.catalog import ABOUT, Json, McpTool
from server.methods import METHODS


def input_schema(tool: McpTool) -> Json:
    """The arguments as one JSON object schema. It avoids `$ref`, `anyOf` and `null`, which clients
    support differently."""
    schemas = {step: _params_schema(method) for step, method in tool.steps.items()}
    takes: dict[str, list[str]] = {}
    properties: Json = {}
    for step, schema in schemas.items():
        for name, member in schema["properties"].items():
            if name not in tool.left_out:
                takes.setdefault(name, []).append(step)
                properties.setdefault(name, dict(member))
    for name, member in properties.items():
        about = tool.about.get(name, ABOUT.get(name, ""))
        only = "" if len(takes[name]) == len(schemas) else f" (for {', '.join(takes[name])})"
        if about or only:
            member["description"] = f"{about}{only}".strip()
    required = [
        name
        for name in properties
        if all(name in schema.get("required", ()) for schema in schemas.values())
    ]
    # Required members come first: models read from the top.
    properties = {name: properties[name] for name in dict.fromkeys([*required, *properties])}
    if tool.chooser:
        chooser = {"type": "string", "enum": [*tool.steps], "description": "What you report"}
        properties = {tool.chooser: chooser, **properties}
        required = [tool.chooser, *required]
    return {
        "type": "object",
        "properties": properties,
        "required": required,
        "additionalProperties": False,
    }


def _params_schema(method: str) -> Json:
    schema = METHODS[method].params.model_json_schema(by_alias=True)
    plain: Json = _plain(schema, schema.get("$defs", {}))
    return {"properties": {}, **plain}


_LEFT_OUT = frozenset(
    {"$defs", "title", "description", "additionalProperties"}
    | {"minLength", "maxLength", "minItems", "maxItems", "pattern", "not", "if", "then"}
)
"""Keywords that models need not read: the node's refusals name what they violate."""


def _plain(schema: Any, defined: Json) -> Any:
    """A schema without references, titles, and the null that means absent."""
    if isinstance(schema, list):
        return [_plain(member, defined) for member in schema]
    if not isinstance(schema, dict):
        return schema
    if "$ref" in schema:
        return _plain(defined[schema["$ref"].rpartition("/")[2]], defined)
    kinds = [kind for kind in schema.get("anyOf", []) if kind != {"type": "null"}]
    if len(kinds) == 1:
        rest = {name: value for name, value in schema.items() if name != "anyOf"}
        return _plain({**kinds[0], **rest}, defined)
    plain: Json = {}
    for keyword, value in schema.items():
        if keyword in _LEFT_OUT or (keyword == "default" and value in (None, [])):
            continue
        if keyword == "properties":
            plain[keyword] = {name: _plain(member, defined) for name, member in value.items()}
        else:
            plain[keyword] = _plain(value, defined)
    return plain
