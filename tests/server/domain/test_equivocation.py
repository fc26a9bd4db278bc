"""When has a node contradicted itself?"""

from dataclasses import replace
from typing import Any

import orjson
import pytest

from schemas.mesh import Signature, SignedFact
from server.domain import contract
from server.domain import contract_steps as steps
from server.domain.equivocation import at_one_time, contradict, proves
from server.domain.identifiers import repo_id_for
from tests.server.domain.histories import API, WEB, propose


@pytest.mark.parametrize("kind", ["packet", "file", "file_request"])
def test_what_is_written_once_has_one_text(kind: str) -> None:
    assert contradict(kind, {"stamp": 1, "a": 1}, {"stamp": 2, "a": 2})
    assert not contradict(kind, {"stamp": 1, "a": 1}, {"a": 1, "stamp": 1})


def test_what_may_change_has_one_text_for_each_stamp() -> None:
    assert contradict("fact", {"stamp": 1, "action": "agree"}, {"stamp": 1, "action": "reject"})
    assert not contradict("fact", {"stamp": 1}, {"stamp": 2})
    assert contradict("claim", {"renewed_at": 1, "x": 1}, {"renewed_at": 1, "x": 2})


def test_two_versions_of_one_content_are_one_thing_whoever_they_bind() -> None:
    facts = propose(API, WEB)
    [first] = contract.versions_of(facts)
    asked = steps.respond(facts, WEB, "request_change", first.stamp)
    facts = contract.join(facts, [asked])
    later, other = (replace(first, parties=("api",), stamp=stamp) for stamp in (9, first.stamp))
    rejected = replace(asked, action="reject")
    by = Signature(node=API.agent_id, value="x")
    sent = [SignedFact(fact=one, signature=by) for one in (first, later, other, asked, rejected)]
    found = [(what, ours, one.fact) for what, ours, one in at_one_time(facts, sent)]
    assert found == [
        (f"version {first.place}", first, other),
        (f"response {asked.key}", asked, rejected),
    ]


def test_what_comes_is_compared_with_one_of_many_that_are_known() -> None:
    """Each comparison costs two signatures: so many of one author, stamp and content cost each."""
    [first] = contract.versions_of(propose(API, WEB))
    known, coming = (
        [replace(first, parties=(f"{name}{number}",)) for number in range(20)] for name in "kc"
    )
    facts = contract.join({}, known)
    by = Signature(node=API.agent_id, value="x")
    found = list(at_one_time(facts, [SignedFact(fact=one, signature=by) for one in coming]))
    assert [one.fact for _, _, one in found] == coming
    of_other = replace(first, agent_id=WEB.agent_id, parties=("o",))
    facts = contract.join(facts, [of_other])
    [(_, ours, _)] = at_one_time(facts, [SignedFact(fact=coming[0], signature=by)])
    assert ours == known[-1]


PROJECT = "a project"
BACKEND = {"name": "backend", "role": "service", "stamp": 1}
REPO = (PROJECT, repo_id_for(PROJECT, "backend"))
CLAIM = {"agent_id": "aid://example.com/beta@1.0.0", "claimed_at": 1, "renewed_at": 1}
MINE = ("repo", "aid://example.com/beta")


@pytest.mark.parametrize(
    ("kind", "at", "ours", "theirs"),
    [
        ("packet", (PROJECT, "p"), {"packet_id": "p", "n": 1}, {"packet_id": "p", "n": 2}),
        ("header", (PROJECT, PROJECT), {"name": "a", "stamp": 1}, {"name": "b", "stamp": 1}),
        ("repo", REPO, BACKEND, BACKEND | {"role": "client"}),
        ("claim", MINE, CLAIM, CLAIM | {"claimed_at": 0}),
    ],
)
def test_what_another_node_shows_proves_it_only_if_both_are_of_one_thing(
    kind: str, at: tuple[str, str], ours: dict[str, Any], theirs: dict[str, Any]
) -> None:
    assert proves(kind, at, ours, theirs)
    assert not proves(kind, (at[0], "another"), ours, theirs)
    assert not proves(kind, at, ours, ours)
    assert not proves(kind, at, ours, {})
    assert not proves("a kind of a later release", at, ours, theirs)


def test_an_honest_node_describes_two_repos_at_one_time() -> None:
    assert not proves("repo", REPO, BACKEND, BACKEND | {"name": "web"})


def test_two_facts_prove_it_only_if_they_are_of_one_thing() -> None:
    facts = propose(API, WEB)
    [first] = contract.versions_of(facts)
    asked = steps.respond(facts, WEB, "request_change", first.stamp)
    rejected, other = replace(asked, action="reject"), replace(asked, repo_id="api")
    a, b, c = (orjson.loads(orjson.dumps(one)) for one in (asked, rejected, other))
    at = ("a contract", f"response {asked.key}")
    assert proves("fact", at, a, b)
    assert not proves("fact", at, a, c)
    assert not proves("fact", at, a, b | {"stamp": -1})
