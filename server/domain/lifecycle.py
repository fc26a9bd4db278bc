"""A project's lifecycle: active, archived or deleted (design §7)."""

from typing import NamedTuple
from uuid import UUID

from schemas.lifecycle import LifecycleState
from server.domain.identifiers import is_founder
from server.domain.immutable import order


class Lifecycle(NamedTuple):
    """The lifecycle register of a project. `name` is the project's; `by` is the agent that acted,
    on the word of the node that signed. `stamp` is a stamp. `signature` is JSON of
    schemas.mesh.Signature; None for this node's own statement."""

    state: LifecycleState
    name: str
    by: str
    stamp: int
    signature: str | None = None

    def body(self) -> dict[str, str | int]:
        """The members that are signed."""
        return {"state": self.state, "name": self.name, "by": self.by, "stamp": self.stamp}

    @property
    def is_deleted(self) -> bool:
        return self.state == "deleted"


def replaces(known: Lifecycle | None, sent: Lifecycle) -> bool:
    """Whether the sent register replaces the known one: a deletion stays, else the later stamp
    wins; equal stamps are settled by the text."""
    return known is None or _rank(sent) > _rank(known)


def may_set(state: LifecycleState, project_id: str, node: str, *, has_standing: bool) -> bool:
    """Whether a node's statement counts. A deletion is final, so only the node that created the
    project may sign one; of a project whose id can name no node, any node. To archive and unarchive
    is for nodes with standing in the project."""
    if state == "deleted":
        return is_founder(project_id, node) or not may_name_founder(project_id)
    return has_standing


def may_name_founder(project_id: str) -> bool:
    """Whether a project's id may be derived from the node that created it (`founded_by`). Ids of
    other forms come from foreign peers."""
    try:
        named = UUID(project_id)
    except ValueError:
        return False
    return named.version == 7 and str(named) == project_id


def _rank(register: Lifecycle) -> tuple[bool, tuple[int, bytes]]:
    return register.is_deleted, order(register.stamp, register.body())
