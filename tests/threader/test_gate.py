"""The breaker with a clock and a voice."""

import asyncio

import pytest

from schemas.manifest import ManifestPolicy
from schemas.v2 import FailureClass
from threader.gate import Gate, ProviderLost, make_gate
from threader.outage import Outage, OutageKind
from threader.outcome import Failure

BUSY = Outage(OutageKind.RATE_LIMIT, "429", 5)
OUT = Failure(FailureClass.TRANSIENT_INFRA, "rate_limit", outage=BUSY)


class Desk:
    """A gate whose time is set by hand."""

    def __init__(self, **policy: float) -> None:
        self.now = 0.0
        self.told: list[str | None] = []
        self.long: list[bool] = []
        self.gate: Gate = make_gate(ManifestPolicy.model_validate(policy), self.tell)
        self.gate.clock = lambda: self.now

    def tell(self, reason: str | None, long: bool) -> None:
        self.told.append(reason)
        self.long.append(long)


def test_what_is_under_way_goes_on_and_nothing_begins() -> None:
    desk = Desk()
    assert desk.gate.room(4, 3) == 1
    assert desk.gate.weigh("A", OUT, 0.0) is OUT
    assert "rate limited: 429; next try in" in (desk.told[0] or "")
    assert desk.gate.room(4, 3) == 0
    desk.now = 6.0
    assert desk.gate.room(4, 0) == 1


def test_only_what_proves_the_provider_ends_the_pause() -> None:
    desk = Desk()
    desk.gate.weigh("A", OUT, 0.0)
    desk.now = 6.0
    for unproven in (FailureClass.TRANSIENT_INFRA, FailureClass.TIMEOUT):
        desk.gate.weigh("A", Failure(unproven, "x"), 6.0)
    assert desk.gate.wait() is not None
    desk.gate.weigh("A", Failure(FailureClass.PROMPT_GAP, "x"), 6.0)
    assert desk.gate.wait() is None
    assert desk.told[-1] is None


def test_a_long_outage_is_given_up() -> None:
    desk = Desk(outage_limit_sec=60)
    desk.gate.weigh("A", OUT, 0.0)
    desk.now = 60.0
    assert desk.gate.room(4, 1) == 0, "a probe is under way"
    with pytest.raises(ProviderLost, match="resume"):
        asyncio.run(desk.gate.open())


def test_only_a_long_outage_is_worth_a_persons_attention() -> None:
    desk = Desk()
    desk.gate.weigh("A", OUT, 0.0)
    desk.now = 100.0
    desk.gate.trip("A", Outage(OutageKind.RATE_LIMIT, "429", 60))
    assert desk.long == [False, True]


def test_attempts_beside_each_other_are_a_crowd() -> None:
    desk = Desk()
    for _ in range(9):
        for task in "AB":
            desk.gate.begin(task)
        assert desk.gate.weigh("A", OUT, desk.now) is OUT
        desk.now += 500
        assert desk.gate.weigh("B", None, desk.now) is None
    outcomes = []
    for _ in range(4):
        began = desk.gate.begin("A")
        outcomes.append(desk.gate.weigh("A", OUT, began) is OUT)
        desk.now += 500
        desk.gate.weigh("B", None, desk.gate.begin("B"))
    assert outcomes == [True, True, False, True], "alone it is its own failure"
