"""Makes `cli/methods.json`, from which `cacp call` helps: what each method does, and its params.

`make docs` writes it, so that no command has to import the methods to show it.
"""

import json
from collections.abc import Iterator, Mapping
from typing import Any

Json = dict[str, Any]
VALUES = {"integer": "1", "number": "1", "boolean": "true"}
OBJECT_MEMBERS = 8
"""An object with more members is named by its type."""


def index(document: Json, access: Mapping[str, str], about: Mapping[str, str]) -> str:
    """The file's text. `document` is the OpenRPC document; `access` has the access that each method
    needs, `about` what a param of a name means."""
    schemas = document["components"]["schemas"]
    methods = {
        method["name"]: {
            "summary": method["summary"],
            "access": access[method["name"]],
            "params": [_param(param, schemas, about) for param in method["params"]],
            "example": " ".join(["cacp call", method["name"], *_words(method, schemas)]),
        }
        for method in document["methods"]
    }
    return json.dumps(methods, ensure_ascii=False, indent=1) + "\n"


def type_text(schema: Json, schemas: Json) -> str:
    """A JSON schema in a few words, for people.

    >>> type_text({"anyOf": [{"enum": ["a", "b"]}, {"type": "null"}]}, {})
    'a | b'
    """
    if "$ref" in schema:
        name = schema["$ref"].rpartition("/")[2]
        return _object_text(name, schemas.get(name, {}), schemas)
    if "enum" in schema:
        return " | ".join(map(str, schema["enum"]))
    if "const" in schema:
        return str(schema["const"])
    kinds = schema.get("anyOf") or schema.get("oneOf")
    if kinds:
        texts = [type_text(kind, schemas) for kind in kinds]
        return " | ".join(text for text in dict.fromkeys(texts) if text != "null")
    if schema.get("type") == "array":
        return f"list of {type_text(schema.get('items', {}), schemas)}"
    return {"string": "text", "object": "object"}.get(
        schema.get("type", ""), str(schema.get("type", "any JSON"))
    )


def _object_text(name: str, schema: Json, schemas: Json) -> str:
    members = schema.get("properties", {})
    if "enum" in schema or not members:
        return type_text(schema, schemas)
    if len(members) > OBJECT_MEMBERS:
        return name
    required = schema.get("required", [])
    shown = [member if member in required else f"{member}?" for member in members]
    return "{" + ", ".join(shown) + "}"


def _param(param: Json, schemas: Json, about: Mapping[str, str]) -> Json:
    schema = param["schema"]
    default = schema.get("default")
    name, meaning = param["name"], schema.get("description", "").split("\n\n")[0]
    # Where it is the version of the message format, nothing is to be said of it.
    fixed = name == "version" and default is not None
    made = {
        "name": name,
        "type": type_text(schema, schemas),
        "required": param["required"],
        "about": meaning if fixed else about.get(name, meaning),
    }
    return made if default in (None, "", [], ()) else {**made, "default": default}


def _words(method: Json, schemas: Json) -> Iterator[str]:
    """The required params as words of a command line."""
    for param in method["params"]:
        if param["required"]:
            schema = _resolved(param["schema"], schemas)
            if schema.get("type") == "string":
                placeholder = "ID" if param["name"].endswith("Id") else param["name"].upper()
                value = str(schema.get("enum", [placeholder])[0])
                yield f"{param['name']}={value}"
            else:
                yield f"{param['name']}:='{_value(schema, schemas)}'"


def _resolved(schema: Json, schemas: Json) -> Json:
    while "$ref" in schema:
        schema = schemas[schema["$ref"].rpartition("/")[2]]
    return schema


def _value(schema: Json, schemas: Json) -> str:
    """An example of a value, as JSON."""
    schema = _resolved(schema, schemas)
    if "enum" in schema:
        return json.dumps(schema["enum"][0])
    if schema.get("type") == "array":
        return f"[{_value(schema.get('items', {}), schemas)}]"
    if schema.get("type") == "object" or "properties" in schema:
        required = schema.get("required", [])
        members = schema.get("properties", {})
        pairs = [f'"{name}": {_value(members[name], schemas)}' for name in required]
        return "{" + ", ".join(pairs) + "}"
    kinds = schema.get("anyOf") or schema.get("oneOf")
    if kinds:
        return _value(kinds[0], schemas)
    return VALUES.get(schema.get("type", ""), '"…"')
