"""How viewers come in."""

from typing import Protocol

from starlette.requests import Request

from server.http.admission import Admission
from server.page.viewer import Viewer


class Entrance(Protocol):
    """Says who looks, and whether it still may."""

    async def enter(self, request: Request) -> Viewer:
        """The viewer of a request. Raises Unauthenticated, Forbidden or RateLimited."""

    def recheck(self, request: Request, viewer: Viewer) -> None:
        """Raises Unauthenticated or Forbidden for a viewer that would no longer be let in."""


class KeyEntrance:
    """Lets in who calls with a key in the header, and without one the programs of this machine."""

    def __init__(self, admission: Admission) -> None:
        self._admission = admission

    async def enter(self, request: Request) -> Viewer:
        return Viewer(self._admission.enter(request.scope)[1])

    def recheck(self, request: Request, viewer: Viewer) -> None:
        self._admission.recheck_access(request.scope, viewer.caller)
