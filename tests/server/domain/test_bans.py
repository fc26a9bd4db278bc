"""Whose word it takes that somebody is banned (docs/mesh-trust.md)."""

import pytest

from server.domain.bans import BanStatement, TrustedBans, deciding

OWN, ANN, MAL = "aid://x/own", "aid://x/ann", "aid://x/mal"
HEEDS = TrustedBans.of(f"{OWN}@1.0.0", [f"{ANN}@2.0.0"])


def said(by: str, *, banned: bool = True, agent: str = MAL, stamp: int = 1) -> BanStatement:
    return BanStatement(by, agent, "key", banned, stamp, "")


def test_ids_are_taken_without_their_versions() -> None:
    assert TrustedBans(OWN, frozenset({ANN})) == HEEDS
    assert TrustedBans.of(OWN, [f"{OWN}@2.0.0"]).others == frozenset()


@pytest.mark.parametrize(
    ("statements", "decides"),
    [
        ([], None),
        ([said(OWN)], OWN),
        ([said(ANN)], ANN),
        ([said(ANN, banned=False)], None),
        ([said("aid://x/hostile")], None),
        ([said("aid://x/hostile"), said(ANN)], ANN),
    ],
)
def test_own_bans_and_those_of_named_nodes_hold(
    statements: list[BanStatement], decides: str | None
) -> None:
    """One hostile member must not be able to ban everybody."""
    found = deciding(statements, HEEDS)
    assert (found and found.by_node) == decides


def test_what_this_node_says_decides() -> None:
    """Whatever others say, now or later."""
    lifted = said(OWN, banned=False)
    assert deciding([said(ANN, stamp=9), lifted], HEEDS) is None
    assert deciding([said(ANN, banned=False, stamp=9), said(OWN)], HEEDS) == said(OWN)


def test_a_lifted_ban_of_a_name_leaves_that_of_its_key() -> None:
    other = said(OWN, agent="aid://x/other")
    assert deciding([said(OWN, banned=False), other], HEEDS) == other


def test_nobody_bans_the_node_itself_and_who_is_banned_here_bans_nobody() -> None:
    assert deciding([said(ANN, agent=OWN)], HEEDS) is None
    assert deciding([said(ANN)], HEEDS, banned_here=[ANN]) is None


def test_the_first_of_several_bans_is_when_it_began() -> None:
    trusted_bans = TrustedBans.of(OWN, [ANN, "aid://x/bob"])
    found = deciding([said(ANN, stamp=5), said("aid://x/bob", stamp=3)], trusted_bans)
    assert found is not None
    assert found.stamp == 3
