"""What a foreign peer may write of a contract (design §7)."""

from dataclasses import replace
from typing import Any

import pytest

from peers.foreign import response_behind
from schemas.facts import ResponseFact, RoundFact, VerificationFact
from server.domain import contract
from server.domain.admission import admissible, news
from server.domain.contract_steps import Party
from tests.server.domain.histories import IOS, WEB
from tests.server.domain.story import story_in


def said(facts: contract.Facts, who: Party, **more: Any) -> dict[str, Any]:
    current = contract.current_of(facts)
    place = {"version": current.version, "digest": current.digest, "stamp": 90}
    return place | {"repo_id": who.repo_id, "agent_id": who.agent_id} | more


def test_a_content_that_is_known_is_no_news_whoever_it_binds() -> None:
    facts = story_in("agreed").facts
    current = contract.current_of(facts)
    heard = replace(current, parties=(*current.parties, "late"), stamp=90)
    agreed = ResponseFact(**said(facts, WEB, action="agree"))
    second = replace(heard, version=2, parent=current.digest)
    assert news(facts, [heard, agreed, second]) == [agreed, second]


@pytest.mark.parametrize("status", ["proposed", "agreed", "verified"])
def test_a_party_rejects_in_every_state(status: Any) -> None:
    facts = story_in(status).facts
    reject = ResponseFact(**said(facts, WEB, action="reject"))
    assert admissible(facts, [reject]) == [reject]


def test_who_is_no_party_asks_and_takes_that_back() -> None:
    facts = story_in("agreed").facts
    agree = ResponseFact(**said(facts, IOS, action="agree"))
    assert admissible(facts, [agree]) == []
    asks = ResponseFact(**said(facts, IOS, action="request_change"))
    assert admissible(facts, [asks]) == [asks]
    assert len(admissible(contract.join(facts, [asks]), [agree])) == 1


def test_only_what_is_implemented_is_verified() -> None:
    for status, count in (("agreed", 0), ("implemented", 1)):
        facts = story_in(status).facts  # type: ignore[arg-type]
        found = VerificationFact(**said(facts, WEB, round=1, result="success"))
        assert len(admissible(facts, [found])) == count


def test_a_round_is_opened_by_a_failure_only() -> None:
    facts = story_in("implemented").facts
    current = contract.current_of(facts)
    opened = RoundFact(version=current.version, digest=current.digest, number=2, stamp=90)
    assert admissible(facts, [opened]) == []
    failed = VerificationFact(**said(facts, WEB, round=1, result="failure"))
    assert admissible(facts, [failed, opened]) == [failed, opened]


@pytest.mark.parametrize("action", ["agree", "request_change", "reject"])
def test_a_peers_status_tells_the_response_that_led_to_it(action: Any) -> None:
    """What a response does to a status, and what a status says of a response, agree."""
    before: Any = "negotiating" if action == "reject" else "proposed"
    facts = story_in(before).facts
    if action == "reject":
        facts = {at: fact for at, fact in facts.items() if not isinstance(fact, ResponseFact)}
    now = contract.status_of(
        contract.join(facts, [ResponseFact(**said(facts, WEB, action=action))])
    )
    assert response_behind(before, now) == action
