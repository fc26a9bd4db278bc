"""What a call's error says to who handles it."""

import pytest

from peers.errors import CallError, NotConnected, PeerRefused, PeerUnreachable


@pytest.mark.parametrize(
    ("data", "seconds"),
    [
        ({"retryAfter": 7}, 7.0),
        ({"retryAfter": 3_600}, 60.0),
        ({"retryAfter": -1}, 0.0),
        ({"retryAfter": "soon"}, 0.0),
        ("busy", 0.0),
        (None, 0.0),
    ],
)
def test_a_peer_is_left_alone_for_as_long_as_it_asks_up_to_a_minute(
    data: object, seconds: float
) -> None:
    refused = PeerRefused("is busy", status=429, data=data)
    assert refused.retry_after == seconds
    assert refused.data == (data if isinstance(data, dict) else {})


def test_one_who_was_never_reached_was_sent_nothing() -> None:
    assert issubclass(NotConnected, PeerUnreachable)
    assert issubclass(PeerUnreachable, CallError)
    assert not issubclass(PeerRefused, PeerUnreachable)
