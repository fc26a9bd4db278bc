"""`cacp discover`, `cacp register`, `cacp known`: find agents by ADP and be found."""

import json
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.cli.run import cacp
from tests.support.node import AGENT, Node

READER = "aid://example.com/reader@1.0.0"


@pytest.fixture(scope="module")
def pair(tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[Node, Node]]:
    """An exchange that takes known agents, and a node that uses it."""
    folder: Path = tmp_path_factory.mktemp("pair")
    for name in ("host", "reader"):
        (folder / name).mkdir()
    with (
        Node(folder / "host", exchange=True, known_agents=True) as host,
        Node(folder / "reader", agent_id=READER, repo="reader", adp_url=host.url) as reader,
    ):
        yield host, reader


def test_register_then_discover(pair: tuple[Node, Node]) -> None:
    host, reader = pair
    done = cacp("register", url=reader.url)
    assert (done.exit_code, done.stderr) == (0, f"{READER} is registered.\n")
    shown = cacp("discover", "reader", url=reader.url).stdout
    assert READER in shown
    assert reader.url in shown
    listings = json.loads(cacp("discover", "--json", url=host.url).stdout)
    assert {one["aid"] for one in listings} == {AGENT, READER}
    assert cacp("discover", "--protocol", "mcp", "--json", url=host.url).stdout.strip() == "[]"
    some = cacp("discover", "--protocol", "", "--limit", "1", "--json", url=host.url).stdout
    assert len(json.loads(some)) == 1


def test_known_prints_a_key_that_reads(pair: tuple[Node, Node]) -> None:
    host, reader = pair
    cacp("register", url=reader.url)
    done = cacp("known", host.url, url=reader.url)
    assert done.stderr == "Valid for 60 minutes, for reading:\n"
    key = done.stdout.strip()
    assert cacp("projects", url=host.url, key=key).exit_code == 0
    refused = cacp("call", "cacp/project/create", "name=a", "objective=b", url=host.url, key=key)
    assert refused.exit_code == 1
    granted = json.loads(cacp("known", host.url, "--json", url=reader.url).stdout)
    assert granted["trust"] == "known"


def test_refusals_are_a_line(node: Node) -> None:
    for args in (["discover", "x"], ["register"]):
        done = cacp(*args, url=node.url)
        assert (done.exit_code, done.stdout) == (1, "")
        assert "set CACP_ADP_URL" in done.stderr
    done = cacp("known", "http://127.0.0.1:9", url=node.url)
    assert (done.exit_code, done.stderr) == (1, "cacp: The node can't be reached (-32000)\n")
