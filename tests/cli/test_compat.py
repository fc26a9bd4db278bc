"""`cacp compat`: two files compared, or one with what a node has."""

import json
from pathlib import Path
from typing import Any

import pytest
from typer.testing import CliRunner

from cli.main import app
from tests.cli.run import cacp
from tests.support.node import Node
from tests.support.team import Team

YAML = """
openapi: 3.0.3
info: {title: t, version: "1"}
paths:
  /users/{id}:
    get:
      parameters: [{name: id, in: path, required: true, schema: {type: string}}]
      responses:
        200:
          description: it
          content:
            application/json:
              schema: {$ref: "schemas.yaml#/User"}
"""
USER = """
User:
  type: object
  required: [id]
  properties:
    id: {type: integer}
    born: {type: string, format: date, example: 2000-01-31}
"""


def run(*arguments: str | Path) -> Any:
    return CliRunner().invoke(app, ["compat", *map(str, arguments)])


@pytest.fixture
def folders(tmp_path: Path) -> tuple[Path, Path]:
    """Two folders with one document each, and the schemas beside it."""
    made = tmp_path / "old", tmp_path / "new"
    for folder in made:
        folder.mkdir()
        (folder / "api.yaml").write_text(YAML)
        (folder / "schemas.yaml").write_text(USER)
    return made


def test_what_is_the_same_is_fine(folders: tuple[Path, Path]) -> None:
    done = run(folders[0] / "api.yaml", folders[1] / "api.yaml")
    assert done.exit_code == 0, done.output
    assert "openapi: consumers as built today meet a newer provider: same" in done.output


def test_a_break_in_a_file_beside_is_told_with_its_place(folders: tuple[Path, Path]) -> None:
    old, new = folders
    (new / "schemas.yaml").write_text(USER.replace("type: integer", "type: string"))
    done = run(old / "api.yaml", new / "api.yaml")
    assert done.exit_code == 1
    assert "breaks both sides  $.User.properties.id.type" in done.output
    assert 'type changed: ["integer"] → ["string"]' in done.output
    answer = json.loads(run(old / "api.yaml", new / "api.yaml", "--json").stdout)
    assert (answer["verdict"], answer["changes"][0]["breaks"]) == ("breaking", "both")


def test_the_side_that_is_asked_for_decides(tmp_path: Path) -> None:
    old, new = tmp_path / "old.json", tmp_path / "new.json"
    old.write_text(json.dumps({"method": "GET", "path": "/a", "response": {"a": "string"}}))
    more = {"a": "string", "b": "string"}
    new.write_text(json.dumps({"method": "GET", "path": "/a", "response": more}))
    assert run(old, new).exit_code == 0
    assert run(old, new, "--side", "provider").exit_code == 1
    assert run(old, new, "--side", "both").exit_code == 1
    assert run(old, new, "--side", "server").exit_code == 2


def test_what_is_unknown_is_not_fine(tmp_path: Path) -> None:
    old, new = tmp_path / "old.json", tmp_path / "new.json"
    old.write_text('{"retries": 3}')
    new.write_text('{"retries": 4}')
    done = run(old, new)
    assert done.exit_code == 1
    assert "opaque" in done.output
    assert "unknown  $.retries" in done.output


@pytest.mark.parametrize(
    ("name", "text", "problem"),
    [
        ("a.json", "{", "is not JSON"),
        ("a.yaml", "a: [", "neither JSON nor YAML"),
        ("a.yaml", "- 1", "holds no object"),
        ("a.yaml", "a: !!python/object:os.system {}", "neither JSON nor YAML"),
        ("a.json", '{"openapi": 3}', "at $"),
    ],
)
def test_a_file_that_cannot_be_read_is_named(
    tmp_path: Path, name: str, text: str, problem: str
) -> None:
    file = tmp_path / name
    file.write_text(text)
    dialect = ["--dialect", "openapi"] if "openapi" in text else []
    done = run(file, file, *dialect)
    assert done.exit_code == 2
    assert problem in done.output
    assert "Traceback" not in done.output
    assert run(tmp_path / "none.json", file).exit_code == 2


def test_a_file_is_compared_with_a_contract_before_anybody_asks_for_the_change(
    tmp_path: Path, node: Node, team: Team
) -> None:
    content = {"method": "GET", "path": "/a", "response": {"total": "integer"}}
    made = team.backend("contract/propose", type="api_endpoint", name="Get total", content=content)
    contract = {"contractId": made["contractId"]}
    team.frontend("contract/respond", **contract, action="agree")
    new = tmp_path / "new.json"
    new.write_text(json.dumps({**content, "response": {"total": "string"}}))

    done = cacp("compat", str(new), "--contract", "Get total", url=node.url)
    assert done.exit_code == 1
    assert "a newer provider: breaking" in done.output
    assert "It burdens backend-api, frontend-app, against version 1." in done.output
    assert 'type changed: ["integer"] → ["string"]' in done.output
    assert team.frontend("contract/get", **contract)["version"] == 1

    new.write_text(json.dumps(content))
    done = cacp("compat", str(new), "--contract", "Get total", "--json", url=node.url)
    assert done.exit_code == 0
    assert json.loads(done.stdout)["verdict"] == "same"

    for wrong, status, problem in (
        ([str(new), "--contract", "Get none"], 1, "no project or contract here is named Get none"),
        ([str(new), "--contract", team.project], 1, "is a project"),
        ([str(new), "--contract", "Get total", "--dialect", "openapi"], 1, "not valid openapi"),
        ([str(new), str(new), "--contract", "Get total"], 2, "NEW alone"),
        ([str(new)], 2, "name two files"),
    ):
        done = cacp("compat", *wrong, url=node.url)
        assert done.exit_code == status, done.output
        assert problem in done.output
