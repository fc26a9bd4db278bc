"""One member must not fill every place (docs/mesh-trust.md)."""

import pytest

from server.domain.errors import Forbidden
from server.domain.places import PEERS_MAX, PLACES, Way, check_place


@pytest.mark.parametrize(
    ("taken", "way", "limit"),
    [
        ({}, "token", None),
        ({"token": PLACES["token"] - 1}, "token", None),
        ({"token": PLACES["token"]}, "token", "token"),
        ({"token": PLACES["token"]}, "invite", None),
        ({"token": PLACES["token"], "invite": PLACES["invite"]}, "invite", "invite"),
        ({"token": PLACES["token"], "invite": PLACES["invite"]}, "operator", None),
        ({"operator": PEERS_MAX}, "token", "operator"),
        ({"token": 60, "operator": 40}, "operator", "operator"),
    ],
)
def test_each_way_has_its_places(taken: dict[str, int], way: Way, limit: Way | None) -> None:
    if limit is None:
        return check_place(taken, way)
    with pytest.raises(Forbidden) as refusal:
        check_place(taken, way)
    assert refusal.value.data == {"reason": "peer_limit", "limit": PLACES[limit], "cameBy": limit}
    words = {"token": "by the mesh token", "invite": "by invites", "operator": "in all"}
    assert words[limit] in refusal.value.message
    return None


def test_operators_have_places_of_their_own() -> None:
    assert PLACES["token"] + PLACES["invite"] < PEERS_MAX
