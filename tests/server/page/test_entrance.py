"""A key in the header, or a program of this machine, comes in; who lost its key goes out."""

import asyncio
from types import SimpleNamespace
from typing import Any

import pytest

from server.auth.authenticator import Caller
from server.domain.errors import Forbidden
from server.page.entrance import KeyEntrance

CALLER = Caller("aid://example.com/ann", "web", "verified", "key", human=True)


class AdmissionDouble:
    """Admits one caller, until it is revoked."""

    revoked = False

    def enter(self, scope: Any) -> tuple[dict[bytes, bytes], Caller]:
        return {}, CALLER

    def recheck_access(self, scope: Any, caller: Caller) -> None:
        assert caller == CALLER
        if self.revoked:
            raise Forbidden("revoked", reason="changed")


def test_a_key_reads_and_does_not_act() -> None:
    admission = AdmissionDouble()
    entrance = KeyEntrance(admission)  # type: ignore[arg-type]
    request: Any = SimpleNamespace(scope={})
    viewer = asyncio.run(entrance.enter(request))
    assert viewer.caller == CALLER
    assert not viewer.may_act
    entrance.recheck(request, viewer)
    admission.revoked = True
    with pytest.raises(Forbidden):
        entrance.recheck(request, viewer)
