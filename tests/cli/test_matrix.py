"""`cacp matrix` against a node, and its tables."""

import json

from cli.matrix import table_of, totals_of
from tests.cli.run import cacp
from tests.support.node import Node
from tests.support.team import FRONTEND, REPO, Team


def test_it_shows_who_must_do_what(node: Node, team: Team) -> None:
    empty = cacp("matrix", team.project, url=node.url)
    assert empty.stdout == "Can it land? Not yet: there is no contract.\n"
    team.proposed(name="GET /one")
    shown = cacp("matrix", team.project, url=node.url)
    assert shown.exit_code == 0, shown.stderr
    head, row, _, totals, *_, verdict = shown.stdout.splitlines()
    assert head.split() == ["CONTRACT", "STATUS", REPO, FRONTEND]
    assert row.split() == ["GET", "/one", "proposed", "v1", "○", "agreed", "…", "must", "respond"]
    assert totals.split() == ["REPO", "VERIFIED", "MUST"]
    assert verdict.endswith("Not yet: 0 of 1 contracts verified. Missing: 1 to respond.")
    whole = json.loads(cacp("matrix", team.project, "--json", url=node.url).stdout)
    assert whole["totals"]["awaited"] == {"respond": 1}


def test_a_repo_or_what_is_missing(node: Node, team: Team) -> None:
    verified = team.implemented()
    team.frontend("implementation/verify", contractId=verified, result="success")
    none = cacp("matrix", team.project, "--missing", "--repo", FRONTEND, url=node.url)
    assert none.stderr == "No contract matches.\n"
    assert "Can it land? Yes: all 1 contracts are verified" in none.stdout
    link = cacp("matrix", team.project, "--missing", "--web", url=node.url)
    assert link.stdout == f"{node.url}/ui/projects/{team.project}/matrix?show=missing\n"
    unknown = cacp("matrix", team.project, "--repo", "nobody", url=node.url)
    assert unknown.exit_code == 1
    assert f"has no repo nobody: it has {REPO}, {FRONTEND}" in unknown.stderr


def test_a_repo_that_is_not_known_here_has_its_id() -> None:
    repo = {"repoId": "r1", "contracts": 1, "verified": 0, "awaited": {}}
    cell = {"repoId": "r1", "state": "stale", "version": 1}
    row = {"name": "a\nb", "status": "agreed", "version": 2, "cells": [cell]}
    shown = {"repos": [repo], "contracts": [row]}
    assert table_of(shown) == (
        ["CONTRACT", "STATUS", "r1"],
        [["a b", "agreed v2", "↺ stale v1"]],
    )
    assert totals_of(shown)[1] == [["r1", "0 of 1", "-"]]
