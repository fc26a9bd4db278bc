"""Which files change, and what they become again."""

from pathlib import Path

import pytest

from cli.connect_plan import connecting, disconnecting
from cli.connect_record import AgentConnection
from cli.file_edit import apply


@pytest.fixture
def top(tmp_path: Path) -> Path:
    folder = tmp_path / "shop"
    folder.mkdir()
    return folder


def connected(top: Path, agent: str = "opencode", program: str = "cacp") -> AgentConnection:
    """A connection whose changes are made."""
    connection = AgentConnection(
        agent, "shop", "aid://x/shop@1.0.0", "http://127.0.0.1:1", None, None
    )
    plan = connecting(connection, program, top)
    apply(plan.changes)
    connection.checkouts[str(top)] = plan.files
    return connection


def files(top: Path) -> dict[str, bytes]:
    return {
        file.relative_to(top).as_posix(): file.read_bytes()
        for file in top.rglob("*")
        if file.is_file()
    }


def test_files_come_and_go_with_their_folders(top: Path) -> None:
    connection = connected(top)
    assert sorted(files(top)) == [".opencode/plugins/cacp.js", "AGENTS.md", "opencode.json"]
    assert connecting(connection, "cacp", top).changes == []
    apply(disconnecting(connection, top, others=False).changes)
    assert list(top.iterdir()) == []


@pytest.mark.parametrize("text", ["", "{}", "{ }\r\n", '{\r\n "a": 1\r\n}\r\n', "\n\n{}"])
def test_every_byte_comes_back(top: Path, text: str) -> None:
    (top / "opencode.json").write_bytes(text.encode())
    (top / "AGENTS.md").write_bytes(b"# Mine\r\nno end")
    before = files(top)
    connection = connected(top)
    assert b"\n" not in (top / "AGENTS.md").read_bytes().replace(b"\r\n", b"")
    apply(disconnecting(connection, top, others=False).changes)
    assert files(top) == before


def test_a_change_made_twice_is_taken_back_once(top: Path) -> None:
    """Another program, another text, also when a person has changed the file between."""
    config = top / "opencode.json"
    config.write_text('{"a": 1}')
    connection = connected(top)
    plan = connecting(connection, "/opt/cacp", top)
    apply(plan.changes)
    assert "/opt/cacp" in config.read_text()
    config.write_text(config.read_text().replace('"a": 1', '"a": 2'))
    connection.checkouts[str(top)] = plan.files
    plan = connecting(connection, "cacp", top)
    apply(plan.changes)
    connection.checkouts[str(top)] = plan.files
    apply(disconnecting(connection, top, others=False).changes)
    assert files(top) == {"opencode.json": b'{"a": 2}'}


def test_a_file_that_a_person_has_removed_stays_away(top: Path) -> None:
    connection = connected(top)
    (top / "AGENTS.md").unlink()
    apply(disconnecting(connection, top, others=False).changes)
    assert list(top.iterdir()) == []


def test_the_other_name_of_a_file_is_used(top: Path) -> None:
    (top / "opencode.jsonc").write_text("{\n  // mine\n}\n")
    connection = connected(top)
    assert "opencode.json" not in files(top)
    assert b"// mine" in files(top)["opencode.jsonc"]
    # Also when the person makes the first one later.
    (top / "opencode.json").write_text("{}")
    apply(disconnecting(connection, top, others=False).changes)
    assert files(top) == {"opencode.jsonc": b"{\n  // mine\n}\n", "opencode.json": b"{}"}


def test_instructions_that_are_one_file_are_edited_once(top: Path) -> None:
    (top / "AGENTS.md").write_text("# Mine\n")
    (top / "CLAUDE.md").symlink_to("AGENTS.md")
    connection = connected(top, "claude")
    assert "@AGENTS.md" not in (top / "CLAUDE.md").read_text()
    apply(disconnecting(connection, top, others=False).changes)
    assert files(top) == {"AGENTS.md": b"# Mine\n", "CLAUDE.md": b"# Mine\n"}


def test_what_others_share_stays(top: Path) -> None:
    connection = connected(top)
    plan = disconnecting(connection, top, others=True)
    apply(plan.changes)
    assert list(files(top)) == ["AGENTS.md"]
    assert list(plan.files) == ["AGENTS.md"]


def test_a_file_that_cant_be_edited_is_named_and_nothing_changes(top: Path) -> None:
    outside = top.parent / "outside.md"
    outside.write_text("# Outside\n")
    cases = {
        "opencode.json": (b"{", "opencode.json is not changed: line 1: should have"),
        "AGENTS.md": (b"\xff", "AGENTS.md is not changed: it is not UTF-8"),
    }
    for name, (content, problem) in cases.items():
        (top / name).write_bytes(content)
        before = files(top)
        with pytest.raises(ValueError, match=problem):
            connected(top)
        assert files(top) == before
        (top / name).unlink()
    (top / "AGENTS.md").symlink_to(outside)
    with pytest.raises(ValueError, match=r"a link to .*outside of the repository"):
        connected(top)
    (top / "AGENTS.md").unlink()
    (top / "docs.md").write_text("# Docs\n")
    (top / "AGENTS.md").symlink_to("docs.md")
    connected(top)
    assert (top / "AGENTS.md").is_symlink()
    assert "cacp_attention" in (top / "docs.md").read_text()


@pytest.mark.parametrize(
    ("target", "why"),
    [
        (".git/hooks/pre-commit", "which is git's own"),
        ("sub/.git/config", "which is git's own"),
        ("AGENTS.md", "can't be read"),
    ],
)
def test_a_link_of_a_hostile_repository_is_refused(top: Path, target: str, why: str) -> None:
    """A clone brings links, also to what git runs, and in a circle."""
    (top / "AGENTS.md").symlink_to(target)
    with pytest.raises(ValueError, match=rf"^AGENTS.md .*{why}"):
        connected(top)
