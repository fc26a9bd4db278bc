"""`cacp peers` and `cacp join` on real nodes."""

import json
from contextlib import closing
from pathlib import Path

import pytest

from server.store import peers as store
from server.store.database import connect
from tests.cli.run import cacp
from tests.double import AGENT, Double
from tests.node import Node
from tests.scenarios.mesh import agent_of, peers, project
from tests.stranger import TOKEN
from tests.waiting import eventually


def test_a_node_joins_another_by_invite_and_is_removed(tmp_path: Path) -> None:
    """No mesh token: `cacp invite create` here, `cacp join` there."""
    (tmp_path / "alpha").mkdir()
    (tmp_path / "beta").mkdir()
    with (
        Node(tmp_path / "alpha", repo="alpha", agent_id=agent_of("alpha")) as alpha,
        Node(tmp_path / "beta", repo="beta", agent_id=agent_of("beta")) as beta,
    ):
        assert cacp("peers", url=alpha.url).stderr.startswith("none: `cacp peers add URL`")
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
        eventually(lambda: "unknown" in beta.log or "revoked" in beta.log)


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
    cacp("keys", "create", "a", "--repo", "r", db=db)
    done = cacp(*words, db=db)
    assert (done.exit_code, len(done.stderr.splitlines()) >= 1) == (status, True)


# --- keys of foreign peers ----------------------------------------------------------------------

API_KEY = "sk-mobile-0123456789"


def test_a_foreign_peer_is_called_with_the_key_that_it_gave(tmp_path: Path) -> None:
    """CACP 2.0, Headers. Kept while the node runs; sent to that endpoint; shown nowhere."""
    file = tmp_path / "mobile.key"
    file.write_text(API_KEY + "\n")
    with Double() as double, Node(tmp_path, repo="alpha", peers=double.url) as node:
        eventually(lambda: len(peers(node)) == 1)
        done = cacp("peers", "key", AGENT, "--file", str(file), db=str(node.db))
        assert (done.exit_code, done.stdout) == (0, "")
        assert done.stderr.strip() == f"The key for {double.url} is sent from now on."
        eventually(lambda: keys_sent(node, double) == {f"Bearer {API_KEY}"})
        shown = node.log + cacp("peers", url=node.url).stdout
        shown += cacp("peers", "list", "--json", url=node.url).stdout
        shown += cacp("export", db=str(node.db)).stdout
        assert API_KEY not in shown
        assert cacp("peers", "key", double.url, "--remove", db=str(node.db)).exit_code == 0
        eventually(lambda: keys_sent(node, double) == {None})


def keys_sent(node: Node, double: Double) -> set[str | None]:
    """With which keys the peer is told of something new."""
    double.headers.clear()
    known = len(double.projects)
    project(node)
    eventually(lambda: len(double.projects) > known)
    return {headers.get("authorization") for headers in double.headers}


def test_a_key_may_come_before_the_peer_and_by_its_environment(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    db = str(tmp_path / "cacp.db")
    monkeypatch.setenv("MOBILE_KEY", API_KEY)
    given = cacp("peers", "key", "http://a.example/", "--env", "MOBILE_KEY", db=db)
    assert given.exit_code == 0
    piped = cacp("peers", "key", "http://b.example", db=db, stdin=API_KEY)
    assert piped.exit_code == 0
    with closing(connect(Path(db))) as opened:
        assert store.api_key(opened, "http://a.example") == API_KEY
        assert store.api_key(opened, "http://b.example") == API_KEY


@pytest.mark.parametrize(
    ("words", "stdin", "said"),
    [
        (["http://a.example"], "two words", "one word"),
        (["http://a.example"], "", "one word"),
        (["http://a.example"], "k" * 5_000, "one word"),
        (["http://a.example", "--file", "/nowhere/key"], "", "can't be read"),
        (["http://a.example", "--env", "NOWHERE"], "", "no variable NOWHERE"),
        (["http://a.example", "--env", "A", "--file", "b"], "", "not both"),
        (["http://169.254.169.254"], API_KEY, "169.254.169.254"),
        (["aid://example.com/nobody@1.0.0"], API_KEY, "there is no peer"),
        (["http://a.example", "--remove"], "", "there is no key"),
    ],
)
def test_a_key_that_can_not_be_kept_is_one_line(
    tmp_path: Path, words: list[str], stdin: str, said: str
) -> None:
    done = cacp("peers", "key", *words, db=str(tmp_path / "cacp.db"), stdin=stdin)
    assert done.exit_code in (1, 2)
    assert said in done.stderr
    assert not stdin or stdin not in done.stderr


# --- what a peer has not taken ------------------------------------------------------------------


def test_what_a_peer_has_not_taken_is_listed_and_given_up(tmp_path: Path) -> None:
    with Double() as double, Node(tmp_path, repo="alpha", peers=double.url) as node:
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
