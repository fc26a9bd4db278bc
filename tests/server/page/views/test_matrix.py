"""The matrix as a page: who must do what, and whether it can land."""

from typing import Any

import pytest

from server.page.views import matrix as view
from tests.support.node import Node
from tests.support.team import FRONTEND, REPO, Team

BROWSER = {"accept": "text/html"}


def shown(node: Node, team: Team, query: str = "") -> tuple[dict[str, Any], str]:
    """The twin and the text of the page."""
    path = f"/ui/projects/{team.project}/matrix"
    page = node.http.get(f"{path}?{query}", headers=BROWSER)
    assert page.status_code == 200, page.text
    return node.http.get(f"{path}.json?{query}").json(), page.text


def test_a_project_without_contracts_says_what_makes_one(node: Node, team: Team) -> None:
    twin, text = shown(node, team)
    assert twin["verdict"] == "Not yet: there is no contract."
    assert "cacp/contract/propose" in text
    assert f"No contract binds <bdi>{REPO}</bdi>, <bdi>{FRONTEND}</bdi>" in text


def test_each_cell_is_a_word_a_sign_and_a_sentence(node: Node, team: Team) -> None:
    verified = team.implemented(name="GET /done")
    team.frontend("implementation/verify", contractId=verified, result="success")
    team.proposed(name="<b>GET</b> 'open'")
    twin, text = shown(node, team)
    assert "1 of 2 contracts verified. Missing: 1 to respond." in text
    done, waiting = twin["contracts"]
    assert {cell["label"] for cell in done["cells"].values()} == {"verified"}
    [awaited] = [cell for cell in waiting["cells"].values() if cell["state"] == "awaited"]
    assert (awaited["label"], awaited["sign"]) == ("must respond", "…")
    assert f"by word of {FRONTEND}" in text
    assert 'data-state="awaited"' in text
    assert "&lt;b&gt;GET&lt;/b&gt;" in text
    assert "<b>GET" not in text


def test_only_what_is_missing_or_of_one_repo(node: Node, team: Team) -> None:
    verified = team.implemented(name="GET /done")
    team.frontend("implementation/verify", contractId=verified, result="success")
    twin, text = shown(node, team, "show=missing")
    assert (twin["contracts"], twin["matching"]) == ([], 0)
    assert "No contract matches" in text
    team.proposed(name="GET /own", parties=[REPO])
    twin, text = shown(node, team, f"repo={FRONTEND}")
    assert [row["name"] for row in twin["contracts"]] == ["GET /done"]
    assert [repo["name"] for repo in twin["columns"]] == [FRONTEND, REPO]
    assert f'<option value="{team.repo_id(FRONTEND)}" selected>' in text
    refused = node.http.get(f"/ui/projects/{team.project}/matrix?repo=nobody", headers=BROWSER)
    assert refused.status_code == 404


def test_a_wide_matrix_has_fewer_rows(
    node: Node, team: Team, monkeypatch: pytest.MonkeyPatch
) -> None:
    from server.page.view import VIEWS

    asked: dict[str, Any] = {}
    cells = [{"repoId": f"r{n}", "state": "agreed", "side": "consumer"} for n in range(2)]
    rows = [
        {"contractId": f"c{n:03}", "name": "n", "cells": [{**c, "version": 1} for c in cells]}
        for n in range(view.ROWS_MAX)
    ]
    repos = [{"repoId": f"r{n}", "contracts": 1, "verified": 0, "awaited": {}} for n in range(60)]

    class Call:
        path = {"project_id": "p"}
        query = {"after": "c"}

        def ask(self, method: str, **params: Any) -> Any:
            asked.update(params)
            totals = {"contracts": 100, "verified": 0, "complete": False, "awaited": {}}
            return {"repos": repos, "contracts": rows, "totals": totals, "nextCursor": "c099"}

    monkeypatch.setitem(VIEWS, "contract", VIEWS["matrix"])
    page = view.matrix(Call())  # type: ignore[arg-type]
    assert (asked["cursor"], asked["limit"]) == ("c", view.ROWS_MAX)
    assert len(page["contracts"]) == view.CELLS_MAX // 60
    assert page["nextCursor"] == page["contracts"][-1]["contractId"]
    assert page["contracts"][0]["href"].startswith("/ui/projects/p/")
    assert page["columns"][0]["name"] == "unknown repo r0"
