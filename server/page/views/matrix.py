"""How far each repo is with each contract of a project."""

from typing import Any

from server.domain.matrix_text import MEANINGS, SIGNS, duties, label, sentence, verdict
from server.page.view import VIEWS, Page, PageCall, url_of, view

ROWS_MAX = 100
ROWS_MIN = 10
CELLS_MAX = 1_200
"""The most cells of a page, unless that is less than ROWS_MIN rows."""


@view(
    "matrix",
    "/ui/projects/{project_id}/matrix",
    title="Matrix",
    kinds=("contract", "repo", "project"),
)
def matrix(call: PageCall) -> Page:
    """How far each repo is with each contract of a project, and what is missing."""
    project_id = call.path["project_id"]
    shown: Page = call.ask(
        "cacp/project/matrix",
        projectId=project_id,
        repo=call.query.get("repo"),
        missing=call.query.get("show") == "missing",
        limit=ROWS_MAX,
        cursor=call.query.get("after"),
    )
    repos = [{"name": f"unknown repo {repo['repoId']}"} | repo for repo in shown["repos"]]
    columns = [repo | {"missing": duties(repo["awaited"])} for repo in repos if repo["contracts"]]
    rows = max(ROWS_MIN, CELLS_MAX // max(1, len(columns)))
    contracts = shown["contracts"][:rows]
    cursor = shown.get("nextCursor")
    if len(contracts) < len(shown["contracts"]):
        cursor = contracts[-1]["contractId"]
    names = {repo["repoId"]: repo["name"] for repo in columns}
    chosen = call.query.get("repo")
    if chosen:
        parties = {cell["repoId"] for row in contracts for cell in row["cells"]}
        columns = [repo for repo in columns if repo["repoId"] in parties]
        columns.sort(key=lambda repo: chosen not in (repo["repoId"], repo["name"]))
    return shown | {
        "verdict": verdict(shown["totals"]),
        "contracts": [_row(project_id, row, names) for row in contracts],
        "nextCursor": cursor,
        "repos": repos,
        "columns": columns,
        "idle": [repo["name"] for repo in repos if not repo["contracts"]],
        "legend": legend(),
    }


def legend() -> list[dict[str, str]]:
    """Each state of a cell with its sign and its meaning."""
    return [
        {"state": state, "sign": SIGNS[state], "meaning": meaning}
        for state, meaning in MEANINGS.items()
    ]


def _row(project_id: str, row: dict[str, Any], names: dict[str, str]) -> dict[str, Any]:
    href = None
    if "contract" in VIEWS:
        href = url_of("contract", project_id=project_id, contract_id=row["contractId"])
    cells = {
        cell["repoId"]: cell
        | {"sign": SIGNS[cell["state"]], "label": label(cell), "says": sentence(cell, names)}
        for cell in row["cells"]
    }
    return row | {"href": href, "cells": cells}
