"""What is written for each agent is exactly its format, and all of it can be taken back."""

import json
import tomllib
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from cli import json_edit
from cli.connect_agents import AGENTS, McpCall, edited, undone

CALL = McpCall("cacp", "http://127.0.0.1:8080", "~/.config/cacp/connections/shop-x.key")
ARGS = ["mcp", "--url", CALL.url, "--key-file", CALL.key_file]
EDITS = {
    (name, str(path)): edits
    for name, agent in AGENTS.items()
    for path, edits in agent.edits(CALL).items()
}
EVERY = pytest.mark.parametrize("place", EDITS, ids="-".join)

Place = tuple[str, str]

EXISTING = {
    ".json": '{\n\t// mine\n\t"theme": "dark",\n\t"mcpServers": {"docs": {"command": "docs"}}\n}\n',
    ".toml": "# mine\nmodel = 'x'\n\n[mcp_servers.docs]\ncommand = 'docs'\n",
    ".md": "# Mine\n",
    ".js": None,
}
LATER: dict[str, Callable[[str], str]] = {
    ".json": lambda text: json_edit.with_value(text, ["later"], True),
    ".toml": lambda text: f"later = true\n{text}",
    ".md": lambda text: f"{text}\nlater\n",
}


def server(name: str, path: str) -> Any:
    """The server `cacp` in the file of an agent."""
    text = edited(None, EDITS[name, path])
    value = tomllib.loads(text) if path.endswith(".toml") else json.loads(text)
    (servers,) = (value[name] for name in ("mcp_servers", "mcpServers", "mcp") if name in value)
    return servers["cacp"]


def test_each_agent_gets_the_server_in_its_own_format() -> None:
    """Golden: what the agents' own documentation and commands take."""
    entry = {"command": "cacp", "args": ARGS}
    assert server("claude", ".mcp.json") == entry
    assert server("cursor", ".cursor/mcp.json") == entry
    assert server("codex", ".codex/config.toml") == entry | {"tool_timeout_sec": 90}
    assert server("gemini", ".gemini/settings.json") == entry | {"timeout": 90_000}
    assert server("opencode", "opencode.json") == {"type": "local", "command": ["cacp", *ARGS]}


def test_the_key_is_in_none_of_the_files() -> None:
    for place, edits in EDITS.items():
        assert "cacp_sk_" not in edited(None, edits), place


def test_every_agent_has_the_block_and_reads_it() -> None:
    for name in AGENTS:
        assert "`cacp_attention` first" in edited(None, EDITS[name, "AGENTS.md"])
    # Codex, opencode and Cursor read AGENTS.md by themselves.
    assert "\n@AGENTS.md\n" in edited(None, EDITS["claude", "CLAUDE.md"])
    assert "\n@./AGENTS.md\n" in edited("# Mine\n", EDITS["gemini", "GEMINI.md"])
    for present in ("# Mine\n@AGENTS.md\n", "@./AGENTS.md\n"):
        assert edited(present, EDITS["claude", "CLAUDE.md"]) == present


@EVERY
def test_what_was_made_is_taken_back(place: Place) -> None:
    edits = EDITS[place]
    made = edited(None, edits)
    assert edited(made, edits) == made
    assert undone(made, None, edits) is None


@EVERY
def test_a_persons_text_stays_also_what_is_written_later(place: Place) -> None:
    suffix = Path(place[1]).suffix
    text, edits = EXISTING[suffix], EDITS[place]
    if text is None:
        return
    made = edited(text, edits)
    assert edited(made, edits) == made
    assert undone(made, text, edits) == text
    later = LATER[suffix]
    assert undone(later(made), text, edits) == later(text)
    # Of a file that was made, what a person has added stays.
    remaining = undone(later(edited(None, edits)), None, edits)
    assert remaining is not None
    assert "later" in remaining
    assert "cacp" not in remaining


@EVERY
def test_a_server_of_that_name_comes_back_as_it_was(place: Place) -> None:
    if place[1] == ".codex/config.toml":
        text = "[mcp_servers.cacp]\nurl = 'http://mine'\n"
    elif place[1].endswith("mcp.json"):
        text = '{"mcpServers": {"cacp": {"url": "http://mine"}}}'
    else:
        return
    edits = EDITS[place]
    made = edited(text, edits)
    assert "mine" not in made
    assert undone(made, text, edits) == text


@settings(max_examples=40)
@given(st.sampled_from([place for place in EDITS if place[1].endswith(".json")]), st.data())
def test_any_settings_survive(place: Place, data: st.DataObject) -> None:
    """Also empty objects and lists that were there before."""
    values = st.sampled_from([{}, [], {"a": 1}, ["a"], "x", 1])
    lists = st.sampled_from([[], ["docs"], ["cacp"]])
    servers = st.dictionaries(st.sampled_from(["docs", "cacp"]), st.just({"command": "x"}))
    present = data.draw(
        st.fixed_dictionaries(
            {},
            optional={
                "other": values,
                "enabledMcpjsonServers": lists,
                "mcpServers": servers,
                "mcp": servers,
                "hooks": st.sampled_from([{}, {"Stop": []}, {"Stop": [{"hooks": []}]}]),
            },
        )
    )
    text = json.dumps(present, indent=data.draw(st.sampled_from([None, 2, 4])))
    edits = EDITS[place]
    made = edited(text, edits)
    remaining = undone(json_edit.with_value(made, ["later"], 1), text, edits)
    assert remaining is not None
    without_hooks = {name: value for name, value in present.items() if name != "hooks"}
    left = json_edit.loads(remaining)
    assert {name: left[name] for name in left if name not in ("hooks", "later")} == without_hooks


@pytest.mark.parametrize("text", ["[]", '{"mcpServers": []}', "{", '{"mcpServers": {"cacp": 1},,}'])
def test_another_form_is_refused(text: str) -> None:
    with pytest.raises(ValueError, match=r"should (be|have)"):
        edited(text, EDITS["cursor", ".cursor/mcp.json"])
