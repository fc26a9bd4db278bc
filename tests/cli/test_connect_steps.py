"""What `cacp connect` can't do, it says, and changes nothing."""

import json
from pathlib import Path

import pytest

from tests.cli.connecting import Workplace, keys_of
from tests.cli.run import cacp
from tests.support.node import AGENT, Node


@pytest.fixture
def place(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Workplace:
    return Workplace.at(tmp_path, monkeypatch)


@pytest.mark.sqlite
def test_what_cant_be_done_is_told_and_changes_nothing(
    node: Node, place: Workplace, monkeypatch: pytest.MonkeyPatch
) -> None:
    place.write(".mcp.json", "{")
    before, keys = place.files(), keys_of(node)

    def refused(status: int, problem: str, *words: str) -> None:
        done = cacp("connect", *words)
        assert (done.exit_code, done.stderr.count("\n")) == (status, 1), done.output
        assert problem in done.stderr
        assert (place.files(), keys_of(node)) == (before, keys)

    url, db = ("--url", node.url), ("--db", str(node.db))
    refused(2, "emacs is not an agent that can be connected: name claude, codex", "emacs")
    refused(3, "no node answers at http://127.0.0.1:9;", "codex", "--url", "http://127.0.0.1:9")
    refused(1, ".mcp.json is not changed: line 1: should have", "claude", *url, *db)
    missing = place.home / "none.db"
    refused(1, "none.db does not exist: name the database", "codex", *url, "--db", str(missing))
    assert not missing.exists()
    refused(2, "'a b' should have 1 to 200 characters", "codex", *url, *db, "--repo", "a b")
    monkeypatch.chdir(place.home)
    refused(1, "is not in a git repository", "codex", *url, *db)


@pytest.mark.sqlite
def test_the_database_of_another_node_is_noticed(
    node: Node, place: Workplace, tmp_path: Path
) -> None:
    other = tmp_path / "other.db"
    assert cacp("keys", "create", AGENT, "--repo", "x", "--create", db=str(other)).exit_code == 0
    done = cacp("connect", "cursor", "--url", node.url, "--db", str(other))
    assert done.exit_code == 1
    assert f"the node at {node.url} does not run on {other}" in done.stderr
    assert place.files() == {}
    rows = json.loads(cacp("keys", "list", "--json", db=str(other)).stdout)
    assert [bool(row["revokedAt"]) for row in rows] == [False, True]


@pytest.mark.sqlite
def test_the_node_is_that_of_the_database(node: Node, place: Workplace) -> None:
    done = cacp("connect", "cursor", "--db", str(node.db))
    assert done.exit_code == 0, done.output
    assert (
        node.url
        in next(text for name, text in place.files().items() if name.endswith("mcp.json")).decode()
    )
    # The node is shared: the next tests count its keys.
    assert cacp("disconnect", "cursor").exit_code == 0


def test_another_repo_or_agent_id_is_refused_until_disconnected(
    node: Node, place: Workplace
) -> None:
    assert place.connect(node, "cursor", "--repo", "web").exit_code == 0
    made = place.files()
    for option, value in (("--repo", "shop"), ("--agent-id", "aid://x/y")):
        done = place.connect(node, "cursor", option, value)
        assert done.exit_code == 1
        assert "run `cacp disconnect cursor` there first" in done.stderr
    assert place.files() == made
    assert len(keys_of(node, "aid://example.com/web@1.0.0")) == 1
    cacp("disconnect", "cursor")


def test_a_key_that_cant_be_kept_is_not_left_behind(node: Node, place: Workplace) -> None:
    (place.home / ".config").write_text("no folder")
    done = place.connect(node, "cursor")
    assert done.exit_code == 1
    assert ".config/cacp" in done.stderr
    assert (list(place.files()), keys_of(node)) == (["home/.config"], [])


def test_a_key_whose_file_was_lost_is_replaced_and_revoked(node: Node, place: Workplace) -> None:
    assert place.connect(node, "cursor").exit_code == 0
    (old,) = keys_of(node)
    (place.home / ".config/cacp/connections/shop-cursor.key").unlink()
    assert f"{old['keyId']}, which it replaces" in place.connect(node, "cursor").stdout
    (new,) = keys_of(node)
    assert new["keyId"] != old["keyId"]
    cacp("disconnect", "cursor")


def test_a_file_that_cant_be_written_undoes_the_rest(
    node: Node, place: Workplace, monkeypatch: pytest.MonkeyPatch
) -> None:
    real = Path.replace

    def replace(self: Path, target: Path) -> Path:
        if target.name == "CLAUDE.md":
            raise PermissionError(13, "Permission denied", str(target))
        return real(self, target)

    place.write("AGENTS.md", "# Shop\n")
    before = place.files()
    with monkeypatch.context() as patched:
        patched.setattr(Path, "replace", replace)
        done = place.connect(node, "claude")
    assert done.exit_code == 1
    assert "CLAUDE.md can't be changed: Permission denied" in done.stderr
    assert (place.files(), keys_of(node)) == (before, [])
