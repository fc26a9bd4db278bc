"""What a foreign peer shows of a project, and how what it lacks is written to it (design §8). Pure.

A foreign peer takes an object that is newer than its own, by a time that it stamped with its own
clock. So an object is sent with the time that the peer showed, plus a step: the peer takes it
exactly if it has changed nothing since, and no clock is ever compared with another.
"""

from collections.abc import Collection, Mapping
from dataclasses import dataclass, replace
from datetime import datetime
from typing import Any

from peers.errors import PeerRefused
from schemas.errors import ErrorCode
from schemas.stamps import LAST, iso, stamp_of

Document = dict[str, Any]
_LAST = stamp_of(LAST.isoformat())
LISTED_MAX = 1_000
"""Projects of a peer's list that are looked at."""
_ID_MAX = 200
_REPO_IDS = ("repo_id", "proposed_by", "from_repo")


@dataclass(frozen=True, slots=True)
class Shown:
    """A project as the peer holds it; repos by name, contracts and packets by id.

    Unless `whole`, it has only the repos and the contracts that were asked for.
    """

    project: Document
    repos: dict[str, Document]
    contracts: dict[str, Document]
    packets: dict[str, Document]
    whole: bool = True

    @property
    def ids(self) -> dict[str, str]:
        """The ids of its repos, by name."""
        return {name: str(repo["repo_id"]) for name, repo in self.repos.items()}

    def ids_among(self, local_ids: Mapping[str, str]) -> dict[str, str]:
        """This node's ids of the peer's repos, by the peer's ids; `local_ids` are by name."""
        return {peer_id: local_ids[name] for name, peer_id in self.ids.items() if name in local_ids}

    def part(self, contracts: dict[str, Document]) -> "Shown":
        """Its repos as they were shown, with contracts as they are shown now."""
        bare = self.project | {"contracts": [], "context_history": []}
        return replace(self, project=bare, contracts=contracts, packets={}, whole=False)


def shown_of(answer: Any, project_id: str) -> Shown:
    """What a result of cacp/project/get shows. Raises ValueError if it isn't the project."""
    if not isinstance(answer, dict) or answer.get("project_id") != project_id:
        raise ValueError("answers cacp/project/get with another object than the project")
    return Shown(
        answer,
        _by("name", answer, "repos", also="repo_id"),
        _by("contract_id", answer, "contracts"),
        _by("packet_id", answer, "context_history"),
    )


def contract_of(answer: Any, contract_id: str) -> Document:
    """What a result of cacp/contract/get shows. Raises ValueError if it isn't the contract."""
    if not isinstance(answer, dict) or answer.get("contract_id") != contract_id:
        raise ValueError("answers cacp/contract/get with another object than the contract")
    return answer


def listed_of(answer: Any) -> list[str]:
    """The valid ids in a result of cacp/project/list."""
    listed = answer.get("projects") if isinstance(answer, dict) else None
    rows = listed[:LISTED_MAX] if isinstance(listed, list) else []
    ids = [row.get("projectId") for row in rows if isinstance(row, dict)]
    valid = (
        project_id
        for project_id in ids
        if isinstance(project_id, str) and 0 < len(project_id) <= _ID_MAX
    )
    return list(dict.fromkeys(valid))


def _by(key: str, project: Document, member: str, also: str | None = None) -> dict[str, Document]:
    by_key: dict[str, Document] = {}
    for entry in project.get(member) or []:
        if not isinstance(entry, dict) or not all(
            isinstance(entry.get(name), str) for name in (key, also or key)
        ):
            raise ValueError(f"shows a project whose {member} have no {key}")
        # Of two repos with one name the peer uses the first.
        by_key.setdefault(entry[key], entry)
    return by_key


def lacks_it(refused: PeerRefused) -> bool:
    """Whether a peer refuses a call because it has nothing of that id. Other refusals don't mean
    that there is nothing to read."""
    if refused.data.get("reason") == "not_found":
        return True
    return refused.code == ErrorCode.INVALID_PARAMS and "not found" in str(refused).lower()


# --- how it is written --------------------------------------------------------------------------


def above(shown: Any, step: int) -> str | None:
    """A time `step` microseconds after the one shown, with an offset only if that had one; None if
    it is not a valid time."""
    try:
        written = iso(min(stamp_of(shown) + step, _LAST))
        naive = datetime.fromisoformat(shown).tzinfo is None
    except (TypeError, ValueError, OverflowError):
        return None
    return written.removesuffix("+00:00") if naive else written


def with_ids(value: Any, ids: Mapping[str, str]) -> Any:
    """An object with the ids of repos replaced, except in `content`."""
    if isinstance(value, list):
        return [with_ids(item, ids) for item in value]
    if not isinstance(value, dict):
        return value
    return {
        name: ids.get(member, member)
        if name in _REPO_IDS and isinstance(member, str)
        else member
        if name == "content"
        else with_ids(member, ids)
        for name, member in value.items()
    }


def over(local: Document, shown: Document | None, step: int) -> Document:
    """An object of this node, as the peer takes it to replace the one that it showed. Members that
    only the peer knows stay."""
    if shown is None:
        return local
    newer = above(shown.get("updated_at"), step)
    return shown | local | {"updated_at": newer or local["updated_at"]}


def repo_over(local: Document, shown: Document | None) -> Document:
    """The same for a repo, which has no time: members that are empty here stay."""
    return (shown or {}) | {
        name: member
        for name, member in local.items()
        if shown is None or member or name not in shown
    }


def whole_over(local: Document, shown: Shown, step: int, kept: Collection[str] = ()) -> Document:
    """The same for a whole project. The contracts, packets and repos that only the peer holds stay,
    and so do the contracts `kept`, as the peer shows them."""
    repos = [repo_over(repo, shown.repos.get(repo["name"])) for repo in local["repos"]]
    contracts = [
        over(contract, shown.contracts.get(contract["contract_id"]), step)
        for contract in local["contracts"]
        if contract["contract_id"] not in kept
    ]
    return over(local, shown.project, step) | {
        "repos": _with_peers_own(repos, "name", shown.repos),
        "contracts": _with_peers_own(contracts, "contract_id", shown.contracts),
        "context_history": _with_peers_own(local["context_history"], "packet_id", shown.packets),
    }


def _with_peers_own(local: list[Document], key: str, shown: dict[str, Document]) -> list[Document]:
    known = {entry[key] for entry in local}
    return [*local, *(entry for name, entry in shown.items() if name not in known)]


def lacks_claim(local: Document, shown: Document | None) -> bool:
    """Whether the peer doesn't know a repo of this node, which agent holds it, or its endpoint."""
    if shown is None:
        return True
    shown_agent = shown.get("agent_id") or shown.get("assigned_agent")
    shown_endpoint = shown.get("agent_endpoint")
    agent_id, endpoint = local.get("agent_id"), local.get("agent_endpoint")
    return agent_id is not None and (
        shown_agent != agent_id or (endpoint is not None and endpoint != shown_endpoint)
    )


def as_foreign(value: Any) -> Any:
    """An object as foreign peers write it, except in `content`: times without offset, "" for an
    absent text, and a repo's agent also as `assigned_agent`."""
    if isinstance(value, list):
        return [as_foreign(item) for item in value]
    if not isinstance(value, dict):
        return value
    written: Document = {}
    for name, member in value.items():
        if name.endswith("_at") or name == "timestamp":
            written[name] = member.removesuffix("+00:00") if member else member
        elif name == "content":
            written[name] = member
        else:
            written[name] = "" if member is None else as_foreign(member)
    if "agent_id" in value and "role" in value:
        written["assigned_agent"] = written["agent_id"]
    return written
