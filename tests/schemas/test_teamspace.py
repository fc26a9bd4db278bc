"""The teamspace manifest and `acp/team` (acp-canonical §8, §15.2)."""

from typing import Any, get_args

import pytest

from schemas.teamspace import NEEDED, TAKEN, TeamAction, TeamParams, TeamspaceManifest
from tests.schemas.refusals import refusal, without

GOLDEN: dict[str, Any] = {
    "protocol": "acp",
    "version": "1.0.0",
    "teamspace_id": "core",
    "name": "Core",
    "purpose": "The core",
    "status": "closed",
    "created_by": "aid://example.com/ana",
    "created_at": "2026-02-21T09:30:00.000000+00:00",
    "closed_at": "2026-02-22T09:30:00.000000+00:00",
    "members": [{"agent_id": "aid://example.com/ana", "role": "coordinator"}],
}


def test_the_golden_manifest_is_taken_and_comes_out_the_same() -> None:
    assert TeamspaceManifest.model_validate(GOLDEN).model_dump() == GOLDEN


@pytest.mark.parametrize("name", sorted(set(GOLDEN) - {"closed_at"}))
def test_every_other_member_is_required(name: str) -> None:
    assert refusal(TeamspaceManifest, without(GOLDEN, name)) == (name, "Field required")


def test_a_teamspace_has_a_coordinator() -> None:
    given = GOLDEN | {"members": [{"agent_id": "a", "role": "executor"}]}
    assert "one coordinator" in refusal(TeamspaceManifest, given)[1]


@pytest.mark.parametrize("team", ["", "../etc", "Core", "a/b", "-a", "a" * 65, "a\n"])
def test_a_teamspaces_id_is_a_plain_folders_name(team: str) -> None:
    assert refusal(TeamspaceManifest, GOLDEN | {"teamspace_id": team})[0] == "teamspace_id"


def test_there_are_no_other_roles() -> None:
    given = GOLDEN | {"members": [{"agent_id": "a", "role": "boss"}]}
    assert refusal(TeamspaceManifest, given)[0] == "members.0.role"


@pytest.mark.parametrize("action", get_args(TeamAction))
def test_an_action_says_what_it_needs(action: TeamAction) -> None:
    if NEEDED[action]:
        _, said = refusal(TeamParams, {"action": action})
        assert said.endswith(f" required for action '{action}'")
        assert ", ".join(NEEDED[action]) in said
    assert not set(NEEDED[action]) & set(TAKEN[action])
