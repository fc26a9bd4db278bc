"""The checks of `validating`, and who coordinates (acp-canonical §7.2 rule 4)."""

from dataclasses import replace
from functools import partial
from typing import Any

import orjson
import pytest

from schemas.handoff import HandoffParams
from server.auth.authenticator import Caller
from server.domain.acp.rules import MailRules
from server.domain.errors import NotFound
from server.methods.base import Context
from server.methods.handoff.transitions import case_of, roles_of, told_when_overdue, waits_for
from server.methods.handoff.view import visible
from tests.support.in_process_node import ANA, BEN, CLEO, InProcessNode, package
from tests.support.node import AGENT


@pytest.mark.parametrize(
    ("change", "code"),
    [
        ({"title": "Something else"}, "hash_mismatch"),
        ({"priority": "urgent"}, "schema_invalid"),
    ],
)
def test_a_package_that_was_changed_is_not_accepted(
    desk: InProcessNode, change: dict[str, str], code: str
) -> None:
    handoff_id = desk.offered()
    ((text,),) = desk.rows("SELECT package_json FROM handoffs")
    whole = orjson.loads(text)
    whole["task"] |= change
    desk.db.execute("UPDATE handoffs SET package_json = ?", (orjson.dumps(whole).decode(),))
    shown = desk.handoff(BEN, "accept", handoff_id=handoff_id)["handoff"]
    assert shown["status"] == "rejected"
    assert shown["resolutionNotes"].startswith(f"{code}: ")
    for agent in (ANA, BEN):
        type, payload = desk.mail(agent)[-1]
        assert (type, payload["reason"]) == ("handoff.reject", code)


def test_without_roots_files_are_unchecked_and_say_so(desk: InProcessNode) -> None:
    ref = {"type": "file", "path": "/x", "sha256": "0" * 64}
    artifacts = [{"artifact_id": "a", "ref": ref}]
    handoff_id = desk.accepted(package=package(artifacts=artifacts))
    (found,) = desk.handoff(BEN, "get", handoff_id=handoff_id)["artifacts"]
    assert found["outcome"] == "unchecked"
    assert "CACP_ARTIFACT_ROOTS" in found["detail"]


@pytest.mark.parametrize("more", [{"sha256": "0" * 64}, {"required": True}])
def test_with_roots_it_waits_for_the_check(desk: InProcessNode, more: dict[str, Any]) -> None:
    desk.node = replace(desk.node, handoffs=replace(desk.node.handoffs, checks_files=True))
    ref = {"type": "file", "path": "/x", **more}
    waiting = desk.accepted(package=package(artifacts=[{"artifact_id": "a", "ref": ref}]))
    case = desk.run(lambda ctx: case_of(ctx, waiting))
    assert (case.status, waits_for(case.handoff)) == ("validating", ["artifacts"])


def test_who_is_told_when_it_is_overdue(desk: InProcessNode) -> None:
    handoff_id = desk.offered()
    own = AGENT.removesuffix("@1.0.0")

    def told(ctx: Context) -> tuple[str, ...]:
        return told_when_overdue(ctx, case_of(ctx, handoff_id))

    assert desk.run(told) == (own,)
    desk.node = replace(desk.node, acp=MailRules(limits={}, coordinators=frozenset({CLEO})))
    assert desk.run(told) == (CLEO,)


def test_who_coordinates(desk: InProcessNode) -> None:
    """The operator, and whom the settings name; a place is no credential."""
    handoff_id = desk.offered()

    def roles(caller: Caller) -> tuple[str, ...]:
        answer: tuple[str, ...] = desk.run(
            lambda ctx: roles_of(ctx, case_of(ctx, handoff_id)), caller
        )
        return answer

    keyless = Caller(AGENT, "r", "verified", "local")
    keyed = replace(keyless, via="key")
    assert roles(keyless) == roles(keyed) == roles(Caller(CLEO, "r", "verified", "key")) == ()
    assert roles(replace(keyed, operator=True)) == ("coordinator",)
    named = frozenset({AGENT.removesuffix("@1.0.0"), CLEO})
    desk.node = replace(desk.node, acp=MailRules(limits={}, coordinators=named))
    assert roles(keyless) == ()
    assert roles(keyed) == roles(Caller(CLEO, "r", "verified", "key")) == ("coordinator",)


def test_a_caller_without_a_key_is_told_which_one_it_needs(desk: InProcessNode) -> None:
    """The same whether there is such a handoff or not."""
    keyless = Caller(AGENT, "r", "verified", "local")
    texts = []
    for handoff_id in (desk.offered(), "019a200d-0000-7000-8000-000000000000"):
        params = HandoffParams(action="get", handoff_id=handoff_id)
        with pytest.raises(NotFound, match="the operator's key") as refusal:
            desk.run(partial(visible, params=params), keyless)
        texts.append(refusal.value.message.replace(handoff_id, "ID"))
    assert texts[0] == texts[1]


@pytest.mark.parametrize(("workq", "status"), [(False, "manual"), (True, "pending")])
def test_workq_is_told_or_left_to_people(desk: InProcessNode, workq: bool, status: str) -> None:
    """§10.4."""
    desk.node = replace(desk.node, handoffs=replace(desk.node.handoffs, workq=workq))
    refs = [{"type": "workq_item", "value": "WQ-7"}]
    handoff_id = desk.accepted(package=package(task={"external_refs": refs}))
    assert desk.handoff(BEN, "get", handoff_id=handoff_id)["handoff"]["workq"] == status
    rows = desk.rows("SELECT method, agent_id, status FROM workq_intents ORDER BY seq")
    assert rows == [("workq.release", ANA, status), ("workq.claim", BEN, status)]


def test_a_revocation_moves_workqs_items_back(desk: InProcessNode) -> None:
    """§10.4: after what is still to be moved the other way."""
    desk.node = replace(desk.node, handoffs=replace(desk.node.handoffs, workq=True))
    refs = [{"type": "workq_item", "value": "WQ-7"}]
    handoff_id = desk.accepted(package=package(task={"external_refs": refs}))
    own = AGENT.removesuffix("@1.0.0")
    desk.handoff(own, "revoke", operator=True, handoff_id=handoff_id, detail="back")
    rows = desk.rows("SELECT method, agent_id, session_key FROM workq_intents ORDER BY seq")
    assert rows == [
        ("workq.release", ANA, "session-1"),
        ("workq.claim", BEN, None),
        ("workq.release", BEN, None),
        ("workq.claim", ANA, "session-1"),
    ]
    assert desk.handoff(ANA, "get", handoff_id=handoff_id)["handoff"]["workq"] == "pending"
