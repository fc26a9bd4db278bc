"""`cacp runs`."""

import doctest
import json

import pytest

from cli import runs
from tests.cli.run import cacp
from tests.support.node import Node
from tests.support.team import Team


def test_the_example_holds() -> None:
    assert doctest.testmod(runs).failed == 0


@pytest.fixture
def reported(team: Team) -> Team:
    task = {"id": "api", "status": "FAILED", "attempts": 2, "problem": "build\x1b[31m failed"}
    started = "2026-01-01T00:00:00Z"
    at = {"status": "RUNNING", "startedAt": started, "counts": {"FAILED": 1}, "tasks": [task]}
    team.backend("run/report", runId="nightly", reason="waits for its provider", **at)
    return team


def test_runs_are_listed(node: Node, reported: Team) -> None:
    done = cacp("runs", "--project", reported.project, url=node.url)
    assert done.exit_code == 0, done.stderr
    assert "nightly" in done.stdout
    assert "1 FAILED" in done.stdout


def test_one_is_shown_with_its_tasks(node: Node, reported: Team) -> None:
    done = cacp("runs", "nightly", "-p", reported.project, url=node.url)
    assert "waits for its provider" in done.stdout
    assert "api" in done.stdout
    assert "\x1b" not in done.stdout
    whole = cacp("runs", "nightly", "-p", reported.project, "--json", url=node.url)
    assert json.loads(whole.stdout)["tasks"][0]["attempts"] == 2


def test_one_needs_its_project(node: Node) -> None:
    done = cacp("runs", "nightly", url=node.url)
    assert done.exit_code == 2
    assert "--project" in done.stderr
