"""A contract's facts, step by step."""

from typing import Any

from schemas.contract import ContractStatus
from schemas.facts import Fact
from server.domain import contract
from server.domain.contract import FactKey, join, status_of
from server.domain.contract_steps import Party
from tests.server.domain.histories import (
    API,
    CONTENTS,
    WEB,
    Step,
    facts_of,
    propose,
)


class Story:
    """A contract that is told step by step; each step is stamped one later."""

    def __init__(self, *parties: Party, policy: Any = "any") -> None:
        self.facts: dict[FactKey, Fact] = propose(*parties, policy=policy)
        self.now = 1

    def then(self, who: Party, action: str, content: Any = CONTENTS[1]) -> ContractStatus:
        self.now += 1
        step = Step(0, who, action, content)
        self.facts = join(self.facts, facts_of(self.facts, step, self.now))
        return self.status

    @property
    def status(self) -> ContractStatus:
        return status_of(self.facts)

    @property
    def works(self) -> dict[str, str]:
        return {work.repo_id: work.status for work in contract.implementations_of(self.facts)}


ROADS: dict[ContractStatus, list[tuple[Party, str]]] = {
    "proposed": [],
    "negotiating": [(WEB, "request_change")],
    "agreed": [(WEB, "agree")],
    "implemented": [(WEB, "agree"), (WEB, "complete"), (API, "complete")],
    "verified": [(WEB, "agree"), (WEB, "complete"), (API, "complete"), (WEB, "success")],
}


def story_in(status: ContractStatus) -> Story:
    story = Story(API, WEB)
    for who, action in ROADS[status]:
        story.then(who, action)
    assert story.status == status
    return story


# --- the state machine, a transition a test (design §5) -----------------------------------------
