"""One casing in the output of every command that takes --json."""

import doctest
import json
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import typer

from cli import casing
from cli.casing import OPAQUE
from cli.main import app
from cli.mesh_view import NodeView, as_json
from server.store.opening import prepare
from tests.cli.run import cacp
from tests.support.in_process_node import package
from tests.support.node import AGENT, Node
from tests.support.team import FRONTEND_AGENT, Team

CAMEL = re.compile(r"[a-z][a-zA-Z0-9]*")
SPECIFIED = frozenset(
    {"card", "message", "messages", "package", "waiting", "lines", "unread", "read", "counts"}
)
"""Members that another specification names: an ADP card, ACP messages and packages; files of an
export; the statuses of the threader's tasks."""
OTHER_FORMATS = ("cacp comply ", "cacp thread ", "cacp wire ", "cacp discover", "cacp known")
"""Their output is that of another specification."""
ELSEWHERE = (
    *("cacp approve", "cacp mesh", "cacp watch", "cacp project ", "cacp repos "),
    *("cacp connect", "cacp disconnect", "cacp cluster", "cacp verify", "cacp pull"),
)
"""They need a human's key or a runner's, end with Ctrl-C, print what a method answers to a change,
or change the files of a repository."""


def test_the_examples_hold() -> None:
    assert doctest.testmod(casing).failed == 0


def other_names(value: Any, path: str = "") -> Iterator[str]:
    """The names in a value that are not in camelCase, outside of what agents wrote."""
    if isinstance(value, list):
        for item in value:
            yield from other_names(item, path)
    if isinstance(value, dict):
        for name, member in value.items():
            if not CAMEL.fullmatch(name):
                yield f"{path}.{name}"
            if name not in OPAQUE | SPECIFIED:
                yield from other_names(member, f"{path}.{name}")


def commands_with_json() -> Iterator[str]:
    def walk(group: Any, path: str) -> Iterator[str]:
        for name, command in group.commands.items():
            if hasattr(command, "commands"):
                yield from walk(command, f"{path} {name}")
            elif any("--json" in param.opts for param in command.params):
                yield f"{path} {name}"

    for path in walk(typer.main.get_command(app), "cacp"):
        if not path.startswith((*OTHER_FORMATS, *ELSEWHERE)):
            yield path


def _proof_files(folder: Path) -> tuple[Path, Path]:
    """A folder with samples, and a recording."""
    samples, recording = folder / "samples", folder / "calls.jsonl"
    samples.mkdir()
    (samples / "a.json").write_text('{"email": "a"}')
    (folder / "model.json").write_text('{"email": "string"}')
    asked = {"method": "GET", "path": "/a", "query": "", "headers": []}
    answered = {"status": 200, "headers": []}
    entry = {"at": "2026-01-01T00:00:00Z", "contract": None}
    recording.write_text(json.dumps(entry | {"request": asked, "response": answered}))
    return samples, recording


@pytest.fixture(scope="module")
def calls(node: Node, tmp_path_factory: pytest.TempPathFactory) -> dict[str, list[str]]:
    """The arguments with which each command prints JSON, on a project with all that it may have."""
    folder: Path = tmp_path_factory.mktemp("casing")
    prepare(folder / "moved.db")
    team = Team.on(node, node.key(FRONTEND_AGENT, "frontend-app"))
    contract = team.proposed()
    team.frontend("context/askQuestion", question="Why?", relatedContracts=[contract])
    team.frontend("contract/respond", contractId=contract, action="agree", comment="yes")
    for agent in (team.backend, team.frontend):
        agent("implementation/start", contractId=contract, plan="a view")
        agent("implementation/complete", contractId=contract, files=["me.py"])
    for name in ("old", "new"):
        content = {"method": "GET", "path": "/a", "response": {name: "string?"}}
        (folder / f"{name}.json").write_text(json.dumps(content))
    samples, recording = _proof_files(folder)
    offer = {"to": AGENT, "reason": "r", "package": package("casing")}
    offered = node.call("acp/handoff", key=team.key, action="initiate", **offer)
    handoff = offered["handoff"]["handoffId"]
    return {
        "cacp activity": [],
        "cacp agents": [],
        "cacp acp export": [str(folder / "mail")],
        "cacp backup": [str(folder / "copy.db")],
        "cacp call": ["cacp/project/list", "summary:=true"],
        "cacp clock deferred": [],
        "cacp clock repair": [],
        "cacp contracts": [team.project],
        "cacp compat": [str(folder / "old.json"), str(folder / "new.json")],
        "cacp diff": [contract],
        "cacp doctor": [],
        "cacp export": [str(folder / "dump")],
        "cacp inbox": [],
        "cacp keys operator": [],
        "cacp handoff show": [handoff],
        "cacp handoff check": [handoff],
        "cacp invite create": [],
        "cacp invite list": [],
        "cacp keys create": ["aid://example.com/casing@1.0.0", "--repo", "casing"],
        "cacp keys list": [],
        "cacp migrate": ["--check"],
        "cacp move": ["--from", str(folder / "moved.db"), "--to", str(folder / "new.db")],
        "cacp mock check": [str(recording), "--file", str(folder / "new.json")],
        "cacp next": [],
        "cacp peers": [],
        "cacp peers bans": [],
        "cacp peers deferred": [],
        "cacp peers evidence": ["aid://example.com/nobody@1.0.0"],
        "cacp peers list": [],
        "cacp probe": ["--file", str(folder / "model.json"), "--samples", str(samples)],
        "cacp projects": [],
        "cacp runs": [],
        "cacp search": ["why"],
        "cacp send": [FRONTEND_AGENT, "-m", "casing"],
        "cacp show": [contract],
        "cacp matrix": [team.project],
        "cacp graph": [team.project, "--contract", contract],
        "cacp status": [],
        "cacp tokens create": [team.project, "--agent", FRONTEND_AGENT],
        "cacp tokens list": [],
    }


def test_every_command_is_called(calls: dict[str, list[str]]) -> None:
    assert set(commands_with_json()) == set(calls) - {"cacp peers"}


@pytest.mark.parametrize("command", [*commands_with_json()])
def test_every_name_is_in_camel_case(node: Node, calls: dict[str, list[str]], command: str) -> None:
    words = [*command.split()[1:], *calls[command], "--json"]
    done = cacp(*words, url=node.url, db=str(node.db), port="0")
    assert done.exit_code in (0, 1), done.stderr
    assert [*other_names(json.loads(done.stdout))] == []


def test_so_are_the_names_of_a_mesh() -> None:
    assert [*other_names(as_json([NodeView("a", "http://a")]))] == []
