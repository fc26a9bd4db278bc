"""JSON that looks like contracts and is spoilt anywhere, for properties of the readers."""

from typing import Any

from hypothesis import strategies as st

NAMES = (
    "openapi", "paths", "components", "schemas", "parameters", "webhooks", "servers", "security",
    "securitySchemes", "callbacks", "requestBody", "responses", "content", "schema", "headers",
    "method", "path", "query", "pathParams", "request", "response", "body", "status", "errors",
    "type", "properties", "items", "allOf", "$ref", "$id", "$anchor", "$schema", "$defs", "enum",
    "required", "nullable", "x-files", "get", "post", "/a/{b}", "200", "default", "name", "in",
    "url", "variables", "application/json", "{x}", "dependencies", "readOnly", "a", "age?", "",
)  # fmt: skip
VALUES = (
    "3.0.3", "3.1.0", "GET", "/a/{b}", "string", "integer?", "string|null", "object", "#", "#/",
    "#/paths/~1a~1{b}", "#/components/parameters/a", "#/$defs/a", "a.json#/b", "http://h/x", "#a",
    "http://[", "https://json-schema.org/draft/2020-12/schema", "query", "path", "header", "a",
    "Bearer {token}", "%ff~2", "\ud800", "🙂", "",
)  # fmt: skip

ENDS = (
    st.none()
    | st.booleans()
    | st.integers()
    | st.floats(allow_nan=False, allow_infinity=False)
    | st.sampled_from(VALUES)
    | st.text(max_size=5)
)
SPOILT: st.SearchStrategy[Any] = st.recursive(
    ENDS,
    lambda inner: (
        st.lists(inner, max_size=3) | st.dictionaries(st.sampled_from(NAMES), inner, max_size=6)
    ),
    max_leaves=40,
)

SOUND: dict[str, Any] = {
    "openapi": "3.1.0",
    "info": {"title": "Pets", "version": "1"},
    "servers": [{"url": "https://pets.example/{v}", "variables": {"v": {"default": "v1"}}}],
    "security": [{"key": []}],
    "paths": {
        "/pets/{id}": {
            "parameters": [{"$ref": "#/components/parameters/id"}],
            "get": {
                "security": [],
                "responses": {
                    "200": {
                        "description": "A pet",
                        "headers": {"X-Rate": {"schema": {"type": "integer"}}},
                        "content": {
                            "application/json": {"schema": {"$ref": "#/components/schemas/Pet"}}
                        },
                    },
                    "4xx": {"$ref": "#/components/responses/Problem"},
                },
            },
            "put": {
                "requestBody": {"$ref": "#/components/requestBodies/Pet"},
                "responses": {"204": {"description": "Done"}},
                "callbacks": {
                    "changed": {
                        "{$request.query.url}": {
                            "post": {"responses": {"200": {"description": "Heard"}}}
                        }
                    }
                },
            },
        }
    },
    "webhooks": {"sold": {"post": {"responses": {"default": {"description": "Heard"}}}}},
    "components": {
        "parameters": {
            "id": {"name": "id", "in": "path", "required": True, "schema": {"type": "integer"}}
        },
        "requestBodies": {
            "Pet": {
                "required": True,
                "content": {"application/json": {"schema": {"$ref": "#/components/schemas/Pet"}}},
            }
        },
        "responses": {
            "Problem": {
                "description": "Wrong",
                "content": {"application/problem+json": {"schema": {"type": "object"}}},
            }
        },
        "schemas": {
            "Pet": {
                "type": "object",
                "required": ["id", "name"],
                "properties": {
                    "id": {"type": "integer", "readOnly": True},
                    "name": {"type": "string", "minLength": 1},
                    "friend": {"$ref": "#/components/schemas/Pet"},
                },
            }
        },
        "securitySchemes": {"key": {"type": "apiKey", "in": "header", "name": "X-Key"}},
    },
}
"""An OpenAPI document with each part that is read."""


@st.composite
def spoilt_documents(draw: st.DrawFn, sound: dict[str, Any] = SOUND) -> dict[str, Any]:
    """A sound document of which one part is replaced."""

    def spoil(value: Any, levels: int) -> Any:
        if not levels or not isinstance(value, dict | list) or not value:
            return draw(SPOILT)
        if isinstance(value, list):
            place = draw(st.integers(0, len(value) - 1))
            return [*value[:place], spoil(value[place], levels - 1), *value[place + 1 :]]
        name = draw(st.sampled_from(sorted(value)))
        return value | {name: spoil(value[name], levels - 1)}

    spoilt = spoil(sound, draw(st.integers(1, 9)))
    assert isinstance(spoilt, dict)
    return spoilt
