"""A node that contradicts itself is named wherever the two things meet (design §7)."""

from contextlib import closing
from pathlib import Path
from typing import Any
from uuid import uuid4

import orjson
import pytest

from peers.signing import SigningKey, verify
from schemas.mesh import EvidenceResult
from server.auth.authenticator import Caller
from server.domain.agents import identity
from server.domain.authorship import statement
from server.methods.base import Context
from server.methods.sync.equivocation import take
from server.node import Node as Methods
from server.store import equivocations
from tests.cli.run import cacp
from tests.support.located import connect
from tests.support.mesh_member import ALPHA, GUS, SOME_TIME, TOKEN, MeshMember
from tests.support.node import Node

ME = "aid://example.com/beta"


@pytest.fixture
def met(tmp_path: Path) -> Any:
    with Node(tmp_path, repo="alpha", agent_id=ALPHA, mesh_token=TOKEN) as alpha:
        beta = MeshMember(alpha, "beta").register()
        shared = str(uuid4())
        beta.project(shared)
        yield alpha, beta, shared


def evidence(node: Node) -> Any:
    return orjson.loads(cacp("peers", "evidence", ME, "--json", db=str(node.db)).stdout)


def test_two_answers_with_one_stamp_are_evidence_that_anybody_can_check(met: Any) -> None:
    alpha, beta, shared = met
    contract = str(uuid4())
    beta.contract(shared, contract, beta.fact(contract, beta.version(shared)))
    said = beta.response(shared, "beta", beta.agent)
    asked, rejected = (said | {"action": action} for action in ("request_change", "reject"))
    beta.contract(shared, contract, beta.fact(contract, asked))
    for _ in range(2):
        beta.contract(shared, contract, beta.fact(contract, rejected))
    [one] = evidence(alpha)
    assert (one["node"], one["kind"], one["place"]) == (identity(beta.agent), "fact", contract)
    for body, signature in (
        (one["ours"], one["oursSignature"]),
        (one["theirs"], one["theirsSignature"]),
    ):
        value = orjson.loads(signature)["value"]
        assert verify(beta.signing.public, statement("fact", contract, orjson.loads(body)), value)
    health = alpha.get("/health").json()
    assert (health["status"], health["reason"]) == ("degraded", "equivocation")
    assert beta.agent not in health["detail"], "health is public"
    assert alpha.log.count('"equivocation"') == 1
    metrics = alpha.get("/metrics").text
    assert f'cacp_equivocations{{node="{ME}"}} 1.0' in metrics
    assert 'cacp_alarms{reason="equivocation"} 1.0' in metrics
    told = alpha.query("SELECT count(*) FROM changes WHERE outcome = 'equivocation'")
    assert told == [(1,)]
    [peer] = alpha.get("/peers").json()["peers"]
    assert peer["equivocations"] == 1
    assert "contradicted itself (1)" in cacp("peers", url=alpha.url).stdout
    assert ME in cacp("doctor", db=str(alpha.db)).stdout
    assert cacp("peers", "note", beta.agent, db=str(alpha.db)).exit_code == 0
    assert alpha.get("/health").json()["status"] == "healthy"
    assert cacp("peers", "note", beta.agent, db=str(alpha.db)).exit_code == 1
    assert len(evidence(alpha)) == 1, "the evidence stays"


def test_two_versions_of_one_content_with_one_stamp_are_evidence_whoever_they_bind(
    met: Any,
) -> None:
    alpha, beta, shared = met
    contract = str(uuid4())
    first = beta.version(shared)
    other = first | {"parties": [first["repo_id"]]}
    for said in (first, other, other | {"stamp": first["stamp"] + 1}):
        beta.contract(shared, contract, beta.fact(contract, said))
    [one] = evidence(alpha)
    assert one["key"] == f"version 1/{first['digest']}"
    assert [len(orjson.loads(one[name])["parties"]) for name in ("ours", "theirs")] == [2, 1]


def test_who_only_changes_its_mind_or_is_forged_is_not_accused(met: Any) -> None:
    alpha, beta, shared = met
    contract = str(uuid4())
    beta.contract(shared, contract, beta.fact(contract, beta.version(shared)))
    said = beta.response(shared, "beta", beta.agent)
    beta.contract(shared, contract, beta.fact(contract, said | {"action": "request_change"}))
    later = said | {"action": "reject", "stamp": said["stamp"] + 1}
    beta.contract(shared, contract, beta.fact(contract, later))
    beta.contract(shared, contract, beta.fact(contract, said | {"action": "request_change"}))
    forged = {"fact": later | {"comment": "x"}, "signature": beta.signed("fact", contract, said)}
    beta.contract(shared, contract, forged)
    gamma = MeshMember(alpha, "gamma").register()
    gamma.contract(shared, contract, gamma.fact(contract, later | {"comment": "gamma's"}))
    assert evidence(alpha) == []
    assert alpha.get("/health").json()["status"] == "healthy"


def contradiction(beta: MeshMember, shared: str) -> dict[str, Any]:
    """Two answers with one stamp, as a peer would show them."""
    place = str(uuid4())
    said = beta.response(shared, "beta", beta.agent)
    asked, rejected = (said | {"action": action} for action in ("request_change", "reject"))
    return {
        "kind": "fact",
        "place": place,
        "key": f"response {said['version']}/{said['digest']}/{said['repo_id']}",
        "ours": asked,
        "ours_signature": beta.signed("fact", place, asked),
        "theirs": rejected,
        "theirs_signature": beta.signed("fact", place, rejected),
    }


def test_a_peer_is_told_what_was_found_and_from_where_it_knows_it(met: Any) -> None:
    alpha, beta, shared = met
    contract = str(uuid4())
    beta.contract(shared, contract, beta.fact(contract, beta.version(shared)))
    assert beta.call("cacp/sync/evidence") == {"evidence": [], "keys": {}, "last": 0}
    said = beta.response(shared, "beta", beta.agent)
    for action in ("request_change", "reject"):
        beta.contract(shared, contract, beta.fact(contract, said | {"action": action}))
    gus = MeshMember(alpha, "gus").register()
    told = gus.call("cacp/sync/evidence")
    [one] = told["evidence"]
    assert [one[name]["action"] for name in ("ours", "theirs")] == ["request_change", "reject"]
    assert told["keys"] == {beta.agent: beta.signing.public}
    assert gus.call("cacp/sync/evidence", after=told["last"])["evidence"] == []
    refused = gus.refused("cacp/sync/evidence", source_agent=beta.agent)
    assert refused.data["reason"] == "unknown_peer"


def test_what_a_peer_shows_is_checked_as_if_it_had_been_found_here(met: Any) -> None:
    alpha, beta, shared = met
    gus = MeshMember(alpha, "gus")
    good = contradiction(beta, shared)
    both_honest = good | {"theirs": good["ours"], "theirs_signature": good["ours_signature"]}
    unsigned = good | {"theirs": good["theirs"] | {"comment": "x"}}
    elsewhere = good | {"place": str(uuid4())}
    of_two = good | {"ours_signature": good["ours_signature"] | {"node": gus.agent}}

    def heard(*every: dict[str, Any], keys: dict[str, str] | None = None) -> dict[str, int]:
        own = Methods(ALPHA, "alpha", True, True, SigningKey(b"k" * 32))
        caller = Caller(GUS, "gus", "peer", "key")
        with closing(connect(alpha.db)) as db:
            db.execute("BEGIN IMMEDIATE")
            ctx = Context(db, caller, own, "cacp/sync/evidence", SOME_TIME + 10)
            told = {"evidence": list(every), "keys": keys or {}, "last": 1}
            take(ctx, GUS, EvidenceResult.model_validate(told))
            db.execute("COMMIT")
            return equivocations.counts(db)

    unmet, forged = contradiction(gus, shared), {gus.agent: beta.signing.public}
    assert heard(unmet) == {}, "nobody knows its key"
    assert heard(unmet, keys=forged) == {}
    assert heard(both_honest, unsigned, elsewhere, of_two) == {}
    assert heard(good, good, keys={beta.agent: gus.signing.public}) == {ME: 1}, "its own key counts"
    assert heard(unmet, keys={gus.agent: gus.signing.public}) == {ME: 1, identity(GUS): 1}
