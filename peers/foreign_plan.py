"""What a foreign peer shows of a project, and how what it lacks is written to it (design §8). Pure.

It takes what is newer than what it holds, by a time that it has stamped with its own clock. So an
object goes to it with the time that it showed, and a step more: it takes that exactly when it has
changed nothing since it showed it, and no clock is ever compared with another.
"""

from collections.abc import Collection, Mapping
from dataclasses import dataclass, replace
from datetime import datetime
from typing import Any

from peers.errors import Refused
from schemas.base import LAST, iso, stamp_of
from schemas.errors import ErrorCode

Document = dict[str, Any]
_LAST = stamp_of(LAST.isoformat())
LISTED_MAX = 1_000
"""Projects of a peer's list that are looked at."""
_ID_MAX = 200
_REPO_IDS = ("repo_id", "proposed_by", "from_repo")


@dataclass(frozen=True, slots=True)
class Shown:
    """A project as the peer holds it; repos by name, contracts and packets by id.

    Unless `whole`, only its repos and those contracts and packets that were asked for are known.
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

    def ids_among(self, ours: Mapping[str, str]) -> dict[str, str]:
        """Our ids of its repos, by its own; `ours` are those of the repos known here, by name."""
        return {theirs: ours[name] for name, theirs in self.ids.items() if name in ours}

    def part(self, contracts: dict[str, Document]) -> "Shown":
        """Its repos as they were shown, with contracts as they are shown now."""
        bare = self.project | {"contracts": [], "context_history": []}
        return replace(self, project=bare, contracts=contracts, packets={}, whole=False)


def shown_of(answer: Any, project_id: str) -> Shown:
    """What an answer to cacp/project/get shows. Raises ValueError when that is not the project."""
    if not isinstance(answer, dict) or answer.get("project_id") != project_id:
        raise ValueError("answers cacp/project/get with another object than the project")
    return Shown(
        answer,
        _by("name", answer, "repos", also="repo_id"),
        _by("contract_id", answer, "contracts"),
        _by("packet_id", answer, "context_history"),
    )


def contract_of(answer: Any, contract_id: str) -> Document:
    """The same for cacp/contract/get."""
    if not isinstance(answer, dict) or answer.get("contract_id") != contract_id:
        raise ValueError("answers cacp/contract/get with another object than the contract")
    return answer


def listed_of(answer: Any) -> list[str]:
    """The ids in an answer to cacp/project/list, as far as they are some."""
    listed = answer.get("projects") if isinstance(answer, dict) else None
    rows = listed[:LISTED_MAX] if isinstance(listed, list) else []
    ids = [row.get("projectId") for row in rows if isinstance(row, dict)]
    found = (one for one in ids if isinstance(one, str) and 0 < len(one) <= _ID_MAX)
    return list(dict.fromkeys(found))


def _by(key: str, project: Document, member: str, also: str | None = None) -> dict[str, Document]:
    found: dict[str, Document] = {}
    for one in project.get(member) or []:
        if not isinstance(one, dict) or not all(
            isinstance(one.get(name), str) for name in (key, also or key)
        ):
            raise ValueError(f"shows a project whose {member} have no {key}")
        # Of two repos with one name it works with the first.
        found.setdefault(one[key], one)
    return found


def lacks_it(refused: Refused) -> bool:
    """Whether a peer refuses a call because it has nothing of that id: that alone means that there
    is nothing to read."""
    if refused.data.get("reason") == "not_found":
        return True
    return refused.code == ErrorCode.INVALID_PARAMS and "not found" in str(refused).lower()


# --- how it is written --------------------------------------------------------------------------


def above(shown: Any, step: int) -> str | None:
    """A time `step` microseconds after one that the peer showed, with an offset only if that had
    one; None when it showed none."""
    try:
        written = iso(min(stamp_of(shown) + step, _LAST))
        naive = datetime.fromisoformat(shown).tzinfo is None
    except (TypeError, ValueError, OverflowError):
        return None
    return written.removesuffix("+00:00") if naive else written


def with_ids(value: Any, ids: Mapping[str, str]) -> Any:
    """An object with the ids of its repos replaced. What is in `content` stays as it is."""
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


def over(ours: Document, theirs: Document | None, step: int) -> Document:
    """Our object, as the peer takes it in the place of the one that it showed. Members that only
    it knows stay."""
    if theirs is None:
        return ours
    newer = above(theirs.get("updated_at"), step)
    return theirs | ours | {"updated_at": newer or ours["updated_at"]}


def repo_over(ours: Document, theirs: Document | None) -> Document:
    """The same of a repo, which has no time: what we don't know of it stays."""
    return (theirs or {}) | {
        name: member
        for name, member in ours.items()
        if theirs is None or member or name not in theirs
    }


def whole_over(ours: Document, shown: Shown, step: int, kept: Collection[str] = ()) -> Document:
    """The same of a whole project: the contracts, packets and repos that only the peer holds
    stay, and so do the contracts `kept`, as it holds them."""
    repos = [repo_over(one, shown.repos.get(one["name"])) for one in ours["repos"]]
    contracts = [
        over(one, shown.contracts.get(one["contract_id"]), step)
        for one in ours["contracts"]
        if one["contract_id"] not in kept
    ]
    return over(ours, shown.project, step) | {
        "repos": _with_theirs(repos, "name", shown.repos),
        "contracts": _with_theirs(contracts, "contract_id", shown.contracts),
        "context_history": _with_theirs(ours["context_history"], "packet_id", shown.packets),
    }


def _with_theirs(ours: list[Document], key: str, theirs: dict[str, Document]) -> list[Document]:
    known = {one[key] for one in ours}
    return [*ours, *(one for name, one in theirs.items() if name not in known)]


def lacks_claim(ours: Document, theirs: Document | None) -> bool:
    """Whether the peer doesn't know a repo of ours, or who holds it and where that one listens."""
    if theirs is None:
        return True
    agent = theirs.get("agent_id") or theirs.get("assigned_agent")
    endpoint = theirs.get("agent_endpoint")
    held, listens = ours.get("agent_id"), ours.get("agent_endpoint")
    return held is not None and (agent != held or (listens is not None and listens != endpoint))


def as_foreign(value: Any) -> Any:
    """An object as foreign peers write it: no offsets, "" for an absent text, and a repo's agent
    also as `assigned_agent`. What is in `content` stays as it is."""
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
