"""How far each repo is with each contract of a project."""

from typing import Any

from server.page.view import VIEWS, Page, PageCall, url_of, view

ROWS_MAX = 100
ROWS_MIN = 10
CELLS_MAX = 1_200
"""The most cells of a page, unless that is less than ROWS_MIN rows."""

SIGNS = {
    "awaited": "…",
    "objected": "✗",
    "agreed": "○",
    "building": "◔",
    "built": "●",
    "verified": "✓",
    "stale": "↺",
    "broken": "!",
}
"""The sign of each state of a cell: colour is never alone."""
MEANINGS = {
    "awaited": "must respond, or revise what others object to",
    "objected": "asked for a change, or rejected",
    "agreed": "agreed, not begun",
    "building": "is building it",
    "built": "has built it",
    "verified": "all have built it, and a verification passed",
    "stale": "built an older version",
    "broken": "a verification failed: must repair it",
}
DUTIES = {
    "respond": "respond",
    "revise": "revise",
    "implement": "build",
    "repair": "repair",
    "verify": "verify",
}
"""What is awaited of a party, as in "must build"."""


@view(
    "matrix",
    "/ui/projects/{project_id}/matrix",
    title="Matrix",
    kinds=("contract", "repo", "project"),
)
def matrix(call: PageCall) -> Page:
    """How far each repo is with each contract of a project, and what is missing."""
    project_id = call.path["project_id"]
    shown = call.ask(
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


def verdict(totals: dict[str, Any]) -> str:
    """Whether all is verified and, if not, what is missing: one line.

    >>> awaited = {"respond": 1, "implement": 2}
    >>> verdict({"complete": False, "contracts": 3, "verified": 1, "awaited": awaited})
    'Not yet: 1 of 3 contracts verified. Missing: 1 to respond, 2 to build.'
    """
    if not totals["contracts"]:
        return "Not yet: there is no contract."
    if totals["complete"]:
        return f"Yes: all {totals['contracts']} contracts are verified, by the word of agents."
    missing = duties(totals["awaited"])
    return (
        f"Not yet: {totals['verified']} of {totals['contracts']} contracts verified."
        f"{f' Missing: {missing}.' if missing else ''}"
    )


def duties(awaited: dict[str, int]) -> str:
    """How many steps of each kind are awaited, in the order in which they are taken."""
    return ", ".join(
        f"{awaited[kind]} to {duty}" for kind, duty in DUTIES.items() if awaited.get(kind)
    )


def _row(project_id: str, row: dict[str, Any], names: dict[str, str]) -> dict[str, Any]:
    href = None
    if "contract" in VIEWS:
        href = url_of("contract", project_id=project_id, contract_id=row["contractId"])
    cells = {
        cell["repoId"]: cell
        | {"sign": SIGNS[cell["state"]], "label": label(cell), "says": says(cell, names)}
        for cell in row["cells"]
    }
    return row | {"href": href, "cells": cells}


def label(cell: dict[str, Any]) -> str:
    """A cell in a word or two.

    >>> label({"state": "stale", "version": 1}), label({"state": "awaited", "awaited": "revise"})
    ('stale v1', 'must revise')
    """
    awaited = cell.get("awaited")
    if cell["state"] == "awaited" and awaited:
        return f"must {DUTIES[awaited]}"
    if cell["state"] != "stale":
        return str(cell["state"])
    return f"stale v{cell['version']}" + (f", {DUTIES[awaited]}" if awaited else "")


def says(cell: dict[str, Any], names: dict[str, str]) -> str:
    """A cell as a sentence, without its repo.

    >>> says({"state": "built", "version": 2, "awaited": "verify", "side": "provider"}, {})
    'provider, has built it: version 2, by word; must verify'
    """
    parts = f"{cell['side']}, {MEANINGS[cell['state']]}"
    if cell.get("evidence"):
        by = f" of {names.get(cell['by'], cell['by'])}" if "by" in cell else ""
        parts += f": version {cell['version']}, by {cell['evidence']}{by}"
    awaited = cell.get("awaited")
    return f"{parts}; must {DUTIES[awaited]}" if awaited and cell["state"] != "awaited" else parts
