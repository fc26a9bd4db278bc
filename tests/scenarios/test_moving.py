"""A node that has peers, mail, files and handoffs moves to PostgreSQL and back: its peers and
readers go on as if it had only been restarted."""

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from server.domain.location import DatabaseUrl
from tests.cli.run import cacp
from tests.scenarios.test_mail import known_both_ways
from tests.support.in_process_node import package
from tests.support.mail_agent import agent
from tests.support.mesh import Mesh, equal, join, peers, project, propose, status
from tests.support.node import Node
from tests.support.postgresql import drop, empty_database
from tests.support.shared_files import get, share
from tests.support.waiting import eventually

pytestmark = pytest.mark.sqlite

STARTED = "2026-01-01T00:00:00Z"


@pytest.fixture
def url() -> Iterator[DatabaseUrl]:
    made = empty_database()
    yield made
    drop(made)


def moved(node: Node, source: str, target: str) -> None:
    done = cacp("move", "--from", source, "--to", target)
    assert done.exit_code == 0, done.stderr


def followed(node: Node, last: str) -> list[dict[str, Any]]:
    """The next two events after one that a reader has."""
    with node.events(last_event_id=last) as events:
        return [next(events), next(events)]


def test_peers_and_readers_go_on(mesh: Mesh, tmp_path: Path, url: DatabaseUrl) -> None:
    alpha = mesh.add("alpha")
    beta = mesh.add("beta", alpha)
    shared = project(alpha)
    join(beta, shared, "beta")
    ann, bob = agent(alpha, "ann"), agent(beta, "bob")
    known_both_ways(ann, bob)
    file = share(alpha, shared, b"\0\xff content")
    alpha.call("cacp/run/report", projectId=shared, runId="r", status="RUNNING", startedAt=STARTED)
    alpha.call(
        "cacp/context/share", projectId=shared, type="api_spec", content={"nul": "\0 \ue000"}
    )
    handoff = alpha.call(
        "acp/handoff", key=ann.key, action="initiate", to=bob.id, reason="r", package=package()
    )["handoff"]["handoffId"]
    with alpha.events() as events:
        first = propose(alpha, shared)
        last = next(events)["id"]
    eventually(lambda: status(beta, shared, first) == "proposed" and equal(alpha, beta))

    alpha.stop()
    missed = propose(beta, shared)
    moved(alpha, f"sqlite:{alpha.db}", url)
    alpha.settings["database_url"] = url
    alpha.start()
    goes_on(alpha, beta, shared, missed)
    assert get(alpha, shared, file) == b"\0\xff content"
    bob.call("handoff", action="accept", handoff_id=handoff)
    sent = ann.send(bob)["message"]["id"]
    eventually(lambda: sent in bob.received())
    events_there = followed(alpha, last)
    assert events_there[0]["event"] != "reset"

    alpha.stop()
    missed = propose(beta, shared)
    back = tmp_path / "back.db"
    moved(alpha, url, f"sqlite:{back}")
    alpha.settings |= {"database_url": "", "db": back}
    alpha.start()
    goes_on(alpha, beta, shared, missed)
    assert followed(alpha, last) == events_there
    bob.call("ack", message_ids=[sent])
    eventually(lambda: ann.receipts(sent)[bob.address] == "read")


def goes_on(alpha: Node, beta: Node, shared: str, missed: str) -> None:
    """What was missed comes, and news go both ways, between nodes that know each other."""
    eventually(lambda: status(alpha, shared, missed) == "proposed")
    here, there = propose(alpha, shared), propose(beta, shared)
    eventually(lambda: status(beta, shared, here) == "proposed")
    eventually(lambda: status(alpha, shared, there) == "proposed")
    eventually(lambda: alpha.get("/peers").json()["mesh"]["state"] == "equal")
    assert len(peers(alpha)) == len(peers(beta)) == 1
