"""Foreign peers: only what they changed themselves becomes facts (design §8)."""

from dataclasses import asdict
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from peers.foreign import (
    ContractExchange,
    Difference,
    Implemented,
    NotTheirs,
    Outrun,
    Proposed,
    Responded,
    Updated,
    Verified,
    contract_differences,
)
from schemas.facts import VersionFact
from schemas.sync import PeerContract
from server.domain.canonical import digest
from server.domain.contract import Facts, join
from server.domain.errors import InvalidInput, Refusal
from tests.peers.objects import NAIVE, facts_from, theirs, wire, work
from tests.server.domain.histories import (
    ACTIONS,
    API,
    CONTENTS,
    WEB,
    Step,
    facts_of,
    histories,
    propose,
)


def differences(
    ours: PeerContract | None, last: PeerContract | None, said: PeerContract
) -> list[Difference]:
    exchange = ContractExchange().after_sending(last) if last else ContractExchange()
    return contract_differences(ours, exchange, said, "web", digest)


def kinds(found: list[Difference]) -> list[str]:
    return [type(difference).__name__ for difference in found]


# --- a contract that is unknown here ------------------------------------------------------------


@pytest.mark.parametrize("proposed_by", ["web", None])
def test_what_they_propose_is_proposed(proposed_by: str | None) -> None:
    said = theirs(proposed_by=proposed_by, version=3, status="agreed")
    assert differences(None, None, said) == [Proposed(3, CONTENTS[0], digest(CONTENTS[0]))]


def test_a_proposal_comes_with_their_own_work() -> None:
    said = theirs(proposed_by="web", implementations=[work(), work("api")])
    assert kinds(differences(None, None, said)) == ["Proposed", "Implemented"]


def test_what_another_proposed_is_not_theirs_to_send() -> None:
    with pytest.raises(NotTheirs, match="unknown here and not yours: repo ios proposed it"):
        differences(None, None, theirs(proposed_by="ios"))


def test_content_without_canonical_form_is_refused_by_the_digest() -> None:
    with pytest.raises(InvalidInput):
        differences(None, None, theirs(proposed_by="web", content={"id": 2**53}))


# --- versions -----------------------------------------------------------------------------------


def test_a_higher_version_is_an_update_of_what_they_last_knew() -> None:
    said = theirs(version=2, content=CONTENTS[1])
    assert differences(theirs(), theirs(), said) == [
        Updated(2, CONTENTS[1], digest(CONTENTS[1]), parent=digest(CONTENTS[0]))
    ]


def test_other_content_for_our_version_is_a_race() -> None:
    ours = theirs(version=2, content=CONTENTS[1])
    said = theirs(version=2, content=CONTENTS[2])
    assert differences(ours, theirs(), said) == [
        Updated(2, CONTENTS[2], digest(CONTENTS[2]), parent=digest(CONTENTS[0]))
    ]
    assert differences(ours, None, said) == [
        Updated(2, CONTENTS[2], digest(CONTENTS[2]), parent=None)
    ]


def test_an_update_of_a_version_that_ours_has_left_does_not_descend_from_ours() -> None:
    ours = theirs(version=2, content=CONTENTS[1])
    said = theirs(version=3, content=CONTENTS[2])
    (update,) = differences(ours, theirs(), said)
    assert isinstance(update, Updated)
    assert update.parent == digest(CONTENTS[0])


def test_a_lower_version_that_was_exchanged_says_nothing() -> None:
    ours = theirs(version=2, content=CONTENTS[1])
    assert differences(ours, theirs(), theirs(status="agreed", proposed_by="web")) == []


def test_a_lower_version_of_another_repo_is_not_theirs_to_send() -> None:
    ours = theirs(version=3, content=CONTENTS[1])
    assert differences(ours, theirs(), theirs(version=2, content=CONTENTS[2])) == []


def test_a_lower_version_of_theirs_that_nobody_knew_has_lost() -> None:
    """It is kept beside those of ours; what they say of ours is said of ours."""
    ours = theirs(version=3, content=CONTENTS[1])
    said = theirs(version=2, content=CONTENTS[2], proposed_by="web", status="negotiating")
    found = differences(ours, theirs(), said)
    assert found == [
        Outrun(2, CONTENTS[2], digest(CONTENTS[2]), parent=digest(CONTENTS[0])),
    ]
    [lost] = facts_from(found, propose(API, WEB))
    assert isinstance(lost, VersionFact)
    assert (lost.version, lost.repo_id, lost.parent) == (2, "web", digest(CONTENTS[0]))


def test_a_version_that_comes_as_negotiating_was_asked_to_change() -> None:
    """Its steps until this one were not heard."""
    said = theirs(version=2, content=CONTENTS[1], status="negotiating")
    assert kinds(differences(theirs(), theirs(), said)) == ["Updated", "Responded"]
    first = theirs(proposed_by="web", status="negotiating")
    assert kinds(differences(None, None, first)) == ["Proposed", "Responded"]


def test_a_version_that_lost_a_race_says_nothing_more() -> None:
    lost = theirs(version=2, content=CONTENTS[2])
    ours = theirs(version=2, content=CONTENTS[1])
    again = theirs(version=2, content=CONTENTS[2], status="agreed")
    assert differences(ours, lost, again) == []


def test_true_is_not_one() -> None:
    ours = theirs(content={"nullable": 1})
    assert kinds(differences(ours, ours, theirs(content={"nullable": True}))) == ["Updated"]
    assert differences(ours, ours, theirs(content={"nullable": 1.0})) == []


# --- responses ----------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("before", "after", "action"),
    [
        ("proposed", "agreed", "agree"),
        ("negotiating", "agreed", "agree"),
        ("proposed", "negotiating", "request_change"),
        ("agreed", "negotiating", "request_change"),
        ("verified", "negotiating", "request_change"),
        ("negotiating", "proposed", "reject"),
        ("agreed", "proposed", "reject"),
        ("implemented", "proposed", "reject"),
        ("verified", "proposed", "reject"),
    ],
)
def test_a_change_of_status_is_a_response(before: str, after: str, action: Any) -> None:
    ours = theirs(status=before)
    assert differences(ours, ours, theirs(status=after)) == [Responded(action)]


def test_a_status_that_no_response_leads_to_is_none() -> None:
    ours = theirs(status="verified")
    assert differences(ours, ours, theirs(status="implemented")) == []


def test_a_status_that_we_have_too_is_no_word_of_theirs() -> None:
    said = theirs(status="agreed")
    assert differences(theirs(status="agreed"), theirs(), said) == []
    assert differences(theirs(status="implemented"), theirs(), said) == []


def test_what_equals_the_last_exchange_says_nothing_though_ours_has_moved_on() -> None:
    assert differences(theirs(status="negotiating"), theirs(), theirs()) == []


def test_without_an_exchange_a_version_began_as_proposed() -> None:
    assert differences(theirs(), None, theirs(status="agreed")) == [Responded("agree")]
    assert differences(theirs(status="negotiating"), None, theirs()) == []


# --- work and verification ----------------------------------------------------------------------


def test_only_the_entry_of_their_own_repo_counts() -> None:
    said = theirs(
        status="agreed",
        implementations=[work("api"), work("web", "in_progress", plan="hooks"), work("ios")],
    )
    ours = theirs(status="agreed")
    assert differences(ours, ours, said) == [
        Implemented("in_progress", "hooks", (), None, None, None, None)
    ]


def test_their_times_go_with_their_work() -> None:
    times = {"started_at": "1970-01-01T00:00:01", "completed_at": "1970-01-01T02:00:02+02:00"}
    said = theirs(status="agreed", implementations=[work(files=["a.ts"], **times)])
    (found,) = differences(theirs(status="agreed"), None, said)
    assert isinstance(found, Implemented)
    assert (found.files, found.started_at, found.completed_at) == (
        ("a.ts",),
        1_000_000,
        2_000_000,
    )


def test_restamped_work_and_empty_strings_are_no_difference() -> None:
    ours = theirs(status="agreed", implementations=[work(plan="hooks")])
    said = theirs(
        status="agreed",
        implementations=[work(plan="", notes="", files=[], completed_at=NAIVE.format(9))],
    )
    assert differences(ours, ours, said) == []


def test_what_they_leave_empty_stays() -> None:
    ours = theirs(status="agreed", implementations=[work(status="in_progress", plan="hooks")])
    said = theirs(status="agreed", implementations=[work(plan="", notes="done")])
    (found,) = differences(ours, ours, said)
    assert isinstance(found, Implemented)
    assert (found.status, found.plan, found.notes) == ("complete", "hooks", "done")


@pytest.mark.parametrize("works", [[], [work(status="pending")]])
def test_no_work_takes_nothing_back(works: list[Any]) -> None:
    ours = theirs(status="agreed", implementations=[work()])
    assert differences(ours, ours, theirs(status="agreed", implementations=works)) == []


def test_a_move_to_verified_is_a_success() -> None:
    ours = theirs(status="implemented")
    assert differences(ours, ours, theirs(status="verified")) == [Verified("success")]


@pytest.mark.parametrize("before", ["implemented", "verified"])
def test_a_move_back_to_agreed_with_work_to_revise_is_a_failure(before: str) -> None:
    ours = theirs(status=before, implementations=[work(), work("api")])
    revise = [work(status="needs_revision"), work("api", "needs_revision")]
    said = theirs(status="agreed", implementations=revise)
    assert differences(ours, ours, said) == [Verified("failure")]
    assert differences(ours, ours, theirs(status="agreed", implementations=[work()])) == []


def test_a_failure_of_what_they_took_before_we_hear_so_is_one() -> None:
    """All was built as we told them; their answer to that overtook their confirmation."""
    last = theirs(status="agreed", implementations=[work()])
    ours = theirs(status="verified", implementations=[work(), work("api")])
    revised = [work(status="needs_revision"), work("api", "needs_revision")]
    said = theirs(status="agreed", implementations=revised)
    assert kinds(differences(ours, last, said)) == ["Verified"]
    own = theirs(status="agreed", implementations=[work(status="needs_revision"), work("api")])
    assert kinds(differences(ours, last, own)) == ["Implemented"]


def test_a_success_of_before_a_failure_that_they_do_not_know_is_too_late() -> None:
    last = theirs(status="implemented", implementations=[work(), work("api")])
    revise = [work(status="needs_revision"), work("api", "needs_revision")]
    ours = theirs(status="agreed", implementations=revise)
    said = theirs(status="verified", implementations=[work(notes="green"), work("api")])
    assert differences(ours, last, said) == []


def test_a_late_joiner_that_shows_all_at_once_says_it_in_order() -> None:
    said = theirs(status="verified", implementations=[work()])
    assert kinds(differences(theirs(), theirs(), said)) == ["Responded", "Implemented", "Verified"]


# --- the exchange -------------------------------------------------------------------------------


def test_an_older_word_of_theirs_is_stale() -> None:
    newer = theirs(status="negotiating", updated_at=NAIVE.format(5))
    heard = ContractExchange().after_hearing(newer)
    assert heard.is_stale(newer)
    assert heard.is_stale(theirs(status="agreed", updated_at=NAIVE.format(4)))
    assert not heard.is_stale(theirs(status="agreed", updated_at=NAIVE.format(6)))
    assert not heard.is_stale(theirs(version=2, updated_at=NAIVE.format(4)))
    assert ContractExchange().after_hearing(theirs(version=2)).is_stale(newer)
    assert heard.after_hearing(theirs(updated_at=NAIVE.format(4))) is heard


def test_their_times_are_never_compared_with_ours() -> None:
    """Though a peer that forgets to restamp shows our time, which may be far ahead of its own."""
    ahead = "2030-01-01T00:00:00.000000+00:00"
    exchange = ContractExchange().after_sending(theirs(updated_at=ahead))
    exchange = exchange.after_hearing(theirs(status="negotiating", updated_at=ahead))
    assert exchange.heard is None
    assert not exchange.is_stale(theirs(status="agreed", updated_at=NAIVE.format(1)))


def test_an_echo_of_what_we_said_before_is_stale() -> None:
    first = theirs(status="negotiating", updated_at=NAIVE.format(1))
    second = theirs(status="agreed", updated_at=NAIVE.format(2))
    exchange = ContractExchange().after_sending(first).after_sending(second).after_sending(second)
    assert exchange.is_stale(first)
    assert exchange.is_stale(second)
    assert len(exchange.seen) == 2


def test_a_lower_version_does_not_become_the_last_exchange() -> None:
    sent = theirs(version=2, content=CONTENTS[1], updated_at=NAIVE.format(9))
    assert ContractExchange().after_sending(sent).after_hearing(theirs()).last == sent


def test_what_they_said_while_ours_was_on_its_way_stays_the_last() -> None:
    said, sent = theirs(status="negotiating"), theirs(updated_at=NAIVE.format(2))
    exchange = ContractExchange().after_hearing(said).after_crossing(sent)
    assert exchange.last == said
    assert exchange.is_stale(sent), "an echo of ours is none of their steps"


@pytest.mark.parametrize(
    ("status", "action"), [("proposed", "reject"), ("negotiating", "request_change")]
)
def test_a_step_back_from_what_is_on_its_way_is_one(status: Any, action: Any) -> None:
    """It took ours, and went back to where it was before, before we heard that it took it."""
    ours = theirs(status="agreed")
    exchange = ContractExchange().after_sending(theirs(status=status)).before_sending(ours)
    said = theirs(status=status, updated_at=NAIVE.format(9))
    assert contract_differences(ours, exchange, said, "web", digest) == [Responded(action)]
    known = exchange.after_sending(ours)
    assert known.pending is None
    other = ContractExchange().after_sending(theirs(status=status))
    assert contract_differences(ours, other, said, "web", digest) == []


def test_objects_without_times_are_told_apart_by_what_they_say() -> None:
    silent = theirs(updated_at=None)
    exchange = ContractExchange().after_sending(silent).after_hearing(silent)
    assert exchange.is_stale(silent)
    assert not exchange.is_stale(theirs(updated_at=None, status="agreed"))


def test_an_exchange_survives_as_json() -> None:
    exchange = ContractExchange().after_sending(theirs()).after_hearing(theirs(status="agreed"))
    assert ContractExchange.model_validate_json(exchange.model_dump_json()) == exchange


# --- facts --------------------------------------------------------------------------------------


def test_a_proposal_binds_the_parties_and_carries_their_work() -> None:
    said = theirs(proposed_by="web", implementations=[work(status="in_progress")])
    version, done = facts_from(differences(None, None, said), None)
    assert asdict(version) == {
        "kind": "version",
        "version": 1,
        "digest": digest(CONTENTS[0]),
        "content": CONTENTS[0],
        "repo_id": "web",
        "agent_id": WEB.agent_id,
        "parties": ("api", "web"),
        "policy": "any",
        "parent": None,
        "note": None,
        "verification": None,
        "dialect": None,
        "roles": None,
        "stamp": 500,
    }
    assert (done.kind, done.version, done.digest) == ("implementation", 1, version.digest)


def test_an_update_grows_from_the_current_version_or_beside_it() -> None:
    facts = propose(API, WEB)
    above = facts_from([Updated(2, CONTENTS[1], digest(CONTENTS[1]), "parent")], facts)
    beside = facts_from([Updated(1, CONTENTS[1], digest(CONTENTS[1]), None)], facts)
    assert [fact.parent for fact in above + beside if fact.kind == "version"] == ["parent", None]


def test_a_failure_opens_the_next_round() -> None:
    found, opened = facts_from([Verified("failure")], propose(API, WEB))
    assert found.kind == "verification"
    assert found.round == 1
    assert opened.kind == "round"
    assert opened.number == 2


def test_work_without_times_takes_our_clock() -> None:
    done = Implemented("complete", None, (), None, None, None, None)
    begun = Implemented("in_progress", None, (), None, None, None, 9)
    one, other = facts_from([done, begun], propose(API, WEB))
    assert one.kind == other.kind == "implementation"
    assert (one.started_at, one.completed_at) == (500, 500)
    assert (other.started_at, other.completed_at) == (500, None)


def test_nothing_can_be_said_of_an_unknown_contract() -> None:
    with pytest.raises(ValueError, match="begins with a Proposed"):
        facts_from([Responded("agree")], None)


# --- nothing visible is lost --------------------------------------------------------------------


@settings(max_examples=100, deadline=None)
@given(histories(1), st.sampled_from([*ACTIONS]))
def test_a_step_of_theirs_leads_us_where_it_led_them(replicas: list[Facts], action: str) -> None:
    facts = replicas[0]
    try:
        new = facts_of(facts, Step(0, WEB, action, CONTENTS[2]), 10_000)
    except Refusal:
        return
    ours, said = wire(facts), wire(join(facts, new))
    found = differences(ours, ours, said)
    after = wire(join(facts, facts_from(found, facts, 10_000)))
    assert (after.version, after.content, after.status) == (said.version, said.content, said.status)
    assert [entry for entry in after.implementations if entry.repo_id == "web"] == [
        entry for entry in said.implementations if entry.repo_id == "web"
    ]
