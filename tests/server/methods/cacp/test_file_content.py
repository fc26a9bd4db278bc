"""A file that is not what its SHA-256 says is given to nobody."""

from contextlib import closing
from pathlib import Path

import pytest

from tests.cli.run import cacp
from tests.support.located import connect
from tests.support.node import REPO, Node, RpcError
from tests.support.shared_files import get, share, times_named

BACKEND = {"name": REPO, "role": "service", "language": "python"}


def spoil(node: Node, file_id: str) -> None:
    with closing(connect(node.db)) as db:
        db.execute("UPDATE file_contents SET content = ? WHERE file_id = ?", (bytes(4), file_id))


def test_what_is_damaged_and_nowhere_else_is_refused_and_named(tmp_path: Path) -> None:
    with Node(tmp_path) as node:
        refused_and_named(node)


def refused_and_named(node: Node) -> None:
    made = node.call("cacp/project/create", name="n", objective="o", repos=[BACKEND])["projectId"]
    node.call("cacp/project/join", projectId=made, repoName=REPO)
    file = share(node, made, b"good")
    assert node.get("/health").json()["status"] == "healthy"
    spoil(node, file)
    for _ in range(2):
        with pytest.raises(RpcError) as error:
            get(node, made, file)
        assert error.value.reason == "content_corrupt"
        assert file in str(error.value.message)
    health = node.get("/health").json()
    assert (health["status"], health["reason"]) == ("degraded", "content_corrupt")
    assert file in health["detail"]
    assert 'cacp_alarms{reason="content_corrupt"} 1.0' in node.get("/metrics").text
    done = cacp("doctor", "--json", db=str(node.db))
    assert f"contents that don't match their SHA-256: {file}" in done.stdout
    assert times_named(node) == 1
