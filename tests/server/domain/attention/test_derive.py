"""`attention(facts, who)`: the same for the same facts."""

from hypothesis import given
from hypothesis import strategies as st

from server.domain.attention.derive import AttentionFacts, attention
from server.domain.attention.items import Actor
from tests.server.domain.attention.subjects import PROJECT, subject
from tests.server.domain.attention.test_claims import LOST
from tests.server.domain.attention.test_handoffs import OFFER
from tests.server.domain.attention.test_mail import GATED, UNREAD
from tests.server.domain.attention.test_questions import ASKED, MAILED
from tests.server.domain.histories import API, WEB, propose

ALL: list[AttentionFacts] = [
    subject(propose(API, WEB)), ASKED, MAILED, LOST, OFFER, UNREAD, GATED
]  # fmt: skip


@given(st.permutations(ALL))
def test_the_order_of_the_facts_does_not_matter(facts: list[AttentionFacts]) -> None:
    who = Actor(WEB.agent_id, {PROJECT: "web"}, human=True)
    assert attention(facts, who) == attention(ALL, who)
    assert {item.kind for item in attention(facts, who)} == {"respond", "answer", "approve"}


def test_ids_are_unique() -> None:
    for agent in (API.agent_id, WEB.agent_id):
        ids = [item.id for item in attention(ALL, Actor(agent, {PROJECT: "web"}, human=True))]
        assert len(ids) == len(set(ids))
