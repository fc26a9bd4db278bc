"""What `cacp doctor` says of the peers and their clocks."""

from pathlib import Path

import pytest

from cli.doctor_peers import clocks_check
from peers.clock import Reading
from server.store.peers import Peer
from tests.cli.doctoring import examined, execute, new_database
from tests.cli.run import cacp
from tests.support.node import Node, free_port

INSERT_PEER = (
    "INSERT INTO peers"
    " (agent_id, endpoint, repo_name, trust, registered_at, last_seen, secret, key_id) VALUES "
)


@pytest.fixture
def db(tmp_path: Path) -> Path:
    return new_database(tmp_path)


def test_peers(db: Path, node: Node) -> None:
    insert = INSERT_PEER + "('{0}', '{1}', NULL, 'verified', 1, 1, NULL, NULL)"
    execute(
        db,
        insert.format("near", node.url),
        insert.format("gone", f"http://127.0.0.1:{free_port()}"),
        insert.format("evil", "http://169.254.169.254/"),
        insert.format("odd", f"{node.url}/live"),
    )
    status, found = examined(db)
    assert status == 1
    states = {name: found[f"peer {name}"]["state"] for name in ("near", "gone", "evil", "odd")}
    assert states == {"near": "ok", "gone": "warning", "evil": "broken", "odd": "warning"}


def test_an_agent_that_has_a_key_and_is_registered_without_it(db: Path, node: Node) -> None:
    """Of a database from before: today a key that is made ends such a registration."""
    insert = INSERT_PEER + "('{0}', '{1}', NULL, 'unkeyed', 1, 1, NULL, NULL)"
    execute(
        db,
        insert.format("both", node.url),
        insert.format("away", node.url),
        insert.format("foreign", node.url),
        INSERT_PEER + "('beta', 'http://127.0.0.1:1', NULL, 'verified', 1, 1, 's', 'k')",
        "INSERT INTO homes VALUES ('away', 'beta')",
        "INSERT INTO keys (key_id, hash, agent_id, repo, trust, created_at)"
        " VALUES ('k1', 'h', 'both', 'r', 'verified', 1)",
    )
    _, found = examined(db)
    assert [name for name in found if name.startswith("agent ")] == ["agent away", "agent both"]
    assert found["agent both"]["state"] == "warning"
    assert node.url in found["agent both"]["found"]
    assert "cacp peers remove both" in found["agent both"]["mend"]
    assert cacp("peers", "remove", "both", db=str(db)).exit_code == 0
    _, found = examined(db)
    assert "agent both" not in found


def readings(*ahead: int | None) -> dict[Peer, Reading | None]:
    """What peers' clocks show beside this machine's; None for one that gave no answer."""
    names = [f"k{n}" for n in range(len(ahead))]
    known = [Peer(name, "http://x", name, "verified", 1, 1, "secret", "key") for name in names]
    shown = [None if seconds is None else Reading(0, seconds * 1_000_000, 0) for seconds in ahead]
    return dict(zip(known, shown, strict=True))


@pytest.mark.parametrize(
    ("ahead", "state", "found", "mend"),
    [
        ((0, 1), "ok", "3 of 3 nodes share the time", ""),
        ((0, 3_600), "ok", "2 of 3 nodes share the time", ""),
        ((None, None), "ok", "no peer has reported its time", ""),
        ((-3_600, -3_600), "warning", "1 h ahead of the time that 2 of 3", "run NTP"),
        (
            (3_600, -3_600),
            "warning",
            "k0 is 1 h ahead of this node, k1 is 1 h behind this node",
            "Run NTP on each",
        ),
        ((3_600,), "warning", "so none is trusted", "Run NTP on each"),
    ],
)
def test_the_clocks_of_the_peers(
    ahead: tuple[int | None, ...], state: str, found: str, mend: str
) -> None:
    check = clocks_check(readings(*ahead))
    assert check.state == state
    assert found in check.finding
    assert mend in check.remedy
