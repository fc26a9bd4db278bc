"""`cacp peers` and `cacp join` on real nodes."""

import json
from pathlib import Path

import pytest

from tests.cli.run import cacp
from tests.support.foreign_peer import AGENT, ForeignPeerDouble
from tests.support.mesh import agent_of, peers, project
from tests.support.mesh_member import TOKEN
from tests.support.node import Node
from tests.support.waiting import eventually


def last_error(node: Node) -> str:
    """Why the node's only peer doesn't answer, as `cacp peers` shows it."""
    [listed] = json.loads(cacp("peers", "list", "--json", url=node.url).stdout)
    return str(listed["sync"].get("lastError"))


def test_a_node_joins_another_by_invite_and_is_removed(tmp_path: Path) -> None:
    """No mesh token: `cacp invite create` here, `cacp join` there."""
    (tmp_path / "alpha").mkdir()
    (tmp_path / "beta").mkdir()
    with (
        Node(tmp_path / "alpha", repo="alpha", agent_id=agent_of("alpha")) as alpha,
        Node(tmp_path / "beta", repo="beta", agent_id=agent_of("beta")) as beta,
    ):
        assert cacp("peers", url=alpha.url).stderr.startswith(
            "There are no peers: `cacp peers add URL`"
        )
        code = cacp("invite", "create", db=str(alpha.db)).stdout.strip()
        joined = cacp("join", alpha.url, code, db=str(beta.db))
        assert joined.exit_code == 0
        eventually(lambda: len(peers(alpha)) == len(peers(beta)) == 1)
        eventually(lambda: "up" in cacp("peers", url=beta.url).stdout)
        [listed] = json.loads(cacp("peers", "list", "--json", url=beta.url).stdout)
        assert listed["agentId"] == agent_of("alpha")
        assert cacp("peers", "retry", agent_of("alpha"), db=str(beta.db)).exit_code == 0
        assert cacp("peers", "remove", agent_of("beta"), db=str(alpha.db)).exit_code == 0
        assert peers(alpha) == []
        retry = cacp("peers", "retry", agent_of("alpha"), db=str(beta.db))
        assert retry.exit_code == 0
        eventually(lambda: "This key is revoked" in last_error(beta))
        assert "peer_down" in beta.log


def test_a_node_is_added_by_the_mesh_token(tmp_path: Path) -> None:
    (tmp_path / "alpha").mkdir()
    (tmp_path / "beta").mkdir()
    with (
        Node(tmp_path / "alpha", repo="alpha", agent_id=agent_of("alpha"), mesh_token=TOKEN) as one,
        Node(tmp_path / "beta", repo="beta", agent_id=agent_of("beta"), mesh_token=TOKEN) as other,
    ):
        assert cacp("peers", "add", one.url, db=str(other.db), mesh_token=TOKEN).exit_code == 0
        eventually(lambda: len(peers(one)) == len(peers(other)) == 1)


@pytest.mark.parametrize(
    ("words", "status"),
    [
        (["join", "http://a.example", "nonsense"], 2),
        (["peers", "add", "ftp://a.example"], 2),
        (["peers", "remove", "nobody"], 1),
        (["peers", "retry", "nobody"], 1),
        (["peers", "drop", "nobody"], 1),
    ],
)
def test_what_can_not_be_is_one_line(tmp_path: Path, words: list[str], status: int) -> None:
    db = str(tmp_path / "cacp.db")
    cacp("keys", "create", "a", "--repo", "r", "--create", db=db)
    done = cacp(*words, db=db)
    assert (done.exit_code, len(done.stderr.splitlines()) >= 1) == (status, True)


def test_what_a_peer_has_not_taken_is_listed_and_given_up(tmp_path: Path) -> None:
    with ForeignPeerDouble() as double, Node(tmp_path, repo="alpha", peers=double.url) as node:
        eventually(lambda: len(peers(node)) == 1)
        refusal: dict[str, object] = {"code": -32000, "message": "no \x1b[31m"}
        double.refuses = {"cacp/project/sync": refusal, "cacp/project/create": refusal}
        made = project(node)
        eventually(lambda: "undeliveredEntities" in peers(node)[0].get("sync", {}))
        eventually(lambda: node.query("SELECT 1 FROM undelivered"))
        listed = cacp("peers", url=node.url).stdout
        [line] = [line for line in listed.splitlines() if made in line]
        assert line.split()[:3] == [AGENT, "project", made]
        assert "\x1b" not in listed
        assert cacp("peers", "drop", AGENT, "no-such", db=str(node.db)).exit_code == 1
        assert cacp("peers", "drop", AGENT, made, db=str(node.db)).stderr == "Given up: 1.\n"
        eventually(lambda: peers(node)[0]["sync"]["undelivered"] == 0)
