"""Request bodies of every shape, as hypothesis strategies: nearly right ones, and odd ones.

Bodies are made as bytes, so that they can hold what no JSON writer would write.
"""

import json
from typing import Any

from hypothesis import strategies as st

from server.methods import METHODS

Json = st.SearchStrategy[Any]

NAMES = ("project", "contract", "packet", "file", "request", "repo", "cursor")
"""What `$NAME` in a body stands for: something that the node under test really has."""

BY_MEMBER = {
    "projectId": "$project",
    "project_id": "$project",
    "contractId": "$contract",
    "contract_id": "$contract",
    "packetId": "$packet",
    "packet_id": "$packet",
    "replyTo": "$packet",
    "fileId": "$file",
    "requestId": "$request",
    "repo_id": "$repo",
    "repoName": "frontend-app",
    "cursor": "$cursor",
    "source_agent": "aid://example.com/frontend@1.0.0",
    "from_agent": "aid://example.com/frontend@1.0.0",
    "agentEndpoint": "http://127.0.0.1:9",
    "endpoint": "http://127.0.0.1:9",
    "report": "STATUS:ok\nFILES_CREATED:a.py\n---",
}

LITERALS = [
    "NaN",
    "-Infinity",
    "1e400",
    "-0",
    "1" + "0" * 400,
    "18446744073709551616",
    '"\\ud800"',
    '"\\udc00\\ud800"',
    '"\ud83d"',
    '"\x00"',
    '"\\u0000"',
    "{",
    "'a'",
    '{"a":1,"a":2}',
]
"""Text that stands in a body as it is: much of it is no JSON."""

STRINGS = [
    "",
    " ",
    "\x00",
    "a\x00b",
    "\ufeff",
    "\uffff",
    "\u202etxt.exe",
    "e\u0301" * 50,
    "👩‍👩‍👧‍👦",
    "../../etc/passwd",
    "C:\\NUL",
    "'; DROP TABLE facts; --",
    "%s%n{}$1",
    "__class__",
    "0001-01-01T00:00:00+23:59",
    "9999-12-31T23:59:59.999999-23:59",
    "1969-12-31T23:59:59Z",
    "2026-W01-1",
    "http://[::ffff:169.254.169.254]/",
    "99999999999999999999.x",
    "=" * 5,
    "x" * 201,
    "x" * 20_001,
    "\U0010ffff" * 30_000,
    "STATUS:ok\nFILES_CREATED:" + "," * 5_000,
]

NUMBERS = [0, -1, 1.5, 2**31, 2**53, -(2**53), 2**63 - 1, 2**63, -(2**63), 2**64 - 1, 1e300, 5e-324]


class Literal(str):
    """Stands in the body as it is, not as a JSON string."""


def nested(depth: int, object_: bool) -> Literal:
    return Literal(('{"a":' if object_ else "[") * depth + "1" + ("}" if object_ else "]") * depth)


WORD = st.text(st.characters(exclude_categories=["Cs"]), max_size=8)
ODD: Json = st.one_of(
    st.none(),
    st.booleans(),
    st.sampled_from(NUMBERS),
    st.sampled_from(STRINGS),
    st.sampled_from(LITERALS).map(Literal),
    st.sampled_from([f"${name}" for name in NAMES]),
    st.builds(nested, st.sampled_from([1, 60, 101, 200, 300, 300, 1_000, 2_000]), st.booleans()),
    st.recursive(
        st.none() | st.booleans() | st.integers() | st.floats() | WORD,
        lambda inner: st.lists(inner, max_size=3) | st.dictionaries(WORD, inner, max_size=3),
        max_leaves=6,
    ),
    st.sampled_from([["x"] * 1_001, {str(n): n for n in range(2_000)}]),
)


def params_of(method: str) -> Json:
    """Params that fit the method's schema, with what the node has for ids."""
    schema = METHODS[method].params.model_json_schema(by_alias=True)
    return _fitting("params", schema, schema.get("$defs", {}))


def _fitting(member: str, schema: dict[str, Any], defs: dict[str, Any]) -> Json:
    if "$ref" in schema:
        return _fitting(member, defs[schema["$ref"].rpartition("/")[2]], defs)
    if "anyOf" in schema:
        return st.one_of([_fitting(member, one, defs) for one in schema["anyOf"]])
    if "enum" in schema or "const" in schema:
        return st.sampled_from(schema.get("enum") or [schema["const"]])
    kind = schema.get("type")
    if kind == "object" and "properties" in schema:
        required = set(schema.get("required", ()))
        members = {name: _fitting(name, one, defs) for name, one in schema["properties"].items()}
        return st.fixed_dictionaries(
            {name: one for name, one in members.items() if name in required},
            optional={name: one for name, one in members.items() if name not in required},
        )
    if kind == "array":
        return st.lists(_fitting(member, schema.get("items", {}), defs), min_size=1, max_size=2)
    if kind == "string":
        return st.just(BY_MEMBER[member]) if member in BY_MEMBER else WORD.map(lambda w: f"x{w}")
    plain: dict[Any, Json] = {
        "integer": st.integers(1, 3),
        "boolean": st.booleans(),
        "null": st.none(),
    }
    # Where any object is taken, anything may stand in it.
    return plain.get(kind, st.dictionaries(WORD, WORD | ODD, max_size=2))


@st.composite
def mutated(draw: st.DrawFn, whole: Any) -> Any:
    """`whole` with one place in it made odd, left out, or added to."""
    if isinstance(whole, dict) and whole and draw(st.integers(0, 4)):
        name = draw(st.sampled_from(sorted(whole)))
        how = draw(st.sampled_from(["in", "in", "in", "without", "with"]))
        if how == "without":
            return {key: value for key, value in whole.items() if key != name}
        if how == "with":
            return whole | {draw(WORD | st.sampled_from(STRINGS[:20])): draw(ODD)}
        return whole | {name: draw(mutated(whole[name]))}
    if isinstance(whole, list) and whole and draw(st.booleans()):
        return [*whole[:-1], draw(mutated(whole[-1]))]
    return draw(ODD)


@st.composite
def requests(draw: st.DrawFn) -> dict[str, Any]:
    """One request object, from right to wrong in its params, then in its envelope."""
    method = draw(st.sampled_from(sorted(METHODS)))
    params = draw(params_of(method))
    for _ in range(draw(st.sampled_from([0, 0, 1, 1, 1, 2]))):
        params = draw(mutated(params))
    request = {"jsonrpc": "2.0", "method": method, "params": params, "id": 1}
    if not draw(st.integers(0, 9)):
        request = draw(mutated(request))
        return request if isinstance(request, dict) else {"x": request}
    return request


@st.composite
def bodies(draw: st.DrawFn) -> bytes:
    """A request's body: a call, a batch, or what only looks like one."""
    what: Any = draw(requests())
    shape = draw(st.sampled_from(["one"] * 15 + ["batch", "odd batch", "bytes", "cut", "twice"]))
    if shape == "batch":
        what = [what, *draw(st.lists(requests(), max_size=4))]
    if shape == "odd batch":
        what = [what, *draw(st.lists(ODD, max_size=3))]
    if shape == "bytes":
        return draw(st.binary(max_size=200))
    body = encode(what)
    if shape == "cut":
        return body[: draw(st.integers(0, len(body)))]
    if shape == "twice":
        return body.replace(b'"params":{', b'"params":{"projectId":"$project","projectId":1,', 1)
    return body


def encode(what: Any) -> bytes:
    """`what` as JSON, with its Literals as they are."""
    return _text(what).encode("utf-8", "surrogatepass")


def _text(what: Any) -> str:
    if isinstance(what, Literal):
        return str(what)
    if isinstance(what, dict):
        return "{" + ",".join(f"{json.dumps(key)}:{_text(what[key])}" for key in what) + "}"
    if isinstance(what, list):
        return "[" + ",".join(map(_text, what)) + "]"
    return json.dumps(what)


def call(method: str, **params: Any) -> bytes:
    return encode({"jsonrpc": "2.0", "method": f"cacp/{method}", "params": params, "id": 1})


WHERE = {"projectId": "$project", "contractId": "$contract"}
TO_PEERS = {"source_agent": "aid://example.com/frontend@1.0.0", "projectId": "$project"}
PACKET = {
    "packet_id": "p",
    "from_repo": "$repo",
    "from_agent": TO_PEERS["source_agent"],
    "timestamp": "9999-12-31T23:59:59-23:59",
    "type": "decision",
}

SUSPECTS = [
    body
    for value in [
        nested(101, False),
        nested(300, True),
        nested(1_000, False),
        nested(2_000, True),
        Literal("18446744073709551616"),
        Literal('"\\ud800"'),
        "\x00",
    ]
    for body in [
        call(
            "contract/propose", projectId="$project", type="custom", name="n", content={"a": value}
        ),
        call("context/share", projectId="$project", type="decision", content={"a": value}),
        call("contract/respond", **WHERE, action="request_change", suggestedChange=value),
        call("implementation/verify", **WHERE, result="failure", failureDetails={"a": value}),
        call("context/sync", **TO_PEERS, packet=PACKET | {"content": {"a": value}}),
        call("context/sync", **TO_PEERS, packet=PACKET | {"content": {}}, ignored=value),
        call("context/list", projectId="$project", since=value),
        call("file/share", projectId="$project", file={"name": value, "content": "e30="}),
        encode({"jsonrpc": "2.0", "method": "cacp/project/list", "id": value}),
    ]
]
"""What would be hard for any node: too deep to write back, or of no place in a database."""
