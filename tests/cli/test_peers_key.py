"""`cacp peers key`: the API keys that foreign peers gave."""

from contextlib import closing
from pathlib import Path

import pytest

from server.store import peers as store
from tests.cli.run import cacp
from tests.support.foreign_peer import AGENT, ForeignPeerDouble
from tests.support.located import connect, prepare
from tests.support.mesh import peers, project
from tests.support.node import Node
from tests.support.waiting import eventually

API_KEY = "sk-mobile-0123456789"


def test_a_foreign_peer_is_called_with_the_key_that_it_gave(tmp_path: Path) -> None:
    """CACP 2.0, Headers. Kept while the node runs; sent to that endpoint; shown nowhere."""
    file = tmp_path / "mobile.key"
    file.write_text(API_KEY + "\n")
    with ForeignPeerDouble() as double, Node(tmp_path, repo="alpha", peers=double.url) as node:
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


def keys_sent(node: Node, double: ForeignPeerDouble) -> set[str | None]:
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
    given = cacp("peers", "key", "http://a.example/", "--env", "MOBILE_KEY", "--create", db=db)
    assert given.exit_code == 0
    piped = cacp("peers", "key", "http://b.example", db=db, stdin=API_KEY)
    assert piped.exit_code == 0
    with closing(connect(Path(db))) as opened:
        assert store.api_key(opened, "http://a.example") == API_KEY
        assert store.api_key(opened, "http://b.example") == API_KEY


@pytest.mark.parametrize(
    ("words", "stdin", "said"),
    [
        (["http://a.example"], "two words", "without spaces"),
        (["http://a.example"], "", "without spaces"),
        (["http://a.example"], "k" * 5_000, "without spaces"),
        (["http://a.example", "--file", "/nowhere/key"], "", "can't be read"),
        (["http://a.example", "--env", "NOWHERE"], "", "NOWHERE is not set"),
        (["http://a.example", "--env", "A", "--file", "b"], "", "not both"),
        (["http://169.254.169.254"], API_KEY, "169.254.169.254"),
        (["aid://example.com/nobody@1.0.0"], API_KEY, "is not a peer"),
        (["http://a.example", "--remove"], "", "no key is stored"),
    ],
)
def test_a_key_that_can_not_be_kept_is_one_line(
    tmp_path: Path, words: list[str], stdin: str, said: str
) -> None:
    prepare(tmp_path / "cacp.db")
    done = cacp("peers", "key", *words, db=str(tmp_path / "cacp.db"), stdin=stdin)
    assert done.exit_code in (1, 2)
    assert said in done.stderr
    assert not stdin or stdin not in done.stderr
