"""cacp/search: what a caller finds, and what it does not."""

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from schemas.base import iso
from server.auth.authenticator import Caller
from server.domain.errors import Forbidden, InvalidInput, NotFound
from server.methods import METHODS
from server.store import messages, search
from tests.support.in_process_node import ANA, BEN, CLEO, HOUR, HUMAN, InProcessNode


@pytest.fixture
def node(tmp_path: Path) -> Iterator[InProcessNode]:
    with InProcessNode(tmp_path) as made:
        yield made


def find(node: InProcessNode, agent: str, query: str, **params: Any) -> list[Any]:
    """The hits, once everything is indexed."""
    index(node)
    hits: list[Any] = node.call("cacp/search", agent, query=query, **params)["hits"]
    return hits


def index(node: InProcessNode) -> None:
    if not search.is_ready(node.db):
        node.run(lambda ctx: search.rebuild(ctx.db))
    while search.waiting(node.db):
        node.run(lambda ctx: search.index_next(ctx.db, 50))


def as_caller(node: InProcessNode, caller: Caller, **params: Any) -> Any:
    method = METHODS["cacp/search"]
    checked = method.params.model_validate(params, by_alias=True)
    return node.answered(method, caller, checked)


def send(node: InProcessNode, summary: str, sender: str = ANA, **params: Any) -> str:
    given = {"to": [BEN], "type": "knowledge.push", "payload": {"summary": summary}, **params}
    return str(node.call("acp/send", sender, **given)["message"]["id"])


def project(node: InProcessNode, name: str = "Shop", agent: str = ANA) -> str:
    repos = [
        {"name": "r", "role": "backend", "language": "go"},
        {"name": "web", "role": "frontend", "language": "ts"},
    ]
    made = node.call("cacp/project/create", agent, name=name, objective="Sell", repos=repos)
    project_id = str(made["projectId"])
    node.call("cacp/project/join", agent, projectId=project_id, repoName="r")
    return project_id


def test_mail_is_for_its_parties_only(node: InProcessNode) -> None:
    message_id = send(node, "The invoice endpoint is ready")
    [hit] = find(node, BEN, "invoice")
    assert (hit["kind"], hit["messageId"], hit["author"]) == ("mail", message_id, ANA)
    assert hit["threadId"] == message_id
    text = hit["snippet"]["text"]
    assert [text[start:stop] for start, stop in hit["snippet"]["marks"]] == ["invoice"]
    assert len(find(node, ANA, "invoice")) == 1
    assert find(node, CLEO, "invoice") == []
    assert find(node, HUMAN, "invoice", human=True) == []


@pytest.mark.parametrize(
    "open_to_humans",
    [
        {"priority": "critical"},
        {"policy": {"visibility": "human-audit"}},
        {"policy": {"human_gate": "required"}},
    ],
)
def test_a_human_finds_what_is_open_to_humans(
    node: InProcessNode, open_to_humans: dict[str, Any]
) -> None:
    send(node, "The invoice endpoint is ready", **open_to_humans)
    assert len(find(node, HUMAN, "invoice", human=True)) == 1
    assert find(node, HUMAN, "invoice") == []
    waits = "human_gate" in open_to_humans.get("policy", {})
    assert len(find(node, BEN, "invoice")) == (0 if waits else 1), "not before it is delivered"


def test_expired_mail_leaves_the_index(node: InProcessNode) -> None:
    expires = iso(node.now + HOUR)
    message_id = send(node, "The invoice endpoint is ready", expires_at=expires)
    assert len(find(node, BEN, "invoice")) == 1
    node.run(lambda ctx: messages.put_status(ctx.db, message_id, "expired", iso(node.now)))
    assert find(node, BEN, "invoice") == []
    assert node.rows("SELECT * FROM search_docs WHERE entity_id = ?", message_id) == []


def test_contracts_and_context_are_found_by_name_content_and_notes(node: InProcessNode) -> None:
    project_id = project(node)
    at: dict[str, Any] = {"projectId": project_id}
    contract = node.call(
        "cacp/contract/propose",
        ANA,
        **at,
        type="api_endpoint",
        name="createInvoice",
        content={"path": "/billing/invoices", "fields": ["dueDate"]},
    )["contractId"]
    node.call(
        "cacp/contract/update",
        ANA,
        **at,
        contractId=contract,
        content={"path": "/billing/invoices/v2"},
        changeNote="Renumbered after the audit",
    )
    node.call("cacp/context/askQuestion", ANA, **at, question="Who rounds the totals?")
    for asked in ("invoice", "billing/invoices", "renumbered", "v2 create*"):
        [hit] = find(node, CLEO, asked)
        assert (hit["contractId"], hit["title"]) == (contract, "createInvoice")
        assert (hit["projectName"], hit["author"], hit["status"]) == ("Shop", "r", "proposed")
    assert find(node, CLEO, "dueDate") == [], "of a former version"
    [question] = find(node, CLEO, "ROUNDS")
    assert (question["kind"], question["title"]) == ("context", "Who rounds the totals?")
    assert question["author"] == ANA
    assert find(node, CLEO, "rounds", kinds=["contract", "mail"]) == []


def test_only_the_projects_that_the_key_is_for(node: InProcessNode) -> None:
    own, other = project(node, "Shop"), project(node, "Secret")
    for project_id in (own, other):
        node.call("cacp/context/askQuestion", ANA, projectId=project_id, question="Which invoice?")
    send(node, "invoice", sender=BEN, to=[ANA])
    assert len(find(node, ANA, "invoice")) == 3
    assert [hit["projectId"] for hit in find(node, ANA, "invoice", projectId=own)] == [own]
    limited = Caller(ANA, "r", "verified", "key", projects=frozenset({own}))
    hits = as_caller(node, limited, query="invoice")["hits"]
    assert [hit["projectId"] for hit in hits] == [own], "nor mail"
    with pytest.raises(Forbidden):
        as_caller(node, limited, query="invoice", projectId=other)
    reader = Caller(ANA, "r", "known", "key")
    hits = as_caller(node, reader, query="invoice")["hits"]
    assert {hit["kind"] for hit in hits} == {"context"}, "who may not write reads no mail"


def test_a_deleted_project_leaves_the_index(node: InProcessNode) -> None:
    project_id = project(node)
    node.call("cacp/context/askQuestion", ANA, projectId=project_id, question="Which invoice?")
    assert len(find(node, ANA, "invoice")) == 1
    node.call("cacp/project/delete", ANA, projectId=project_id)
    assert node.call("cacp/search", ANA, query="invoice")["hits"] == []
    index(node)
    assert node.rows("SELECT * FROM search_docs") == []
    with pytest.raises(NotFound):
        find(node, ANA, "invoice", projectId=project_id)


def test_pages(node: InProcessNode) -> None:
    for number in range(5):
        send(node, f"invoice {number}")
    first = find(node, BEN, "invoice", limit=3)
    cursor = node.call("cacp/search", BEN, query="invoice", limit=3)["nextCursor"]
    rest = node.call("cacp/search", BEN, query="invoice", limit=3, cursor=cursor)
    assert [hit["title"] for hit in first + rest["hits"]] == [
        f"invoice {number}" for number in reversed(range(5))
    ]
    assert "nextCursor" not in rest


def test_it_says_that_the_index_is_not_complete(node: InProcessNode) -> None:
    send(node, "invoice")
    answer = node.call("cacp/search", BEN, query="invoice")
    assert (answer["hits"], answer["indexing"], answer["waiting"]) == ([], True, 1)
    index(node)
    answer = node.call("cacp/search", BEN, query="invoice")
    assert (len(answer["hits"]), answer["indexing"], answer["waiting"]) == (1, False, 0)


@pytest.mark.parametrize("params", [{"query": "-"}, {"query": "a", "cursor": "x"}])
def test_bad_input_is_refused(node: InProcessNode, params: dict[str, Any]) -> None:
    with pytest.raises(InvalidInput):
        node.call("cacp/search", ANA, **params)
