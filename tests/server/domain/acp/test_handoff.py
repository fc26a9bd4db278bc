"""The handoff's state machine, ownership and checks (acp-canonical §7.2)."""

from itertools import product
from typing import get_args

import pytest
from hypothesis import given
from hypothesis import strategies as st

from schemas.handoff import HandoffPolicy, HandoffStatus
from server.domain.acp import handoff
from server.domain.acp.handoff import ACTIVE, MOVES, Ownership, OwnershipGrant, Parties, Role, Step
from server.domain.errors import Conflict, Forbidden, IllegalTransition, InvalidInput
from tests.support.in_process_node import ANA, BEN, CLEO, DORA, package

STATUSES: tuple[HandoffStatus, ...] = get_args(HandoffStatus)
STEPS: tuple[Step, ...] = get_args(Step)
ROLES: tuple[Role, ...] = get_args(Role)


def test_the_specified_path_is_there() -> None:
    """§7.2: draft → proposed → validating → accepted|rejected → activated → completed → closed."""
    steps: list[tuple[Step, Role]] = [
        ("propose", "sender"),
        ("accept", "receiver"),
        ("pass", "node"),
        ("activate", "receiver"),
        ("complete", "receiver"),
        ("close", "sender"),
    ]
    status: HandoffStatus = "draft"
    path = [status]
    for step, role in steps:
        status, taken = handoff.move(status, step, (role,))
        assert taken == role
        path.append(status)
    assert path == [one for one in STATUSES if one != "rejected"]
    assert handoff.move("validating", "fail", ("node",)) == ("rejected", "node")


@pytest.mark.parametrize("status", STATUSES)
def test_every_other_step_is_refused(status: HandoffStatus) -> None:
    for step, role in product(STEPS, ROLES):
        found = [one for one in MOVES if (one.before, one.step) == (status, step)]
        if found and role in found[0].by:
            assert handoff.move(status, step, (role,)) == (found[0].after, role)
            continue
        ever = {one for move in MOVES if move.step == step for one in move.by}
        expected = IllegalTransition if role in ever and not found else Forbidden
        with pytest.raises(expected):
            handoff.move(status, step, (role,))


def test_a_refusal_says_what_is_allowed() -> None:
    with pytest.raises(IllegalTransition) as error:
        handoff.move("proposed", "complete", ("receiver",))
    assert error.value.data == {
        "reason": "illegal_transition",
        "from": "proposed",
        "allowed": ["accept", "reject"],
    }
    with pytest.raises(Forbidden) as forbidden:
        handoff.move("proposed", "accept", ("sender",))
    assert forbidden.value.data["needs"] == ["receiver"]


def test_rejected_is_final() -> None:
    assert [one for one in MOVES if one.before == "rejected"] == []


def test_a_step_has_one_outcome() -> None:
    keys = [(one.before, one.step) for one in MOVES]
    assert len(keys) == len(set(keys))


def test_roles_are_those_of_the_agent_in_any_version() -> None:
    parties = Parties(ANA, BEN, (CLEO,))
    assert parties.roles_of(f"{ANA}@1.0.0") == ("sender",)
    assert parties.roles_of(f"{BEN}@2.0.0") == ("receiver",)
    assert parties.roles_of(CLEO) == ("coordinator",)
    assert parties.roles_of(DORA) == ()
    assert Parties(ANA, BEN, (ANA,)).roles_of(ANA) == ("sender", "coordinator")


def test_may_do() -> None:
    assert handoff.may_do("proposed", ("sender",)) == ["reject"]
    assert handoff.may_do("activated", ("receiver",)) == ["complete", "hand_on"]
    assert handoff.may_do("rejected", ROLES) == []


# --- ownership ----------------------------------------------------------------------------------


def test_a_task_that_nobody_owns_is_for_anyone_to_hand_on() -> None:
    assert handoff.chain_for(None, ANA, BEN) == (ANA,)


def test_only_the_owner_hands_on() -> None:
    """§7.2 rule 3."""
    owned = Ownership((ANA, BEN))
    assert owned.owner == BEN
    assert handoff.chain_for(owned, BEN, CLEO) == (ANA, BEN)
    with pytest.raises(Conflict) as error:
        handoff.chain_for(owned, ANA, CLEO)
    assert (error.value.data["reason"], error.value.data["owner"]) == ("ownership_conflict", BEN)


GRANTS = st.builds(
    OwnershipGrant,
    st.lists(st.sampled_from([ANA, BEN, CLEO, DORA]), min_size=1, max_size=4).map(tuple),
    st.sampled_from([None, "close", "revoke"]),
)


@given(st.lists(GRANTS))
def test_what_was_revoked_is_as_if_it_had_not_been_granted(grants: list[OwnershipGrant]) -> None:
    kept = [one for one in grants if one.ended != "revoke"]
    assert handoff.owner(grants) == handoff.owner(kept)


@given(st.lists(GRANTS), GRANTS)
def test_the_newest_grant_decides(before: list[OwnershipGrant], newest: OwnershipGrant) -> None:
    """What was closed is done: nobody has it, whoever had it before."""
    found = handoff.owner([newest, *before])
    if newest.ended is None:
        assert found == Ownership(newest.chain)
    elif newest.ended == "close":
        assert found is None


def test_a_task_that_was_never_granted_is_free() -> None:
    """No active handoff and nobody accepted: anyone may initiate."""
    assert handoff.owner([]) is None


def test_no_one_gets_a_task_twice() -> None:
    """§7.2 rule 6."""
    for receiver in (ANA, f"{ANA}@9.0.0", BEN):
        with pytest.raises(Conflict) as error:
            handoff.chain_for(Ownership((ANA, BEN)), BEN, receiver)
        assert error.value.data["reason"] == "handoff_cycle"
        assert error.value.data["chain"] == [ANA, BEN]


@given(st.lists(st.sampled_from([ANA, BEN, CLEO, DORA]), max_size=12))
def test_a_chain_never_names_an_agent_twice(receivers: list[str]) -> None:
    owned: Ownership | None = None
    for receiver in receivers:
        sender = owned.owner if owned else ANA
        try:
            chain = handoff.chain_for(owned, sender, receiver)
        except Conflict:
            continue
        owned = handoff.owner([OwnershipGrant((*chain, receiver))])
        assert owned is not None
        assert len(set(owned.chain)) == len(owned.chain)


# --- the checks ---------------------------------------------------------------------------------


def test_the_hash_covers_all_but_itself() -> None:
    whole = package() | {"verification": {"schema_version": "1.0.0", "package_hash": "0" * 64}}
    hash = handoff.package_hash(whole)
    other = whole | {"verification": {"schema_version": "1.0.0", "package_hash": "1" * 64}}
    assert handoff.package_hash(other) == hash
    assert handoff.package_hash(dict(reversed(whole.items()))) == hash
    assert handoff.package_hash(whole | {"context": {"summary": "Other"}}) != hash


def test_the_hash_of_a_package_is_this_one() -> None:
    """Golden: another implementation of RFC 8785 and SHA-256 gets the same."""
    import hashlib

    import rfc8785

    whole = package(context={"summary": "Grüße \u20ac 😀"})
    whole["verification"] = {"schema_version": "1.0.0"}
    assert handoff.package_hash(whole) == hashlib.sha256(rfc8785.dumps(whole)).hexdigest()


def test_what_has_no_canonical_form_is_refused() -> None:
    with pytest.raises(InvalidInput) as error:
        handoff.package_hash({"task": {"n": 2**60}})
    assert error.value.data["path"] == "package.task.n"


@pytest.mark.parametrize(
    ("restrictions", "allowed"),
    [
        (None, True),
        ([], True),
        ([BEN], False),
        ([f"{BEN}@3.0.0"], False),
        (["example.com"], False),
        ([" Example.COM."], False),
        ([BEN.upper()], False),
        (["other.com", ANA], True),
    ],
)
def test_export_restrictions(restrictions: list[str] | None, allowed: bool) -> None:
    policy = HandoffPolicy(
        classification="internal", requires_human_approval=False, export_restrictions=restrictions
    )
    problem = handoff.policy_problem(policy, BEN)
    assert (problem is None) == allowed
    assert problem is None or problem.code == "policy_violation"


def test_domain_of() -> None:
    assert handoff.domain_of("aid://Example.com/ben@1") == "example.com"
    assert handoff.domain_of("ben") is None


def test_the_timer_runs_from_acceptance() -> None:
    """§7.2 rule 5: 24 h by default."""
    assert handoff.due(5, handoff.HandoffRules().sla_seconds) == 5 + 24 * 3600 * 1_000_000


def test_active_states_are_those_of_the_index() -> None:
    assert ACTIVE == ("proposed", "validating", "accepted", "activated")
