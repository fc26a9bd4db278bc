"""Tables and stories for people. Text of agents is data: it is cleaned, and never markup (§7)."""

import json
import os
import sys
from collections.abc import Iterable, Sequence
from typing import Any

from rich.console import Console, Group, RenderableType
from rich.table import Table
from rich.text import Text

from cli.proof_view import proof_lines
from cli.story import TONES, Json, Moment
from cli.terminal import dump
from cli.times import ago, clock
from schemas.plain import clean, one_line
from schemas.verification import VERIFIED_BY

PIPED_WIDTH = 160
WIDE = 120
"""From this many columns on, ids are shown whole."""
SHORT_ID = 18
"""Characters of an id in a narrower terminal: of a UUIDv7 the time, and 12 random bits."""
FLEXIBLE = ("NAME", "TYPE", "AGENT", "ENDPOINT", "FILES", "PROPOSED BY", "LAST ERROR")
TRUST_TONES = {"verified": "green", "known": "yellow", "unkeyed": "yellow"}
POLICIES = {"any": "one other party must agree", "all": "all other parties must agree"}
HEALTH_TONES = {"healthy": "green", "degraded": "yellow", "unhealthy": "red"}


def console(stderr: bool = False) -> Console:
    """A console without markup. When the output is not a terminal it is wide enough for ids."""
    piped = not sys.stdout.isatty() and "COLUMNS" not in os.environ
    return Console(
        stderr=stderr,
        markup=False,
        highlight=False,
        emoji=False,
        soft_wrap=False,
        width=PIPED_WIDTH if piped else None,
    )


def table(*heads: str, rows: Iterable[Sequence[RenderableType]]) -> Table:
    """A table without lines. A head that begins with # is for numbers. In a terminal that is too
    narrow, only the columns of `FLEXIBLE` are cut."""
    made = Table(box=None, pad_edge=False, padding=(0, 2, 0, 0), header_style="bold dim")
    for head in heads:
        number = head.startswith("#")
        made.add_column(
            head.removeprefix("#"),
            justify="right" if number else "left",
            no_wrap=head not in FLEXIBLE,
        )
    for row in rows:
        made.add_row(*row)
    return made


def data(value: object, style: str = "") -> Text:
    """Text from the node, on one line, cut at the end if it is too long."""
    return Text(one_line(value), style, overflow="ellipsis", no_wrap=True)


def short(id: str, width: int) -> Text:
    """An id as `cacp show` takes it, in a terminal of `width` columns."""
    return data(id if width >= WIDE else id[:SHORT_ID], "cyan")


def agent(agent_id: str, width: int) -> Text:
    """An agent id; in a narrower terminal without its scheme and version."""
    short_id = agent_id.removeprefix("aid://").rpartition("@")[0]
    return data(agent_id if width >= WIDE or not short_id else short_id, "cyan")


def count(number: int, thing: str) -> str:
    """A number with its noun, in the plural if needed.

    >>> count(1, "peer"), count(2_000, "peer")
    ('1 peer', '2,000 peers')
    """
    return f"{number:,} {thing}{'' if number == 1 else 's'}"


def status_mark(status: str) -> Text:
    return Text(f"● {one_line(status)}", TONES.get(status, "white"))


def listings(agents: Iterable[Json]) -> Table:
    """Agents as an ADP exchange lists them."""
    return table(
        "AGENT",
        "NAME",
        "ENDPOINT",
        "KEYED",
        rows=[
            (
                data(agent["aid"], "cyan"),
                data(agent.get("name", ""), "bold"),
                data(", ".join(_endpoints(agent))),
                data("yes" if agent.get("verified") else "no"),
            )
            for agent in agents
        ],
    )


def _endpoints(listing: Json) -> list[str]:
    protocols = listing["manifest"].get("invocation", {}).get("protocols", [])
    return [protocol["endpoint"] for protocol in protocols if "endpoint" in protocol]


def projects(listed: Iterable[Json], width: int) -> Table:
    return table(
        "NAME",
        "ID",
        "STATUS",
        "#REPOS",
        "#CONTRACTS",
        "#VERIFIED",
        "#WAITING",
        "UPDATED",
        rows=[
            (
                data(project["name"], "bold"),
                short(project["projectId"], width),
                data(project["status"]),
                data(project["repoCount"]),
                data(project["contractCount"]),
                # A node of an earlier release doesn't say.
                data(project.get("verifiedCount", "-")),
                data(project.get("waitingCount", "-")),
                Text(ago(project["updatedAt"]), "dim"),
            )
            for project in listed
        ],
    )


def contracts(listed: Iterable[Json], width: int) -> Table:
    wide = width >= WIDE
    return table(
        "NAME",
        "ID",
        *(["TYPE"] if wide else []),
        "#VERSION",
        "STATUS",
        "PROPOSED BY",
        rows=[
            (
                data(contract["name"], "bold"),
                short(contract["contractId"], width),
                *([data(contract["type"], "dim")] if wide else []),
                data(contract["version"]),
                status_mark(contract["status"]),
                data(contract.get("proposedByName") or contract["proposedBy"]),
            )
            for contract in listed
        ],
    )


def activity(changes: Iterable[Json], width: int) -> Table:
    """Changes as cacp/activity/list lists them."""
    return table(
        "WHEN",
        "AGENT",
        "KIND",
        "NAME",
        "OUTCOME",
        "PROJECT",
        rows=[
            (
                Text(clock(change["timestamp"]), "dim"),
                agent(change["actor"], width),
                data(change["kind"].replace("_", " ")),
                data(change.get("name") or change["id"], "bold"),
                data(change["outcome"].replace("_", " ")),
                data(change.get("project") or "-", "dim"),
            )
            for change in changes
        ],
    )


def peers(listed: Iterable[Json]) -> Table:
    return table(
        "AGENT",
        "REPO",
        "ENDPOINT",
        "TRUST",
        "LAST SEEN",
        rows=[
            (
                data(peer["agentId"], "cyan"),
                data(peer.get("repoName") or "-", "bold"),
                data(peer["endpoint"]),
                data(peer["trust"], TRUST_TONES.get(peer["trust"], "white")),
                Text(ago(peer["lastSeen"]), "dim"),
            )
            for peer in listed
        ],
    )


def node(url: str, health: Json, card: Json, counts: str | None) -> Group:
    """A node's health, agent and repo; and `counts`, if the caller may know them."""
    own = card.get("extensions", {}).get("cacp", {})
    reason = f" ({health['reason'].replace('_', ' ')})" if health.get("reason") else ""
    state = Text(f"● {one_line(health['status'] + reason)}", HEALTH_TONES.get(health["status"], ""))
    lines = [
        Text.assemble(state, "  ", data(health["repo"], "bold"), "  ", data(url, "dim")),
        *([data(f"  {health['detail']}", "yellow")] if health.get("detail") else []),
        Text.assemble(("  agent   ", "dim"), data(health["agentId"], "cyan")),
        Text.assemble(
            ("  repo    ", "dim"), data(f"{own.get('role', '-')}, {own.get('language', '-')}")
        ),
        Text.assemble(("  release ", "dim"), data(health["version"])),
    ]
    if counts is not None:
        lines.append(Text.assemble(("  holds   ", "dim"), counts))
    return Group(*lines)


def _proof_asked(policy: str) -> list[Text]:
    """What verifies a project's contracts, where that is more than a word."""
    return [] if policy == "word" else [Text(f"Verified by {VERIFIED_BY[policy]}.", "dim")]


def project_story(project: Json, moments: list[Moment], left_out: int, width: int) -> Group:
    """A project: its repos, its contracts and its packets, of which `left_out` are not shown."""
    parts: list[RenderableType] = [
        Text.assemble(data(project["name"], "bold"), "  ", data(project["status"], "yellow")),
        Text(clean(project["objective"]), "italic"),
        Text.assemble(
            ("project ", "dim"),
            data(project["projectId"], "cyan"),
            (f"   created {ago(project['createdAt'])}", "dim"),
        ),
        Text(POLICIES.get(project["agreementPolicy"], ""), "dim"),
        *_proof_asked(project["verificationPolicy"]),
        _head("Repos"),
        table(
            "REPO",
            "ROLE",
            "LANGUAGE",
            "AGENT",
            rows=[
                (
                    data(repo["name"], "bold"),
                    data(repo["role"]),
                    data(repo["language"]),
                    agent(repo["agent_id"], width)
                    if repo.get("agent_id")
                    else Text("nobody yet", "dim"),
                )
                for repo in project["repos"]
            ],
        ),
    ]
    if project["contracts"]:
        parts += [_head("Contracts"), contracts(project["contracts"], width)]
    if moments:
        earlier = f", {left_out} earlier left out" if left_out else ""
        parts += [_head(f"What was said{earlier}"), timeline(moments)]
    return Group(*parts)


def contract_story(
    contract: Json, facts: Json, project: Json, moments: list[Moment], width: int
) -> Group:
    """A contract: its status, parties, history and content. `facts` are those of `show.tell`."""
    names = repo_names(project)
    parts: list[RenderableType] = [
        Text.assemble(data(contract["name"], "bold"), "  ", data(contract["type"], "dim")),
        _path(contract["status"]),
        Text.assemble(
            ("contract ", "dim"),
            data(contract["contract_id"], "cyan"),
            ("   version ", "dim"),
            str(contract["version"]),
            ("   project ", "dim"),
            data(project["name"]),
        ),
        _head("Parties"),
        _parties(contract, facts, project, width),
        *_proof(facts.get("proof"), names),
        _head("Story"),
        timeline(moments),
    ]
    for lost in facts["conflicts"]:
        parts += [_head(f"Version {lost['version']} lost a race"), _conflict(lost, names)]
    parts += [_head(f"Version {contract['version']}"), Text(dump(contract["content"]))]
    return Group(*parts)


def timeline(moments: Iterable[Moment]) -> Table:
    made = Table(box=None, show_header=False, pad_edge=False, padding=(0, 2, 0, 0))
    made.add_column(no_wrap=True)
    made.add_column(no_wrap=True)
    made.add_column(overflow="fold")
    for moment in moments:
        did = Text(one_line(moment.did), moment.tone)
        if moment.why:
            did.append(": ", "dim")
            did.append(one_line(moment.why), "default")
        for line in moment.diff:
            did.append("\n" + one_line(line), "green" if line.startswith("+") else "red")
        made.add_row(Text(clock(moment.at), "dim"), data(moment.who, "bold"), did)
    return made


def repo_names(project: Json) -> dict[str, str]:
    """The name of each repo of a project, by id."""
    return {repo["repo_id"]: repo["name"] for repo in project["repos"]}


def short_agent(agent_id: str) -> str:
    """An agent's name without its scheme, host and version.

    >>> short_agent("aid://example.com/frontend@1.0.0")
    'frontend'
    """
    return one_line(agent_id.rpartition("/")[2].partition("@")[0] or agent_id)


def _path(status: str) -> Text:
    """The states in order, with the current one in its colour."""
    states = list(TONES)
    reached = states.index(status) if status in states else -1
    path = Text()
    for place, (state, tone) in enumerate(TONES.items()):
        if place:
            path.append(" ─ ", "dim")
        if place == reached:
            path.append(f"● {state}", f"bold {tone}")
        else:
            path.append(state, "dim")
    return path


def _parties(contract: Json, facts: Json, project: Json, width: int) -> Table:
    answers: dict[str, Any] = {}
    for entry in facts["timeline"]:
        if entry["version"] != contract["version"]:
            continue
        if entry["step"] in ("proposed", "updated"):
            answers[entry["repoId"]] = Text("author", "dim")
        elif entry["step"] in ("agreed", "change_requested", "rejected"):
            tone = {"agreed": "cyan", "change_requested": "magenta"}.get(entry["step"], "red")
            answers[entry["repoId"]] = Text(entry["step"].replace("_", " "), tone)
    work = {
        implementation["repo_id"]: implementation for implementation in contract["implementations"]
    }
    agents = {repo["repo_id"]: repo.get("agent_id") for repo in project["repos"]}
    names = repo_names(project)
    waiting = Text("-", "dim")
    return table(
        "REPO",
        "AGENT",
        "ANSWER",
        "WORK",
        "FILES",
        rows=[
            (
                data(names.get(party, party), "bold"),
                agent(agents[party], width) if agents.get(party) else Text("nobody yet", "dim"),
                answers.get(party, waiting),
                _work(work[party]["status"]) if party in work else waiting,
                data(", ".join(work[party]["files"]) or "-") if party in work else waiting,
            )
            for party in facts["parties"]
        ],
    )


def _work(status: str) -> Text:
    tone = {"complete": "green", "needs_revision": "red"}.get(status, "blue")
    return Text(one_line(status.replace("_", " ")), tone)


def _proof(proof: Json | None, names: dict[str, str]) -> list[RenderableType]:
    lines = proof_lines(proof, names)
    return [_head("Proof"), *lines] if lines else []


def _conflict(lost: Json, names: dict[str, str]) -> Group:
    by = one_line(names.get(lost["proposedBy"], lost["proposedBy"]))
    note = f": {one_line(lost['changeNotes'])}" if lost.get("changeNotes") else ""
    parties = ""
    # Older nodes don't send them.
    if set(lost.get("parties", ())) != set(lost.get("currentParties", ())):
        bound = ", ".join(one_line(names.get(party, party)) for party in lost["parties"])
        parties = f", for {bound}"
    return Group(
        Text(f"by {by} at {clock(lost['timestamp'])}{parties}{note}", "red"),
        Text(clean(json.dumps(lost["content"], ensure_ascii=False, indent=2)), "dim"),
    )


def _head(title: str) -> Text:
    return Text(f"\n{one_line(title)}", "bold underline")
