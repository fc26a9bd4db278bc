"""`cacp connect` and `cacp disconnect` as a person uses them: a real node, repository and database.

Agents' commands are stand-ins here; `test_connect_real.py` has the real ones.
"""

import json
import shutil
import stat
from pathlib import Path

import pytest

from cli.connect_agents import AGENTS
from tests.cli.connecting import Workplace, keys_of
from tests.cli.run import cacp
from tests.support.node import Node

SETTINGS = '{\n    // mine\n    "theme": "dark"\n}\n'
CODEX = "# mine\nmodel = 'x'\n"
LISTED = "cacp: cacp mcp - ✔ Connected"


@pytest.fixture
def place(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Workplace:
    return Workplace.at(tmp_path, monkeypatch)


@pytest.mark.parametrize("agent", AGENTS)
def test_connected_once_and_all_of_it_taken_back(node: Node, place: Workplace, agent: str) -> None:
    place.write("AGENTS.md", "# Shop\n")
    place.write(".gemini/settings.json", SETTINGS)
    place.write(".codex/config.toml", CODEX)
    before = place.files()
    assert (place.connect(node, agent, "--dry-run").exit_code, place.files()) == (0, before)
    assert keys_of(node) == []

    first = place.connect(node, agent)
    assert first.exit_code == 0, first.output
    assert f"Connected {AGENTS[agent].title}." in first.stdout
    assert f"`{AGENTS[agent].program}` is not installed here" in first.stdout
    made = place.files()
    key_file = place.home / f".config/cacp/connections/shop-{agent}.key"
    key = key_file.read_text().strip()
    assert stat.S_IMODE(key_file.stat().st_mode) == 0o600
    assert [name for name, content in made.items() if key.encode() in content] == [
        str(key_file.relative_to(place.home.parent))
    ]
    assert key not in first.output
    (row,) = keys_of(node)
    assert (row["repo"], row["trust"]) == ("shop", "verified")

    second = cacp("connect", agent)
    assert second.exit_code == 0, second.output
    assert "Nothing to change." in second.stdout
    assert (place.files(), keys_of(node)) == (made, [row])

    assert cacp("disconnect", agent, "--dry-run").exit_code == 0
    assert place.files() == made
    gone = cacp("disconnect", agent)
    assert gone.exit_code == 0, gone.output
    assert f"{row['keyId']} is revoked." in gone.stdout
    assert (place.files(), keys_of(node)) == (before, [])
    assert "is not connected" in cacp("disconnect", agent).stdout


def test_what_a_person_writes_between_stays(node: Node, place: Workplace) -> None:
    """Also when agents that share AGENTS.md leave one after the other."""
    agents = place.write("AGENTS.md", "# Shop\n")
    for agent in ("claude", "codex"):
        assert place.connect(node, agent).exit_code == 0
    agents.write_text(agents.read_text().replace("# Shop", "# Our shop") + "\nMore.\n")
    config = place.top / ".codex/config.toml"
    config.write_text(f"# mine\nmodel = 'x'\n{config.read_text()}")
    servers = place.top / ".mcp.json"
    servers.write_text(servers.read_text().replace('"mcpServers": {', '"mcpServers": {"a": {},', 1))
    first = cacp("disconnect", "claude")
    assert "AGENTS.md keeps its block, because codex is still connected." in first.stdout
    assert "cacp_attention" in agents.read_text()
    assert json.loads(servers.read_text()) == {"mcpServers": {"a": {}}}
    assert cacp("disconnect", "codex").exit_code == 0
    assert agents.read_text() == "# Our shop\n\nMore.\n"
    assert config.read_text() == CODEX
    assert sorted(place.files()) == [
        "shop/.codex/config.toml",
        "shop/.mcp.json",
        "shop/AGENTS.md",
    ]


def test_a_repository_that_was_moved_stays_connected(
    node: Node, place: Workplace, monkeypatch: pytest.MonkeyPatch
) -> None:
    place.write("AGENTS.md", "# Shop\n")
    assert place.connect(node, "cursor").exit_code == 0
    moved = place.top.rename(place.top.with_name("elsewhere"))
    monkeypatch.chdir(moved)
    assert "Nothing to change." in cacp("connect", "cursor").stdout
    assert cacp("disconnect", "cursor").exit_code == 0
    assert sorted(path.name for path in moved.iterdir()) == [".git", "AGENTS.md"]
    assert (moved / "AGENTS.md").read_text() == "# Shop\n"
    assert keys_of(node) == []


def test_a_key_that_was_revoked_is_made_anew(node: Node, place: Workplace) -> None:
    assert place.connect(node, "cursor").exit_code == 0
    made = place.files()
    cacp("keys", "revoke", str(keys_of(node)[0]["keyId"]), db=str(node.db))
    assert "make a key" in place.connect(node, "cursor").stdout
    assert len(keys_of(node)) == 1
    assert {name for name in made if place.files()[name] != made[name]} == {
        "home/.config/cacp/connections/shop-cursor.json",
        "home/.config/cacp/connections/shop-cursor.key",
    }
    cacp("disconnect", "cursor")


def test_another_checkout_shares_the_key(
    node: Node, place: Workplace, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert place.connect(node, "cursor").exit_code == 0
    other, third = place.top.parent / "again", place.top.parent / "third"
    (other / ".git").mkdir(parents=True)
    (other / ".git/HEAD").touch()
    monkeypatch.chdir(other)
    assert place.connect(node, "cursor", "--repo", "shop").exit_code == 0
    assert len(keys_of(node)) == 1
    # In a third, the files are there already.
    shutil.copytree(other, third)
    monkeypatch.chdir(third)
    assert "Nothing to change." in place.connect(node, "cursor", "--repo", "shop").stdout
    for checkout, names in ((third, 3), (other, 1)):
        monkeypatch.chdir(checkout)
        assert "other checkouts use it" in cacp("disconnect", "cursor").stdout
        assert len(list(checkout.iterdir())) == names
        assert len(keys_of(node)) == 1
    monkeypatch.chdir(place.top)
    cacp("disconnect", "cursor")
    assert keys_of(node) == []


@pytest.mark.parametrize("agent", AGENTS)
def test_a_colleague_with_the_same_files_gets_a_key_and_no_change(
    node: Node, place: Workplace, agent: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert place.connect(node, agent).exit_code == 0
    committed = {name: text for name, text in place.files().items() if name.startswith("shop/")}
    with monkeypatch.context() as colleague:
        home = place.home.parent / "colleague"
        home.mkdir()
        colleague.setenv("HOME", str(home))
        done = json.loads(place.connect(node, agent, "--json").stdout)
        assert (done["key"]["step"], done["changes"], len(keys_of(node))) == ("make", [], 2)
        gone = json.loads(cacp("disconnect", agent, "--json").stdout)
        assert (gone["changes"], len(keys_of(node))) == ([], 1)
        assert [file for file in home.rglob("*") if file.is_file()] == []
    assert committed.items() <= place.files().items()
    cacp("disconnect", agent)


def test_a_persons_key_is_copied_and_not_revoked(
    node: Node, place: Workplace, frontend_key: str
) -> None:
    given = place.home / "mine.key"
    given.write_text(frontend_key)
    refused = cacp("connect", "cursor", "--url", node.url, "--key-file", str(given))
    assert refused.exit_code == 2
    assert "open to other users" in refused.stderr
    given.chmod(0o600)
    before = place.files()
    done = cacp("connect", "cursor", "--url", node.url, "--key-file", str(given))
    assert done.exit_code == 0, done.output
    copy = place.home / ".config/cacp/connections/shop-cursor.key"
    assert copy.read_text().strip() == frontend_key
    assert "your key is not revoked" in cacp("disconnect", "cursor").stdout
    assert place.files() == before
    assert cacp("call", "cacp/project/list", url=node.url, key=frontend_key).exit_code == 0


def test_the_agents_own_command_has_the_last_word(node: Node, place: Workplace) -> None:
    place.stand_in("claude", ".mcp.json", LISTED)
    done = place.connect(node, "claude")
    assert f"`claude mcp list`: {LISTED}" in done.stdout
    place.stand_in("claude", ".mcp.json", "cacp: cacp mcp - ⏸ Pending approval")
    waiting = cacp("connect", "claude")
    assert waiting.exit_code == 1
    assert "But Claude Code doesn't use it yet: start `claude` here once" in waiting.stdout
    place.stand_in("claude", ".none", LISTED)
    assert "But `claude mcp list` doesn't list the server" in cacp("connect", "claude").stdout
    cacp("disconnect", "claude")


def test_json_has_each_change_and_no_secret(node: Node, place: Workplace) -> None:
    place.write(".mcp.json", '{"mcpServers": {"x": {"env": {"API_TOKEN": "abc"}}}}')
    planned = json.loads(place.connect(node, "claude", "--dry-run", "--json").stdout)
    done = json.loads(place.connect(node, "claude", "--json").stdout)
    assert done["changes"] == planned["changes"]
    assert (planned["made"], done["made"], planned["check"]) == (False, True, None)
    assert done["check"] == {"command": "claude mcp list", "state": "not installed", "line": ""}
    assert [(change["action"], change["path"]) for change in done["changes"]] == [
        ("change", ".mcp.json"),
        ("make", ".claude/settings.local.json"),
        ("make", "AGENTS.md"),
        ("make", "CLAUDE.md"),
    ]
    assert "abc" not in json.dumps(done)
    assert done["key"]["step"] == "make"
    gone = json.loads(cacp("disconnect", "claude", "--json").stdout)
    assert (gone["made"], gone["key"]["step"]) == (True, "revoke")
    again = json.loads(cacp("disconnect", "claude", "--json").stdout)
    assert (again["connected"], again["changes"]) == (False, [])


@pytest.mark.parametrize("command", ["connect", "disconnect"])
def test_help_gives_examples(command: str) -> None:
    assert f" cacp {command} claude" in cacp(command, "--help").stdout.partition("Example")[2]
