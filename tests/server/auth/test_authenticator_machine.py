"""Which callers are on the node's machine: by default, only their sessions are shown what waits."""

from collections.abc import Iterator
from contextlib import closing
from pathlib import Path

import pytest

from tests.server.auth.test_authenticator import HOST, Node
from tests.support.located import connect, prepare


@pytest.fixture
def running(tmp_path: Path) -> Iterator[Node]:
    prepare(tmp_path / "cacp.db")
    with closing(connect(tmp_path / "cacp.db")) as db:
        yield Node(db)


@pytest.mark.parametrize(
    ("headers", "client", "near"),
    [
        ({}, "127.0.0.1", True),
        ({b"host": b"[::1]:8080"}, "::1", True),
        ({}, "192.0.2.1", False),
        ({}, None, False),
        ({b"host": b"node.example"}, "127.0.0.1", False),
        ({b"x-forwarded-for": b"192.0.2.1"}, "127.0.0.1", False),
        ({b"via": b"1.1 proxy"}, "127.0.0.1", False),
    ],
)
def test_who_calls_over_loopback_and_through_no_proxy_is_on_this_machine(
    running: Node, headers: dict[bytes, bytes], client: str | None, near: bool
) -> None:
    """Whatever the node listens on."""
    given = HOST | {b"authorization": running.key()} | headers
    assert running.identify(given, client, host="0.0.0.0").on_this_machine is near
