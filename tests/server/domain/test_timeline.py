"""A contract's facts as a story (design §7)."""

from hypothesis import given
from hypothesis import strategies as st

from schemas.facts import Fact
from server.domain import contract
from server.domain import contract_steps as steps
from server.domain.canonical import digest
from server.domain.timeline import ContractEvent, timeline_of
from tests.server.domain.histories import API, CONTENTS, WEB, propose


def walked() -> dict[contract.FactKey, Fact]:
    """A contract from proposal through a failed round to verified."""
    facts = propose(API, WEB)

    def take(*more: Fact) -> None:
        facts.update(contract.join(facts, more))

    take(steps.respond(facts, WEB, "request_change", 2, comment="b", suggested_change={"b": 1}))
    content = CONTENTS[1]
    take(steps.update(facts, API, content, digest(content), ("api", "web"), 3, "b it is"))
    take(steps.respond(facts, WEB, "agree", 4))
    take(steps.implement(facts, API, "in_progress", 5, plan="soon"))
    take(steps.implement(facts, API, "complete", 6, files=("a.py",), notes="done"))
    take(steps.implement(facts, WEB, "complete", 7))
    take(*steps.verify(facts, WEB, "failure", 8, notes="no", details={"test": "x"}))
    take(steps.implement(facts, API, "needs_revision", 9, notes="how?"))
    take(steps.implement(facts, WEB, "complete", 10))
    take(steps.implement(facts, API, "complete", 11))
    take(*steps.verify(facts, WEB, "partial", 12))
    take(*steps.verify(facts, WEB, "success", 13))
    return facts


def test_every_step_is_told_in_order_with_its_reason() -> None:
    assert [entry[:3] + entry[6:] for entry in timeline_of(walked())] == [
        (1, "proposed", 1, None, None),
        (2, "change_requested", 1, "b", {"b": 1}),
        (3, "updated", 2, "b it is", None),
        (4, "agreed", 2, None, None),
        (5, "started", 2, "soon", None),
        (6, "completed", 2, "done", ["a.py"]),
        (7, "completed", 2, None, None),
        (8, "failed", 2, "no", {"test": "x"}),
        (9, "started", 2, None, None),
        (10, "completed", 2, None, None),
        (11, "completed", 2, "how?", None),
        (12, "partly_verified", 2, None, None),
        (13, "verified", 2, None, None),
    ]


def test_it_says_who_and_in_which_round() -> None:
    told = timeline_of(walked())
    assert [entry.repo_id for entry in told[:4]] == ["api", "web", "api", "web"]
    assert told[1].agent_id == WEB.agent_id
    assert [entry.round for entry in told] == [None] * 4 + [1] * 4 + [2] * 5


def test_a_rejection_and_work_that_must_be_revised_are_told() -> None:
    facts = propose(API, WEB)
    facts = contract.join(facts, [steps.respond(facts, WEB, "agree", 2)])
    work = steps.implement(facts, WEB, "needs_revision", 3, notes="why")
    facts = contract.join(facts, [work])
    told = [(one.step, one.note) for one in timeline_of(facts)]
    assert told == [
        ("proposed", None),
        ("agreed", None),
        ("started", None),
        ("needs_revision", "why"),
    ]
    facts = propose(API, WEB)
    facts = contract.join(facts, [steps.respond(facts, WEB, "reject", 2)])
    assert [one.step for one in timeline_of(facts)] == ["proposed", "rejected"]


@given(st.permutations(list(walked().items())))
def test_the_order_in_which_facts_came_does_not_matter(
    facts: list[tuple[contract.FactKey, Fact]],
) -> None:
    told: list[ContractEvent] = timeline_of(dict(facts))
    assert told == timeline_of(walked())


def test_steps_of_one_stamp_are_told_alike_everywhere() -> None:
    """What a foreign peer says in one call has one stamp."""
    facts = propose(API, WEB)
    for content in CONTENTS[:2]:
        asked = steps.respond(facts, WEB, "request_change", 2)
        facts = contract.join(facts, [asked])
        made = steps.update(facts, API, content, digest(content), ("api", "web"), 2)
        facts = contract.join(facts, [made])
    told = timeline_of(facts)
    assert [(one.version, one.step) for one in told[1:]] == [
        (1, "change_requested"),
        (2, "updated"),
        (2, "change_requested"),
        (3, "updated"),
    ]
    assert timeline_of(dict(reversed(facts.items()))) == told
