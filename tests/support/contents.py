"""Contents of contracts at random: of the words that dialects use, in any places."""

from typing import Any

from hypothesis import strategies as st

WORDS = st.sampled_from(
    ["method", "path", "request", "requestBody", "response", "responses", "200", "content",
     "application/json", "schema", "type", "properties", "required", "enum", "items", "openapi",
     "paths", "/a", "get", "description", "additionalProperties", "minimum", "$ref", "anyOf", "a",
     "nullable"]
)  # fmt: skip
SCALARS = (
    st.none()
    | st.booleans()
    | st.integers(-3, 3)
    | st.floats(allow_nan=False, allow_infinity=False)
    | st.sampled_from(["string", "integer?", "object", "array", "POST", "/a/{b}", "a|b", "\ud800"])
    | st.just(10**400)
)
JSON: st.SearchStrategy[Any] = st.recursive(
    SCALARS,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(WORDS, inner, max_size=4),
    max_leaves=15,
)
CONTENTS = st.dictionaries(WORDS, JSON, max_size=5)
