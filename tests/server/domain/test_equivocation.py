"""When has a node contradicted itself?"""

from dataclasses import replace

import pytest

from schemas.mesh import Signature, SignedFact
from server.domain import contract
from server.domain.equivocation import at_one_time, is_two_faced
from tests.server.domain.histories import API, WEB, propose


@pytest.mark.parametrize("kind", ["packet", "file", "file_request"])
def test_what_is_written_once_has_one_text(kind: str) -> None:
    assert is_two_faced(kind, {"stamp": 1, "a": 1}, {"stamp": 2, "a": 2})
    assert not is_two_faced(kind, {"stamp": 1, "a": 1}, {"a": 1, "stamp": 1})


def test_what_may_change_has_one_text_for_each_stamp() -> None:
    assert is_two_faced("fact", {"stamp": 1, "action": "agree"}, {"stamp": 1, "action": "reject"})
    assert not is_two_faced("fact", {"stamp": 1}, {"stamp": 2})
    assert is_two_faced("claim", {"renewed_at": 1, "x": 1}, {"renewed_at": 1, "x": 2})


def test_two_versions_of_one_content_are_one_thing_whoever_they_bind() -> None:
    facts = propose(API, WEB)
    [first] = contract.versions_of(facts)
    asked = contract.respond(facts, WEB, "request_change", first.stamp)
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
