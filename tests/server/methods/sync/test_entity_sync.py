"""What every cacp/*/sync call is held to."""

from typing import Any

import pytest

from tests.server.methods.refusals import refused
from tests.server.methods.sync.foreign_peer import (
    MOBILE,
    key,
    mesh,
    packet_of,
    project_of,
    send,
    shared,
)
from tests.support.node import Node
from tests.support.team import Team

__all__ = ["key", "mesh", "shared"]


def test_unknown_members_are_ignored(shared: Team) -> None:
    """Design §5: other unknown params are ignored in */sync."""
    packet = packet_of(from_repo=shared.repo_id(MOBILE), mood="good")
    result = send(
        shared.node, "context/sync", projectId=shared.project, packet=packet, hops=3, trace=None
    )
    assert result["status"] == "created"


@pytest.mark.parametrize(
    "wrong",
    [
        {"project_id": ""},
        {"status": "done"},
        {"created_at": "yesterday"},
        {"contracts": [{"contract_id": "x"}]},
        {"repos": "none"},
    ],
)
def test_what_does_not_parse_is_refused_and_changes_nothing(
    mesh: Node, wrong: dict[str, Any]
) -> None:
    before = mesh.query("SELECT count(*) FROM changes")
    with refused(-32602, "invalid_params"):
        send(mesh, "project/sync", project=project_of() | wrong)
    assert mesh.query("SELECT count(*) FROM changes") == before


def test_null_means_absent_in_what_peers_send(mesh: Node) -> None:
    """Design §5: null means absent."""
    nulls = dict.fromkeys(["objective", "contracts", "context_history", "created_at", "updated_at"])
    assert send(mesh, "project/sync", project=project_of() | nulls)["status"] == "created"
