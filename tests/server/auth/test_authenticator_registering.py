"""Who may register itself by its name alone (CACP 2.0, POST /peers/register; design §6)."""

from collections.abc import Iterator
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest

from server.auth.authenticator import Caller
from server.domain.errors import Unauthenticated
from server.settings import Settings
from server.store import mesh
from tests.server.auth.test_authenticator import HOST, Identity, Node, refused
from tests.support.located import connect, prepare


@pytest.fixture
def running(tmp_path: Path) -> Iterator[Node]:
    prepare(tmp_path / "cacp.db")
    with closing(connect(tmp_path / "cacp.db")) as db:
        yield Node(db)


def test_who_registers_over_loopback_may_be_new(running: Node) -> None:
    """It could act as the node's own agent as well."""
    headers = {**HOST, b"x-agent-id": b"mobile"}
    identity = Identity(running, Settings())
    new = Caller("mobile", "", "unkeyed", "peer")
    assert identity.identify(headers, "127.0.0.1", registers=True) == new
    refused(Unauthenticated, "unknown_agent", lambda: identity.identify(headers, "127.0.0.1"))


@pytest.mark.parametrize(
    ("settings", "client", "reason"),
    [
        ({"trust_unkeyed_peers": False}, "127.0.0.1", "unkeyed_peers_off"),
        ({}, "192.0.2.1", "no_credentials"),
        ({"host": "192.0.2.9", "trust_unkeyed_peers": True}, "192.0.2.1", "unknown_agent"),
        ({"host": "192.0.2.9", "trust_unkeyed_peers": True}, "127.0.0.1", "unknown_agent"),
    ],
)
def test_nobody_registers_by_its_name_from_elsewhere(
    running: Node, settings: dict[str, Any], client: str, reason: str
) -> None:
    headers = {**HOST, b"x-agent-id": b"mobile"}
    identity = Identity(running, Settings(**settings))
    refused(Unauthenticated, reason, lambda: identity.identify(headers, client, registers=True))


def test_a_node_whose_key_is_known_does_not_come_without_it(running: Node) -> None:
    mesh.pin(running.db, "mobile", "its public key")
    headers = {**HOST, b"x-agent-id": b"mobile"}
    identity = Identity(running, Settings())
    refused(
        Unauthenticated,
        "key_required",
        lambda: identity.identify(headers, "127.0.0.1", registers=True),
    )


ODD = ["AID://example.com/mobile", "aid://Example.com/mobile", "aid://example.com/mobile\u00a0"]


@pytest.mark.parametrize("odd", ODD)
@pytest.mark.parametrize("registers", [True, False])
def test_nobody_comes_by_an_id_that_only_looks_like_one(
    running: Node, odd: str, registers: bool
) -> None:
    """Not even one that was registered before it was refused."""
    identity = Identity(running, Settings())
    headers = {**HOST, b"x-agent-id": odd.encode()}

    def call() -> Caller:
        return identity.identify(headers, "127.0.0.1", registers=registers)

    refused(Unauthenticated, "agent_id_not_canonical", call)
    running.peer(odd)
    refused(Unauthenticated, "agent_id_not_canonical", call)


def test_nobody_new_looks_like_an_agent_that_is_known(running: Node) -> None:
    """What an operator named otherwise than canonically is as much one's own."""
    running.key("AID://Example.com/mobile@1.0.0")
    identity = Identity(running, Settings())
    headers = {**HOST, b"x-agent-id": b"aid://example.com/mobile@1.0.0"}
    refused(
        Unauthenticated,
        "looks_like_another",
        lambda: identity.identify(headers, "127.0.0.1", registers=True),
    )


def test_the_nodes_own_agent_comes_by_its_name_as_it_is(running: Node) -> None:
    own = "AID://Example.com/node@1.0.0"
    identity = Identity(running, Settings(agent_id=own))
    headers = {**HOST, b"x-agent-id": own.encode()}
    assert identity.identify(headers, "127.0.0.1").via == "local"
