"""What peers of any kind may send (CACP 2.0, Sync Methods; design §7)."""

from typing import Any

import pytest

from schemas.sync import (
    AnnounceParams,
    ContextSyncParams,
    ContractSyncParams,
    PeerContract,
    PeerProject,
    PeerRepo,
    ProjectSyncParams,
    RepoSyncParams,
    SyncResult,
)
from tests.schemas.refusals import refusal, without

AGENT = {"source_agent": "aid://example.com/backend@1.0.0"}
CONTRACT: dict[str, Any] = {
    "contract_id": "c1",
    "type": "api_endpoint",
    "name": "Get User Profile",
    "version": 1,
    "status": "proposed",
    "content": {},
    "proposed_by": "r1",
    "implementations": [
        {"repo_id": "r1", "status": "complete", "completed_at": "2026-02-21T09:30"}
    ],
    "history": [],
    "updated_at": "2026-02-21T09:30:00.123",
}
REPO = {"repo_id": "r1", "name": "api", "assigned_agent": "aid://example.com/api@1.0.0"}
PROJECT: dict[str, Any] = {
    "project_id": "p",
    "name": "User Auth",
    "repos": [REPO],
    "contracts": [CONTRACT],
}
PACKET: dict[str, Any] = {
    "packet_id": "k1",
    "from_repo": "r1",
    "from_agent": "a",
    "timestamp": "2026-02-21T09:30:00",
    "type": "question",
    "content": {},
}


def test_source_agent_is_spelled_as_the_spec_does() -> None:
    sent = AGENT | {"projectId": "p", "contract": CONTRACT}
    assert ContractSyncParams.model_validate(sent).source_agent == AGENT["source_agent"]
    assert ProjectSyncParams.model_validate(AGENT | {"project": PROJECT}).project.name
    packet = ContextSyncParams.model_validate(AGENT | {"projectId": "p", "packet": PACKET})
    assert packet.packet.related_contracts is None
    assert refusal(ProjectSyncParams, {"project": PROJECT}) == ("source_agent", "Field required")


def test_unknown_members_are_ignored() -> None:
    sent = AGENT | {"projectId": "p", "repo": REPO | {"stars": 5}, "hops": 1}
    assert "stars" not in RepoSyncParams.model_validate(sent).repo.model_dump()


@pytest.mark.parametrize("name", ["agent_id", "assigned_agent"])
def test_a_repos_agent_has_two_names(name: str) -> None:
    repo = without(REPO, "assigned_agent") | {name: "aid://example.com/api@1.0.0"}
    assert PeerRepo.model_validate(repo).agent_id == "aid://example.com/api@1.0.0"


def test_what_other_makes_leave_out_has_defaults() -> None:
    project = PeerProject.model_validate({"project_id": "p", "name": "User Auth"})
    assert (project.objective, project.status, project.repos) == ("", "planning", [])


@pytest.mark.parametrize(
    ("sent", "where"),
    [
        (CONTRACT | {"version": 0}, "version"),
        (CONTRACT | {"status": "draft"}, "status"),
        (CONTRACT | {"updated_at": "now"}, "updated_at"),
        (CONTRACT | {"implementations": [{"repo_id": "r1"}]}, "implementations.0.status"),
        (without(CONTRACT, "content"), "content"),
    ],
)
def test_a_contract_is_refused_where_it_is_wrong(sent: dict[str, Any], where: str) -> None:
    assert refusal(PeerContract, sent)[0] == where


def test_an_announcement_is_camel_case() -> None:
    sent = {"agentId": "a", "endpoint": "http://api:8080", "repoName": "api", "mood": "good"}
    assert AnnounceParams.model_validate(sent).repo_name == "api"


def test_a_sync_that_changed_nothing_says_why() -> None:
    assert refusal(SyncResult, {"status": "ignored"})[0] == "status"
    assert SyncResult(status="skipped", reason="nothing new").reason == "nothing new"
