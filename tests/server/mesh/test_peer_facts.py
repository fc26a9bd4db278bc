"""What one replica knows of the exchange with a peer, another shows alike."""

from typing import Any

import orjson
from hypothesis import given
from hypothesis import strategies as st

from server.mesh.anti_entropy import ComparisonResult
from server.mesh.peer_facts import PeerFacts, as_json, from_json

COUNTS = st.integers(0, 10**9)
RESULTS = st.builds(
    ComparisonResult, COUNTS, st.booleans(), st.dictionaries(st.sampled_from("abc"), COUNTS)
)
FACTS = st.builds(
    PeerFacts,
    failures=COUNTS,
    cursor=COUNTS,
    confirmed=COUNTS,
    undelivered=COUNTS,
    undelivered_entities=st.just([{"entity": "contract", "tries": 1}]),
    last_contact=st.none() | st.floats(0, 2e9),
    last_error=st.none() | st.text(),
    retries=COUNTS,
    delivered=COUNTS,
    is_mesh=st.booleans(),
    rounds=COUNTS,
    fetched=COUNTS,
    compared=st.none() | RESULTS,
    ahead=st.none() | st.integers(-(10**9), 10**9),
)


@given(st.dictionaries(st.text(), FACTS))
def test_facts_come_back_from_json_as_they_were(facts: dict[str, PeerFacts]) -> None:
    sent: Any = orjson.loads(orjson.dumps(as_json(facts)))
    assert from_json(sent) == facts


def test_a_peer_is_up_once_it_was_reached_and_down_while_it_is_not() -> None:
    facts = PeerFacts(0, 0, 0, 0, [], None, None, 0, 0, is_mesh=True)
    assert facts.health == "unknown"
    assert facts._replace(last_contact=1.0).health == "up"
    assert facts._replace(last_contact=1.0, failures=1).health == "down"
    assert facts.is_equal is None
    assert facts._replace(compared=ComparisonResult(1, True, {})).is_equal is True
