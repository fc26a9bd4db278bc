"""docs/cli.md, settings.md, methods.md and mcp.md say what the code says."""

import json
import re
import tomllib
from typing import Any

import pytest
import typer

from cli.docs import DOCS, ROOT, VERSIONED, pages, with_version
from cli.main import app
from server.mcp_tools.catalog import RESOURCES, TOOLS
from server.methods import METHODS
from server.settings import Settings


@pytest.mark.parametrize("name", ["cli.md", "settings.md", "methods.md", "mcp.md"])
def test_the_page_is_up_to_date(name: str) -> None:
    assert (DOCS / name).read_text() == pages()[name], "run `make docs`"


@pytest.mark.parametrize("name", VERSIONED)
def test_the_version_is_that_of_the_project(name: str) -> None:
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    text = (ROOT / name).read_text()
    assert project["version"] in text
    assert with_version(text, project["version"]) == text, "run `make docs`"


def test_a_version_takes_the_place_of_another() -> None:
    text = 'image: cacp-server:0.1.0 {"version":"0.1.0","jsonrpc":"2.0"} python:3.13'
    later = 'image: cacp-server:1.2.0rc1 {"version":"1.2.0rc1","jsonrpc":"2.0"} python:3.13'
    assert with_version(text, "1.2.0rc1") == later
    assert with_version(later, "1.2.0rc1") == later


def test_every_command_and_option_is_explained() -> None:
    page = (DOCS / "cli.md").read_text()
    for path, command in _commands(typer.main.get_command(app), "cacp"):
        assert f"`{path}`" in page
        assert command.help, path
        for param in command.params:
            assert param.help, f"{path} {param.name}"
            if param.param_type_name == "option" and param.name != "help":
                assert all(f"`{name}`" in page for name in param.opts), f"{path} {param.name}"


def test_every_setting_is_explained() -> None:
    page = (DOCS / "settings.md").read_text()
    for name, field in Settings.model_fields.items():
        assert f"`CACP_{name.upper()}`" in page
        assert field.description, name


def test_every_method_is_explained() -> None:
    page = (DOCS / "methods.md").read_text()
    for name, method in METHODS.items():
        assert f"## `{name}`" in page
        assert method.summary, name


def test_every_tool_is_explained() -> None:
    page = (DOCS / "mcp.md").read_text()
    for tool in TOOLS.values():
        assert f"| `{tool.name}` | {tool.description} |" in page
    for resource in RESOURCES:
        assert f"`{resource.uri}`" in page


def test_every_agents_configuration_can_be_read() -> None:
    page = (DOCS / "mcp.md").read_text()
    for block in re.findall(r"```json\n(.*?)```", page, re.DOTALL):
        assert json.loads(block)
    for block in re.findall(r"```toml\n(.*?)```", page, re.DOTALL):
        assert tomllib.loads(block)["mcp_servers"]["cacp"]
    for agent in ("Claude Code", "Codex", "Gemini CLI", "Cursor", "opencode"):
        assert f"### {agent}\n" in page


def test_the_options_of_serve_are_settings() -> None:
    serve = next(
        command
        for path, command in _commands(typer.main.get_command(app), "cacp")
        if path == "cacp serve"
    )
    for param in serve.params:
        # These are about the process, not about the node.
        if param.name not in ("attached", "config", "help"):
            assert param.name in Settings.model_fields
            assert f"CACP_{param.name.upper()}" in param.help


def _commands(group: Any, path: str) -> list[tuple[str, Any]]:
    found: list[tuple[str, Any]] = []
    for name, command in group.commands.items():
        full = f"{path} {name}"
        found += _commands(command, full) if hasattr(command, "commands") else [(full, command)]
    return found
