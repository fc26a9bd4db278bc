"""The lines of `cacp watch` for people: who did what, with names in place of ids."""

from typing import Any, NamedTuple

from rich.text import Text

from cli.client import NodeClient, NodeError
from cli.story import TONES, packet_said
from cli.times import clock
from cli.views import short_agent
from schemas.plain import one_line

WHO, DID, OUTCOME = 12, 9, 13
"""Columns of a line's parts; the last part takes the rest."""

Json = dict[str, Any]


class ChangeSubject(NamedTuple):
    """What a change is about. `did` and `outcome` take the place of the method and the status;
    `outcome` is empty for what has none."""

    did: str
    outcome: str
    name: str
    project: str = ""


def change_line(change: Json, subject: ChangeSubject) -> Text:
    """A change on one line: the caller cuts it to the terminal's width."""
    who = short_agent(change["actor"])
    line = Text.assemble(
        (clock(change["at"]), "dim"),
        "  ",
        (f"{one_line(who, WHO):<{WHO}}  ", "bold"),
        f"{one_line(subject.did, DID):<{DID}}  ",
    )
    if subject.outcome:
        tone = TONES.get(subject.outcome, "white")
        line.append(f"{'● ' + one_line(subject.outcome, OUTCOME - 2):<{OUTCOME}}  ", tone)
    line.append(one_line(subject.name))
    if subject.project:
        line.append(f" · {one_line(subject.project)}", "dim")
    return line


class ChangeNames:
    """Asks the node once for the name of each project, repo and contract."""

    def __init__(self, node: NodeClient) -> None:
        self._node = node
        self._projects: dict[str, Json] = {}
        self._contracts: dict[str, str] = {}

    def subject(self, change: Json, *, with_project: bool) -> ChangeSubject:
        """What a change is about; `with_project` names the project too."""
        did, outcome = change["action"].rpartition("/")[2], change["outcome"]
        project = self._project(change.get("projectId"))
        project_name = project.get("name", "") if with_project else ""
        if change["entity"] == "context":
            asks, text = self._packet(change)
            return ChangeSubject(asks, "", text, project_name)
        if change["entity"] == "project":
            name = project.get("name") or change["entityId"]
            return ChangeSubject(did, outcome, f"project {name}")
        if change["entity"] == "contract":
            name = self._contract(change)
        else:
            name = self._other(change, project)
        return ChangeSubject(did, outcome, name, project_name)

    def _project(self, project_id: str | None) -> Json:
        if project_id is None:
            return {}
        known = self._projects.get(project_id)
        if known is None:
            which = {"projectId": project_id, "summary": True}
            known = self._projects[project_id] = self._ask("cacp/project/get", which) or {}
        return known

    def _contract(self, change: Json) -> str:
        name = self._contracts.get(change["entityId"])
        if name is None:
            which = {"projectId": change["projectId"], "contractId": change["entityId"]}
            contract = self._ask("cacp/contract/get", which) or {}
            name = str(contract.get("name") or f"contract {change['entityId']}")
            self._contracts[change["entityId"]] = name
        return name

    def _other(self, change: Json, project: Json) -> str:
        kind, id = change["entity"], change["entityId"]
        repos = {repo["repo_id"]: repo["name"] for repo in project.get("repos", [])}
        if kind == "repo" and id not in repos:
            # It has come after the project was asked for.
            self._projects.pop(change["projectId"], None)
            repos = {
                repo["repo_id"]: repo["name"]
                for repo in self._project(change["projectId"]).get("repos", [])
            }
        name = repos.get(id) or (self._contract(change) if kind == "conflict" else id)
        return f"{kind.replace('_', ' ')} {name}"

    def _packet(self, change: Json) -> tuple[str, str]:
        """What a packet's agent did, as one word where there is one, and the packet's text."""
        which = {"projectId": change["projectId"], "packetId": change["entityId"]}
        thread = (self._ask("cacp/context/getThread", which) or {}).get("thread", [])
        for packet in thread:
            if packet["packet_id"] == change["entityId"]:
                did, _, why = packet_said(packet)
                word, _, rest = did.partition(" ")
                return word, f"{rest}: {why}" if rest else why
        return "shares", f"packet {change['entityId']}"

    def _ask(self, method: str, params: Json) -> Any:
        try:
            return self._node.call(method, params)
        except NodeError:
            return None
