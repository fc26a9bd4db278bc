"""What is remembered of connections, outside of the repositories, for their user only."""

import stat
from pathlib import Path

import pytest

from cli.connect_record import AgentConnection, FileRecord, digest, named, of_checkout
from cli.key_file import place, write_private

AGENT_ID = "aid://example.com/shop@1.0.0"


@pytest.fixture(autouse=True)
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("HOME", str(tmp_path))
    return tmp_path


def connection(agent: str = "claude", repo: str = "org/shop") -> AgentConnection:
    return AgentConnection(agent, repo, AGENT_ID, "http://127.0.0.1:1", "key_1", "/db")


def test_a_connection_is_found_again_by_name_and_by_checkout(home: Path) -> None:
    made = connection()
    made.checkouts["/projects/shop"] = {"AGENTS.md": FileRecord(None, digest("é"))}
    made.save()
    other = connection("codex")
    other.checkouts["/projects/other"] = {}
    other.save()
    assert named("claude", "org/shop") == made
    assert named("claude", "org") is None
    assert list(of_checkout(Path("/projects/shop"))) == [made]
    assert made.key_file == "~/.config/cacp/connections/org%2Fshop-claude.key"
    assert stat.S_IMODE(made.file.stat().st_mode) == 0o600
    assert stat.S_IMODE(made.file.parent.stat().st_mode) == 0o700
    write_private(place(made.key_file), "x")
    made.forget()
    made.forget()
    assert [file.name for file in made.file.parent.iterdir()] == ["org%2Fshop-codex.json"]


@pytest.mark.parametrize("text", ["", "[]", "{}", '{"checkouts": {"a": {"b": 1}}}'])
def test_a_damaged_file_is_named(text: str) -> None:
    made = connection()
    write_private(made.file, text)
    with pytest.raises(ValueError, match=r"shop-claude\.json is damaged: remove it"):
        named("claude", "org/shop")
