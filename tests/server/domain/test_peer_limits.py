"""One member must not fill every place (docs/mesh-trust.md)."""

import pytest

from server.domain.errors import Forbidden
from server.domain.peer_limits import PEER_LIMITS, PEERS_MAX, JoinMethod, check_peer_limit


@pytest.mark.parametrize(
    ("taken", "way", "limit"),
    [
        ({}, "token", None),
        ({"token": PEER_LIMITS["token"] - 1}, "token", None),
        ({"token": PEER_LIMITS["token"]}, "token", "token"),
        ({"token": PEER_LIMITS["token"]}, "invite", None),
        ({"token": PEER_LIMITS["token"], "invite": PEER_LIMITS["invite"]}, "invite", "invite"),
        ({"token": PEER_LIMITS["token"], "invite": PEER_LIMITS["invite"]}, "operator", None),
        ({"operator": PEERS_MAX}, "token", "operator"),
        ({"token": 60, "operator": 40}, "operator", "operator"),
    ],
)
def test_each_way_has_its_places(
    taken: dict[str, int], way: JoinMethod, limit: JoinMethod | None
) -> None:
    if limit is None:
        return check_peer_limit(taken, way)
    with pytest.raises(Forbidden) as refusal:
        check_peer_limit(taken, way)
    assert refusal.value.data == {
        "reason": "peer_limit",
        "limit": PEER_LIMITS[limit],
        "cameBy": limit,
    }
    words = {"token": "by the mesh token", "invite": "joined by invite", "operator": "peers. An"}
    assert words[limit] in refusal.value.message
    return None


def test_operators_have_places_of_their_own() -> None:
    assert PEER_LIMITS["token"] + PEER_LIMITS["invite"] < PEERS_MAX
