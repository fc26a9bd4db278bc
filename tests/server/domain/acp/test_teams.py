"""Who may do what in a teamspace: every cell of the table (acp-canonical §8.4)."""

import pytest

from schemas.teamspace import TeamRole
from server.domain.acp import teams
from server.domain.acp.teams import MATRIX, ROLES, Authority
from server.domain.errors import Conflict, Forbidden, InvalidInput
from tests.support.in_process_node import ANA, BEN, CLEO

# The table of the specification, as it stands there.
SPECIFIED = """
| Action | coordinator | researcher | executor | reviewer | integrator |
|---|---:|---:|---:|---:|---:|
| Create task | ✅ | ❌ | ❌ | ❌ | ❌ |
| Assign/reassign owner | ✅ | ❌ | ❌ | ❌ | ✅ (merge tasks only) |
| Approve handoff into team scope | ✅ | ❌ | ❌ | ✅ (guarded classes) | ✅ |
| Accept execution task | ❌ | ❌ | ✅ | ❌ | ✅ |
| Mark high-risk closure complete | ✅ | ❌ | ❌ | ✅ | ✅ |
| Block work with reason code | ✅ | ❌ | ❌ | ✅ | ✅ |
| Add/remove team members | ✅ | ❌ | ❌ | ❌ | ❌ |
| Close/archive teamspace | ✅ | ❌ | ❌ | ❌ | ❌ |
"""


def cells() -> list[tuple[str, TeamRole, str]]:
    _, head, _, *lines = SPECIFIED.split("\n")
    assert tuple(name.strip() for name in head.split("|")[2:-1]) == ROLES
    rows = ([cell.strip() for cell in line.split("|")[1:-1]] for line in lines if line)
    return [
        (action, role, cell) for action, *row in rows for role, cell in zip(ROLES, row, strict=True)
    ]


def authority_of(action: str) -> Authority:
    return next(name for name, (shown, _) in MATRIX.items() if shown == action)


@pytest.mark.parametrize(("action", "role", "cell"), cells())
def test_every_cell(action: str, role: TeamRole, cell: str) -> None:
    authority = authority_of(action)
    merge_only, guarded_only = "merge tasks" in cell, "guarded" in cell
    plain = cell.startswith("✅") and not merge_only and not guarded_only
    assert teams.may(authority, role) == plain
    assert teams.may(authority, role, kind="merge") == (plain or merge_only)
    assert teams.may(authority, role, guarded=True) == (plain or guarded_only)


def test_the_table_has_no_row_beside_those() -> None:
    assert len(cells()) == len(MATRIX) * len(ROLES) == 40


@pytest.mark.parametrize("authority", MATRIX)
def test_who_is_no_member_may_nothing(authority: Authority) -> None:
    assert not teams.may(authority, None, kind="merge", guarded=True)


def test_a_refusal_names_who_may() -> None:
    with pytest.raises(Forbidden) as error:
        teams.check("assign_owner", "executor", kind="merge")
    assert error.value.data == {
        "reason": "role_authority",
        "authority": "assign_owner",
        "role": "executor",
        "needs": ["coordinator", "integrator"],
    }
    teams.check("assign_owner", "integrator", kind="merge")


def test_a_member_keeps_its_role_in_every_version() -> None:
    members: dict[str, TeamRole] = {ANA: "coordinator", BEN: "executor"}
    assert teams.role_of(members, f"{BEN}@7.0.0") == "executor"
    assert teams.role_of(members, CLEO) is None
    assert teams.coordinators(members) == (ANA,)


def test_a_teamspace_keeps_a_coordinator() -> None:
    teams.check_still_coordinated(["executor", "coordinator"])
    with pytest.raises(Conflict) as error:
        teams.check_still_coordinated(["executor"])
    assert error.value.data["reason"] == "last_coordinator"


def test_who_left_a_teamspace_is_not_reached() -> None:
    members = ("a", "b")
    assert teams.may_reach(members, "a", "b")
    assert not teams.may_reach(members, "a", "c")
    assert not teams.may_reach(members, "c", "b")
    assert not teams.may_reach(None, "a", "b"), "it was closed"


def test_what_is_for_a_teamspace_stays_among_its_members() -> None:
    """§12.3."""
    members = {"a": "coordinator", "b": "executor"}
    teams.check_audience("core", members, "a", ["b", "a"])
    for given, sender, to, reason in (
        (None, "a", ["b"], "unknown_team"),
        (members, "c", ["b"], "not_in_team"),
        (members, "a", ["*"], "policy_violation"),
        (members, "a", ["b", "c", "d"], "not_in_team"),
    ):
        with pytest.raises((InvalidInput, Forbidden)) as refused:
            teams.check_audience("core", given, sender, to)
        assert refused.value.data["reason"] == reason
    assert refused.value.data["strangers"] == ["c", "d"]
