"""A long conversation with a foreign peer: nothing comes back twice (design §8)."""

import json

import pytest
from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import (
    RuleBasedStateMachine,
    invariant,
    rule,
    run_state_machine_as_test,
)

from peers.foreign import ContractExchange, Difference, contract_differences
from schemas.base import iso
from schemas.sync import PeerContract
from server.domain import contract
from server.domain import contract_steps as steps
from server.domain.canonical import digest
from server.domain.contract import Facts, join
from server.domain.errors import Refusal
from tests.peers.objects import facts_from, wire
from tests.server.domain.histories import API, CONTENTS, IOS, WEB, Step, facts_of, propose

STEPS = ["agree", "request_change", "reject", "update", "complete", "success", "failure"]
PEER_LAG = -3_600_000_000
"""Their clock, in microseconds beside ours: local time that they send without an offset."""


class Conversation(RuleBasedStateMachine):
    """Our node (api and ios) and web's foreign node, which replaces and sends it whole.

    Messages may be repeated, come late and out of order. `their` facts are only the model of
    what web's node thinks; it never sees ours.
    """

    def __init__(self) -> None:
        super().__init__()
        self.now = 10_000_000_000
        self.ours: Facts = propose(API, WEB, IOS, stamp=self.now)
        self.exchange = ContractExchange().after_sending(wire(self.ours))
        self.told = [wire(self.ours)]
        self.their: Facts = self.ours
        self.outbox: list[PeerContract] = []
        self.sent: list[PeerContract] = []

    def tick(self) -> int:
        self.now += 1_000
        return self.now

    def hear(self, said: PeerContract) -> list[Difference]:
        """What our node does with a message."""
        found = contract_differences(wire(self.ours), self.exchange, said, "web", digest)
        new = facts_from(found, self.ours, self.tick())
        for fact in new:
            assert getattr(fact, "repo_id", "web") == "web"
        before = contract.versions_of(self.ours)
        self.ours = join(self.ours, new)
        assert all(version in contract.versions_of(self.ours) for version in before)
        self.exchange = self.exchange.after_hearing(said)
        return found

    @rule(who=st.sampled_from([API, IOS]), action=st.sampled_from(STEPS))
    def we_act(self, who: steps.Party, action: str) -> None:
        try:
            new = facts_of(self.ours, Step(0, who, action, CONTENTS[1]), self.tick())
        except Refusal:
            return
        self.ours = join(self.ours, new)

    @rule(confirmed=st.booleans())
    def we_send(self, confirmed: bool) -> None:
        """Unless it is confirmed, it did not arrive."""
        if not confirmed or self.outbox:
            return
        self.told.append(wire(self.ours))
        self.exchange = self.exchange.after_sending(self.told[-1])
        self.their = self.ours

    @rule(action=st.sampled_from(STEPS))
    def they_act(self, action: str) -> None:
        try:
            new = facts_of(self.their, Step(0, WEB, action, CONTENTS[2]), self.tick() + PEER_LAG)
        except Refusal:
            return
        # The model's join goes by stamps, and their clock is not ours: what they do is the latest.
        self.their = dict(self.their) | {(fact.kind, fact.key): fact for fact in new}
        text = json.loads(wire(self.their).model_dump_json())
        self.outbox.append(
            PeerContract.model_validate(
                text | {"updated_at": iso(self.now + PEER_LAG).removesuffix("+00:00")}
            )
        )

    @rule()
    def their_oldest_arrives(self) -> None:
        if not self.outbox:
            return
        said = self.outbox.pop(0)
        self.hear(said)
        self.sent.append(said)
        assert self.hear(said) == []

    @rule()
    def their_newest_overtakes_the_others(self) -> None:
        if not self.outbox:
            return
        self.hear(self.outbox[-1])
        self.sent += self.outbox
        self.outbox.clear()

    @rule(first=st.sampled_from(STEPS), second=st.sampled_from(STEPS))
    def they_take_ours_and_go_on_before_we_hear_so(self, first: str, second: str) -> None:
        """None of their steps is lost: each is compared with the one before."""
        if self.outbox:
            return
        sent = wire(self.ours)
        self.exchange = self.exchange.before_sending(sent)
        self.told.append(sent)
        self.their = self.ours
        self.they_act(first)
        self.their_oldest_arrives()
        crossed = wire(self.ours) != sent
        after = self.exchange.after_crossing if crossed else self.exchange.after_sending
        self.exchange = after(sent)
        self.they_act(second)
        self.their_oldest_arrives()
        assert contract.status_of(self.ours) == contract.status_of(self.their)

    @rule(data=st.data())
    def an_old_message_arrives_again(self, data: st.DataObject) -> None:
        if self.sent:
            assert self.hear(data.draw(st.sampled_from(self.sent))) == []

    @rule(data=st.data())
    def they_echo_what_we_said(self, data: st.DataObject) -> None:
        assert self.hear(data.draw(st.sampled_from(self.told))) == []

    @invariant()
    def our_own_state_is_no_news(self) -> None:
        ours = wire(self.ours)
        assert contract_differences(ours, self.exchange, ours, "web", digest) == []
        assert contract_differences(ours, ContractExchange(), ours, "web", digest) == []


TestConversation = Conversation.TestCase
TestConversation.settings = settings(max_examples=50, stateful_step_count=30, deadline=None)


@pytest.mark.soak
def test_long_conversations() -> None:
    run_state_machine_as_test(
        Conversation, settings=settings(max_examples=500, stateful_step_count=50, deadline=None)
    )
