"""The input schema of a tool, made from the params of its methods."""

from typing import Any

from server.mcp_tools.catalog import ABOUT, MORE, Json, McpTool
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
                properties.setdefault(name, _brief(member) if name in tool.brief else dict(member))
    for name, member in properties.items():
        about = tool.about.get(name, ABOUT.get(name, ""))
        only = "" if len(takes[name]) == len(schemas) else f" (for {', '.join(takes[name])})"
        text = ": ".join(filter(None, [f"{about}{only}".strip(), member.pop("outline", "")]))
        if text:
            member["description"] = text
    properties |= tool.own
    if tool.has_pages:
        properties[MORE] = {"type": "string"}
    usual = [schemas[tool.default_step]] if tool.default_step else [*schemas.values()]
    required = [
        name for name in properties if all(name in schema.get("required", ()) for schema in usual)
    ]
    # Required members come first: models read from the top.
    properties = {name: properties[name] for name in dict.fromkeys([*required, *properties])}
    if tool.chooser:
        chooser: Json = {"type": "string", "enum": [*tool.steps]}
        if tool.default_step:
            chooser["default"] = tool.default_step
        properties = {**properties, tool.chooser: chooser}
        required = [*required, *([] if tool.default_step else [tool.chooser])]
    return {
        "type": "object",
        "properties": properties,
        "required": required,
        "additionalProperties": False,
    }


def _brief(schema: Json) -> Json:
    """A schema with its type only, and its members in an outline: what may be left out of them is
    left out, and the node's refusals name the rest."""
    return {"type": schema["type"], "outline": _outline(schema)}


def _outline(schema: Json) -> str:
    """
    >>> _outline({"type": "array", "items": {"properties": {"a": {}, "b": {}}, "required": ["a"]}})
    '[{a}]'
    """
    if "properties" in schema:
        shown = schema.get("required") or schema["properties"]
        members = ((name, _outline(schema["properties"][name])) for name in shown)
        return f"{{{', '.join(f'{name}: {text}' if text else name for name, text in members)}}}"
    if "items" in schema:
        return f"[{_outline(schema['items'])}]"
    return "|".join(schema.get("enum", ()))


def _params_schema(method: str) -> Json:
    schema = METHODS[method].params.model_json_schema(by_alias=True)
    plain: Json = _plain(schema, schema.get("$defs", {}))
    return {"properties": {}, **plain}


_LEFT_OUT = frozenset(
    {"$defs", "title", "description", "additionalProperties"}
    | {
        "minimum",
        "maximum",
        "minLength",
        "maxLength",
        "minItems",
        "maxItems",
        "pattern",
        "not",
        "if",
        "then",
    }
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
