"""What mesh nodes say to each other of a project's lifecycle and of released claims (design §7)."""

from typing import Annotated

from pydantic import FailFast, Field

from schemas.base import Identifier, Stamp, WireObject
from schemas.lifecycle import LifecycleState
from schemas.mesh import Signature
from schemas.sync import SyncParams

RELEASES_MAX = 10_000


class LifecycleRegister(WireObject):
    """Whether a project is active, archived or deleted. It is signed at the project."""

    state: LifecycleState
    name: Identifier
    by: Identifier
    stamp: Stamp
    signature: Signature


class ReleaseRegister(WireObject):
    """An agent's claims on a repo end that were made up to `released_at`. It is signed at the
    repo."""

    repo_id: Identifier
    agent_id: Identifier
    by: Identifier
    released_at: Stamp
    signature: Signature


class ProjectState(WireObject):
    project_id: Identifier
    lifecycle: LifecycleRegister | None = None
    releases: Annotated[list[ReleaseRegister], FailFast(), Field(max_length=RELEASES_MAX)] = []


class ProjectStateSyncParams(SyncParams):
    state: ProjectState

    @property
    def project_id(self) -> str:
        return self.state.project_id
