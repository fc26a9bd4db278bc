"""A project's board and its story, for a terminal."""

from collections.abc import Iterable, Iterator
from typing import Any

from rich.console import Group, RenderableType
from rich.table import Table
from rich.text import Text

from cli.times import ago, clock
from cli.views import agent, count, data, short, status_mark, table
from schemas.plain import one_line

Json = dict[str, Any]


def board(shown: Json, width: int) -> Group:
    """The result of cacp/project/board."""
    parts: list[RenderableType] = [
        Text.assemble(data(shown["name"], "bold"), "  ", data(shown["status"], "yellow")),
        Text(_progress(shown["progress"])),
    ]
    waiting = [repo for repo in shown["repos"] if repo["contractCount"]]
    if waiting:
        parts += [Text(), Text("Waiting for", "bold"), _repos(waiting, width)]
    parts += [*_columns(shown["columns"], width)]
    if shown["questions"]:
        parts += [Text(), Text(f"Open questions ({shown['questionCount']})", "bold")]
        parts.append(
            table(
                "FROM",
                "ASKED",
                "QUESTION",
                rows=[
                    (
                        data(asked.get("name") or asked["repoId"], "bold"),
                        ago(asked["askedAt"]),
                        data(asked["question"]),
                    )
                    for asked in shown["questions"]
                ],
            )
        )
    return Group(*parts)


def state_at(shown: Json, width: int) -> Group:
    """The result of cacp/project/stateAt."""
    parts: list[RenderableType] = [
        Text.assemble(
            data(shown["name"], "bold"),
            f"  as it was at {shown['at']}, after change {shown['change']} of "
            f"{shown['changeCount']}",
        ),
        Text(_progress(shown["progress"])),
        *_columns(shown["columns"], width),
    ]
    if shown["steps"]:
        parts += [Text(), Text("Done then", "bold"), steps(shown["steps"])]
    parts += [Text(one_line(sentence), "yellow") for sentence in shown["unknown"]]
    return Group(*parts)


def steps(moments: Iterable[Json]) -> Table:
    """The steps of a project's story, in the order given."""
    return table(
        "WHEN",
        "REPO",
        "STEP",
        "NAME",
        "NOTE",
        rows=[
            (
                Text(clock(step["timestamp"]), "dim"),
                data(step.get("repo") or step.get("agentId") or "-", "bold"),
                data(step["step"].replace("_", " ")),
                data(step.get("name") or "-"),
                data(step.get("note") or ""),
            )
            for step in moments
        ],
    )


def _progress(progress: Json) -> str:
    contracts = count(progress["contractCount"], "contract")
    return (
        f"{progress['verifiedCount']:,} of {contracts} verified, "
        f"{progress['waitingCount']:,} waiting"
    )


def _repos(repos: Iterable[Json], width: int) -> Table:
    def awake(repo: Json) -> str:
        if "lastSeen" not in repo:
            return "-"
        return "awake" if repo["isAwake"] else f"seen {ago(repo['lastSeen'])}"

    return table(
        "REPO",
        "AGENT",
        "SEEN",
        "#CONTRACTS",
        "SINCE",
        "STEPS",
        rows=[
            (
                data(repo["name"], "bold"),
                agent(repo["agentId"], width) if "agentId" in repo else Text("nobody yet", "dim"),
                data(awake(repo)),
                data(repo["contractCount"]),
                Text(ago(repo["waitingSince"]), "dim"),
                data(", ".join(f"{kind} {number}" for kind, number in repo["steps"].items())),
            )
            for repo in repos
        ],
    )


def _columns(columns: Iterable[Json], width: int) -> Iterator[RenderableType]:
    for column in columns:
        if not column["count"]:
            continue
        yield Text()
        yield Text.assemble(status_mark(column["status"]), (f"  {column['count']:,}", "dim"))
        yield table(
            "NAME",
            "ID",
            "WAITS FOR",
            "SINCE",
            rows=[
                (
                    data(contract["name"], "bold"),
                    short(contract["contractId"], width),
                    data(_awaited(contract["awaitedSteps"]) or "-"),
                    Text(ago(contract.get("waitingSince") or contract["updatedAt"]), "dim"),
                )
                for contract in column["contracts"]
            ],
        )
        left = column["count"] - len(column["contracts"])
        if left:
            yield Text(f"{left:,} more", "dim")


def _awaited(awaited: Iterable[Json]) -> str:
    """The steps by kind with the repos that must take them.

    >>> _awaited([{"kind": "respond", "repoId": "1", "name": "web"}])
    'respond: web'
    """
    repos: dict[str, list[str]] = {}
    for step in awaited:
        repos.setdefault(step["kind"], []).append(step.get("name") or step["repoId"])
    # One verification is enough.
    return "; ".join(
        f"{kind}: {(' or ' if kind == 'verify' else ', ').join(names)}"
        for kind, names in repos.items()
    )
