"""The OpenRPC document: complete, sound, and true of real answers (OpenRPC 1.3.2)."""

import json
from collections.abc import Callable, Iterator
from functools import cache
from typing import Any

import pytest
from jsonschema import Draft202012Validator  # type: ignore[import-untyped]

from schemas.base import SAFE_INTEGER
from schemas.errors import ErrorCode
from server.methods import METHODS
from server.methods.openrpc import document, verbose
from tests.support.node import AGENT
from tests.support.team import CONTENT, Team


@cache
def whole() -> dict[str, Any]:
    """The document. It takes half a second to make: only who runs these tests waits for it."""
    made: dict[str, Any] = json.loads(document())
    return made


@cache
def by_name() -> dict[str, Any]:
    return {method["name"]: method for method in whole()["methods"]}


@cache
def in_full() -> dict[str, Any]:
    """The list in which each method says all of itself."""
    made: dict[str, Any] = json.loads(verbose())
    return made


def references(value: Any) -> Iterator[str]:
    if isinstance(value, dict):
        if isinstance(value.get("$ref"), str):
            yield value["$ref"]
        for item in value.values():
            yield from references(item)
    elif isinstance(value, list):
        for item in value:
            yield from references(item)


def validator(schema: Any) -> Draft202012Validator:
    return Draft202012Validator(schema | {"components": whole()["components"]})


def params_schema(method: Any) -> dict[str, Any]:
    return {
        "type": "object",
        "properties": {param["name"]: param["schema"] for param in method["params"]},
        "required": [param["name"] for param in method["params"] if param["required"]],
        "additionalProperties": False,
    }


def test_every_method_is_described_once() -> None:
    assert [method["name"] for method in whole()["methods"]] == list(METHODS)
    assert whole()["openrpc"] == "1.3.2"
    assert whole()["info"]["version"]


def test_every_reference_leads_somewhere() -> None:
    for reference in set(references(whole())):
        found: Any = whole()
        for step in reference.removeprefix("#/").split("/"):
            found = found[step]
        assert found


@pytest.mark.parametrize("name", list(METHODS))
def test_a_method_is_described_whole(name: str) -> None:
    method = by_name()[name]
    assert method["paramStructure"] == "by-name"
    assert method["summary"]
    # Optional params come after all required ones (OpenRPC, Method Object).
    required = [param["required"] for param in method["params"]]
    assert required == sorted(required, reverse=True)
    Draft202012Validator.check_schema(params_schema(method))
    Draft202012Validator.check_schema(method["result"]["schema"])


def words(value: Any) -> Iterator[str]:
    """What the document says to people."""
    if isinstance(value, list):
        for item in value:
            yield from words(item)
    elif isinstance(value, dict):
        for name, item in value.items():
            if name in ("description", "summary", "title", "message") and isinstance(item, str):
                yield item
            yield from words(item)


@pytest.mark.parametrize("made", [whole, in_full], ids=["document", "verbose"])
def test_its_words_can_stand_in_a_comment_that_is_generated_from_them(
    made: Callable[[], Any],
) -> None:
    said = list(words(made()))
    assert len(said) > 100
    assert [text for text in said if "*/" in text or "/*" in text or '"""' in text] == []


def test_errors_are_the_codes_that_the_node_answers_with() -> None:
    codes = {error["code"] for error in whole()["components"]["errors"].values()}
    assert codes <= {int(code) for code in ErrorCode}


def test_the_verbose_list_needs_no_other_document() -> None:
    for method in in_full()["methods"]:
        for schema in (method["params"], method["result"]):
            Draft202012Validator.check_schema(schema)
            assert all(one.startswith("#/$defs/") for one in references(schema))


AT_A_GLANCE: dict[str, Any] = {
    "project/get": {},
    "project/matrix": {},
    "project/graph": {},
    "run/list": {},
    "run/get": {"runId": "r"},
    "agent/list": {"limit": 2},
    "agent/overview": {"query": "a"},
    "project/board": {"limit": 5},
    "project/timeline": {"limit": 5},
    "project/stateAt": {"change": 2},
    "activity/list": {"kinds": ["contract"], "spans": 20},
}


def called_elsewhere() -> set[str]:
    """The methods that other tests call."""
    elsewhere = {name for name in METHODS if name.endswith("/sync")}
    elsewhere |= {"cacp/sync/digest", "cacp/sync/pull", "cacp/sync/file", "cacp/sync/bans"}
    elsewhere |= {"cacp/project/syncState", "cacp/file/syncRequest", "cacp/sync/evidence"}
    # Mail and handoffs have parties of their own; `Node.call` checks every result of theirs.
    elsewhere |= {name for name in METHODS if name.startswith("acp/")}
    elsewhere |= {"rpc.discover", "cacp/peer/announce", "cacp/implementation/verify"}
    # They need a runner: tests/server/methods/cacp/test_receipt.py.
    elsewhere |= {"cacp/receipt/record"}
    # For people: tests/server/methods/cacp/test_agent_keys.py.
    elsewhere |= {"cacp/agent/revokeKeys"}
    return elsewhere


def test_real_calls_are_what_it_describes(team: Team) -> None:
    """A contract's whole way: each call's params and result fit their published schemas."""
    seen: set[str] = set()

    def call(name: str, agent: Any = team.backend, /, **params: Any) -> Any:
        method = by_name()[f"cacp/{name}"]
        given = {"projectId": team.project} | params
        if "projectId" not in {param["name"] for param in method["params"]}:
            del given["projectId"]
            result = team.node.call(f"cacp/{name}", **given)
        else:
            result = agent(name, **given)
        validator(params_schema(method)).validate(given)
        validator(method["result"]["schema"]).validate(result)
        seen.add(f"cacp/{name}")
        return result

    call("project/create", name="n", objective="o", repos=[])
    call("project/join", repoName="backend-api", agentEndpoint="http://127.0.0.1:1")
    call("project/addRepo", repo={"name": "infra", "role": "infra", "language": "hcl"})
    call("project/updateStatus", status="implementing")
    call("project/updateVerificationPolicy", verificationPolicy="word")
    contract = call("contract/propose", type="api_endpoint", name="n", content=CONTENT)
    at = {"contractId": contract["contractId"]}
    call("contract/respond", team.frontend, **at, action="request_change", comment="c")
    call("contract/update", **at, content={"n": 1}, changeNote="why")
    call("contract/respond", team.frontend, **at, action="agree")
    assert call("attention/list", limit=1)["items"][0]["kind"] == "implement"
    assert "implement" in call("attention/claim", session="s", limit=1)["counts"]
    assert call("attention/overview", projectId=team.project, limit=1)["items"]
    call("implementation/start", **at, plan="p")
    call("implementation/report", **at, report="STATUS:needs_decision\nQUESTION:Why?")
    call("implementation/complete", **at, files=["a"])
    call("implementation/getStatus", **at)
    call("receipt/list", **at)
    call("contract/get", **at, includeHistory=True)
    call("contract/list", limit=1)
    call("contract/conflicts")
    call("contract/timeline", **at)
    call("contract/overview", **at, includeHistory=True)
    call("contract/diff", **at, **{"from": 1, "to": 2})
    call("contract/compare", **at, content={"v": 3})
    call("contract/agreed", limit=1)
    packet = call("context/share", type="decision", content={}, relatedContracts=[at["contractId"]])
    call("context/askQuestion", question="q", options=["a"], replyTo=packet["packetId"])
    call("context/recordDecision", decision="d", chosen="c", rationale="r")
    call("context/list", limit=5)
    call("context/getThread", packetId=packet["packetId"])
    request = call("file/request", description="d")
    call("file/listRequests")
    file = {"name": "n", "content": "QUJD"}
    shared = call("file/share", file=file)
    call("file/fulfillRequest", requestId=request["requestId"], file=file)
    call("file/list")
    call("file/get", fileId=shared["fileId"])
    run = {"runId": "r", "startedAt": "2026-01-01T00:00:00Z", "counts": {"DONE": 1}}
    call("run/report", **run, status="COMPLETED")
    call("search", query="q", kinds=["context"])
    call("project/list", limit=2)
    for name, params in AT_A_GLANCE.items():
        call(name, **params)
    call("project/list", limit=2, summary=True)
    call("project/archive")
    call("project/unarchive")
    call("repo/reassign", repoName="infra", agentId=AGENT)
    call("repo/release", repoName="infra")
    call("project/delete")
    assert seen | called_elsewhere() == set(METHODS)


def unbounded(schema: Any, path: str = "") -> Iterator[str]:
    """Where a schema takes an integer of any size."""
    if isinstance(schema, dict):
        if schema.get("minimum") is not None and schema.get("maximum", 2**64) <= SAFE_INTEGER:
            return
        if schema.get("type") == "integer" and not schema.keys() & {"const", "enum"}:
            yield path
        for name, member in schema.items():
            yield from unbounded(member, f"{path}/{name}")
    elif isinstance(schema, list):
        for number, member in enumerate(schema):
            yield from unbounded(member, f"{path}/{number}")


@pytest.mark.parametrize("name", METHODS)
def test_every_number_that_is_taken_has_bounds(name: str) -> None:
    """One that is too large for the database, or for canonical JSON, would be taken and then fail
    whoever lists it, signs it or sends it on."""
    assert list(unbounded(METHODS[name].params.model_json_schema(by_alias=True))) == []


def nulls(schema: Any, defined: Any, seen: frozenset[str] = frozenset()) -> Iterator[Any]:
    """Where a schema says that something may be null."""
    if isinstance(schema, list):
        for item in schema:
            yield from nulls(item, defined, seen)
    elif isinstance(schema, dict):
        if schema.get("type") == "null" or schema.get("default", ...) is None:
            yield schema
        name = str(schema.get("$ref", "")).rpartition("/")[2]
        if name and name not in seen:
            yield from nulls(defined[name], defined, seen | {name})
        for key, item in schema.items():
            if key != "$defs":
                yield from nulls(item, defined, seen)


def test_what_is_optional_in_a_result_is_absent_never_null() -> None:
    """CACP 2.0, Data Types: `agent_id?: string`."""
    defined = whole()["components"]["schemas"]
    for method in whole()["methods"]:
        assert list(nulls(method["result"]["schema"], defined)) == [], method["name"]
    for method in in_full()["methods"]:
        result = method["result"]
        assert list(nulls(result, result.get("$defs", {}))) == [], method["name"]
