"""The handoff package and `acp/handoff` (acp-canonical §7.1, §7.2 rule 2, §15.2)."""

from typing import Any, get_args

import pytest

from schemas.handoff import (
    NEEDED,
    TAKEN,
    ACPHandoffPackage,
    HandoffAction,
    HandoffDraft,
    HandoffParams,
)
from tests.schemas.refusals import refusal, without
from tests.support.in_process_node import package

HANDOFF = "01a200da-b1c9-768b-93df-5ab80da21e23"
# Golden: a package as §7.1 has it, with every optional member.
GOLDEN: dict[str, Any] = {
    "protocol": "acp",
    "version": "1.0.0",
    "handoff_id": HANDOFF,
    "thread_id": "thread-1",
    "task": {
        "task_id": "task-1",
        "title": "Login",
        "objective": "Users sign in",
        "success_criteria": ["tests pass"],
        "deadline": "2026-02-21T09:30:00.000000+00:00",
        "priority": "high",
        "external_refs": [{"type": "workq_item", "value": "WQ-7"}],
    },
    "context": {
        "summary": "Half done",
        "constraints": ["no new dependency"],
        "assumptions": [],
        "open_questions": ["which key?"],
        "known_risks": [],
    },
    "work_state": {
        "status": "in_progress",
        "percent_complete": 50,
        "completed_steps": ["server"],
        "next_step": "client",
        "branch": "feature/login",
        "worktree_path": "/home/ana/login",
        "test_status": "passing",
    },
    "artifacts": [{"artifact_id": "a", "ref": {"type": "branch", "path": "feature/login"}}],
    "provenance": {
        "origin_session": "s",
        "related_sessions": [],
        "decision_refs": [],
        "message_thread_refs": [],
        "handoff_chain": ["aid://example.com/ana"],
    },
    "policy": {
        "classification": "restricted",
        "requires_human_approval": True,
        "export_restrictions": ["other.com"],
    },
    "verification": {"schema_version": "1.0.0", "package_hash": "0" * 64},
}


def test_the_golden_package_is_taken_and_comes_out_the_same() -> None:
    assert ACPHandoffPackage.model_validate(GOLDEN).model_dump(exclude_unset=True) == GOLDEN


@pytest.mark.parametrize("name", GOLDEN)
def test_every_member_is_required(name: str) -> None:
    assert refusal(ACPHandoffPackage, without(GOLDEN, name)) == (name, "Field required")


@pytest.mark.parametrize(
    ("part", "change", "place"),
    [
        ("task", {"success_criteria": []}, "task.success_criteria"),
        ("task", {"title": " "}, "task.title"),
        ("task", {"priority": "urgent"}, "task.priority"),
        ("task", {"deadline": "soon"}, "task.deadline"),
        ("task", {"owner": "me"}, "task.owner"),
        ("context", {"summary": ""}, "context.summary"),
        ("work_state", {"next_step": "\t"}, "work_state.next_step"),
        ("work_state", {"percent_complete": 101}, "work_state.percent_complete"),
        ("work_state", {"percent_complete": 100.5}, "work_state.percent_complete"),
        ("policy", {"requires_human_approval": "no"}, "policy.requires_human_approval"),
        ("policy", {"classification": "secret"}, "policy.classification"),
        ("verification", {"package_hash": "A" * 64}, "verification.package_hash"),
    ],
)
def test_a_wrong_member_is_named(part: str, change: dict[str, Any], place: str) -> None:
    where, _ = refusal(ACPHandoffPackage, GOLDEN | {part: GOLDEN[part] | change})
    assert where == place


@pytest.mark.parametrize("wrong", ["1", HANDOFF.upper(), HANDOFF.replace("-7", "-4", 1)])
def test_a_handoffs_id_is_a_uuid7(wrong: str) -> None:
    assert refusal(ACPHandoffPackage, GOLDEN | {"handoff_id": wrong})[0] == "handoff_id"


def test_an_artifact_is_there_once() -> None:
    twice = GOLDEN | {"artifacts": GOLDEN["artifacts"] * 2}
    assert "'a' occurs twice" in refusal(ACPHandoffPackage, twice)[1]


def test_a_draft_needs_nothing_that_the_node_fills_in() -> None:
    assert HandoffDraft.model_validate(package()).handoff_id is None


@pytest.mark.parametrize(
    ("ref", "said"),
    [
        ({"type": "file", "path": "notes.md"}, "absolute"),
        ({"type": "file", "path": "./notes.md"}, "absolute"),
        ({"type": "file", "path": "~/notes.md"}, "absolute"),
        ({"type": "file", "path": "C:notes.md"}, "absolute"),
        ({"type": "file", "path": "file:///notes.md"}, "absolute"),
        ({"type": "file", "path": "teamspace://core/notes.md"}, "teamspace"),
        ({"type": "url", "path": "TeamSpace://core/notes.md"}, "teamspace"),
    ],
)
def test_an_artifacts_path_is_as_the_specification_has_it(ref: dict[str, str], said: str) -> None:
    """§6: absolute paths for what is local, and no teamspace:// in v1. A package that is stored
    already is read as it is."""
    artifacts = [{"artifact_id": "a", "ref": ref}]
    where, why = refusal(HandoffDraft, package(artifacts=artifacts))
    assert where == "artifacts.0.ref"
    assert said in why
    assert ACPHandoffPackage.model_validate(GOLDEN | {"artifacts": artifacts})


@pytest.mark.parametrize(
    "path", ["/srv/notes.md", "C:\\notes.md", "c:/notes.md", "\\\\host\\notes"]
)
def test_absolute_paths_are_those_of_any_system(path: str) -> None:
    artifacts = [{"artifact_id": "a", "ref": {"type": "file", "path": path}}]
    assert HandoffDraft.model_validate(package(artifacts=artifacts))


@pytest.mark.parametrize("action", get_args(HandoffAction))
def test_an_action_says_what_it_needs_and_takes(action: HandoffAction) -> None:
    if NEEDED[action]:
        _, said = refusal(HandoffParams, {"action": action})
        assert said.endswith(f" required for action '{action}'")
        assert ", ".join(NEEDED[action]) in said
    assert not set(NEEDED[action]) & set(TAKEN[action])
    given: dict[str, Any] = {
        "handoff_id": HANDOFF,
        "to": "a",
        "reason": "r",
        "package": package(),
        "code": "other",
        "detail": "d",
        "summary": "s",
    }
    taken = {name: value for name, value in given.items() if name in NEEDED[action]}
    assert HandoffParams.model_validate({"action": action, **taken}).action == action
    _, said = refusal(
        HandoffParams,
        {"action": action, **taken, "session_key": "s"}
        if action != "accept"
        else {"action": action, **taken, "reason": "r"},
    )
    assert f"action '{action}' does not accept" in said


def test_the_sender_is_not_the_callers_to_say() -> None:
    """§12.1."""
    _, said = refusal(HandoffParams, {"action": "list", "from": "aid://example.com/ben"})
    assert "from must be omitted" in said
