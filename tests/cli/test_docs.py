"""docs/cli.md, settings.md and methods.md say what the code says."""

from typing import Any

import pytest
import typer

from cli.docs import DOCS, pages
from cli.main import app
from server.methods import METHODS
from server.settings import Settings


@pytest.mark.parametrize("name", ["cli.md", "settings.md", "methods.md"])
def test_the_page_is_up_to_date(name: str) -> None:
    assert (DOCS / name).read_text() == pages()[name], "run `make docs`"


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


def test_the_options_of_serve_are_settings() -> None:
    serve = next(
        command
        for path, command in _commands(typer.main.get_command(app), "cacp")
        if path == "cacp serve"
    )
    for param in serve.params:
        if param.name not in ("config", "help"):
            assert param.name in Settings.model_fields
            assert f"CACP_{param.name.upper()}" in param.help


def _commands(group: Any, path: str) -> list[tuple[str, Any]]:
    found: list[tuple[str, Any]] = []
    for name, command in group.commands.items():
        full = f"{path} {name}"
        found += _commands(command, full) if hasattr(command, "commands") else [(full, command)]
    return found
