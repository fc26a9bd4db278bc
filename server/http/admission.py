"""Who may call: authenticates requests and enforces the callers' rate limits (design §6)."""

import time
from collections.abc import Awaitable, Callable
from dataclasses import replace
from functools import partial

from starlette.types import Scope

from server.auth.authenticator import Authenticator, Caller
from server.domain.errors import Forbidden, InvalidRequest, Unauthenticated
from server.http.rate_limit import CallerLimit
from server.store.connection import Read
from server.util.log_once import RateLimitedLog

ONCE_ONLY = (b"authorization", b"host", b"x-agent-id", b"x-project-token", b"idempotency-key")
"""Headers that decide who calls or what a call does, so a second one is refused."""
_CREDENTIALS = frozenset({b"authorization", b"x-agent-id", b"x-project-token"})
PEER_RATE_FACTOR = 10
"""The rate limit of a peer's batches, as a multiple of a caller's."""


class Admission:
    """Admits requests: authenticates the caller and enforces its rate limit."""

    def __init__(
        self,
        identity: Authenticator,
        read: Read,
        limits: CallerLimit,
        notices: RateLimitedLog,
        on_contact: Callable[[str], None] = lambda agent_id: None,
        on_agent_mismatch: Callable[[str, str | None, str | None, str], None] = lambda *about: None,
    ) -> None:
        """`on_agent_mismatch` gets the caller, the agent that it named, its address, and the
        refusal."""
        self._identity = identity
        self._read = read
        self._limits = limits
        self._peer_limits = limits.times(PEER_RATE_FACTOR)
        self._notices = notices
        self._on_contact = on_contact
        self._on_agent_mismatch = on_agent_mismatch

    async def enter(
        self, scope: Scope, *, registers: bool = False
    ) -> tuple[dict[bytes, bytes], Caller]:
        """The request's headers and its caller. A caller that `registers` may be unknown.

        Raises Unauthenticated, Forbidden, RateLimited, or InvalidRequest for a header given twice.
        """
        raw = scope["headers"]
        headers: dict[bytes, bytes] = dict(raw)
        if len(headers) != len(raw):
            _check_twice(raw)
        address = address_of(scope)
        own = self._own_agent(headers, address)
        if own is not None:
            await self._check(own.agent_id)
            return headers, own
        identified = self._identified(headers, address, registers=registers)
        caller = await self._admitted(identified, headers, address)
        return headers, caller

    def _own_agent(self, headers: dict[bytes, bytes], address: str | None) -> Caller | None:
        """The node's own agent, by far the most frequent caller; None for any other caller, and for
        one that is refused, which `_admitted` notes."""
        try:
            return self._identity.own_agent(headers, address)
        except Unauthenticated:
            return None

    async def enter_with_key(self, scope: Scope, key: bytes) -> Caller:
        """The caller of a request that gives its key elsewhere than in its headers. Raises as
        `enter`."""
        return (await self.enter({**scope, "headers": _with_key(scope["headers"], key)}))[1]

    async def enter_by_hash(self, scope: Scope, hashed: str) -> Caller:
        """The caller of a request in a session that began with the key of this hash. Raises as
        `enter`."""
        headers, address = dict(scope["headers"]), address_of(scope)
        identified = self._identified_by_hash(hashed, headers, address)
        return await self._admitted(identified, headers, address)

    async def _identified(
        self, headers: dict[bytes, bytes], address: str | None, *, registers: bool = False
    ) -> Caller:
        own = self._identity.own_agent(headers, address)
        if own is not None:
            return own
        identify = partial(
            self._identity.identify, headers=headers, client_host=address, registers=registers
        )
        return await self._read(identify)

    async def _identified_by_hash(
        self, hashed: str, headers: dict[bytes, bytes], address: str | None
    ) -> Caller:
        identify = partial(
            self._identity.identify_by_hash, hashed=hashed, headers=headers, client_host=address
        )
        return await self._read(identify)

    async def _admitted(
        self, identified: Awaitable[Caller], headers: dict[bytes, bytes], address: str | None
    ) -> Caller:
        """The caller, counted against its rate limit."""
        try:
            caller = await identified
        except Unauthenticated as refusal:
            await self._check(f"address {address}")
            reason = refusal.data["reason"]
            self._notices.refused(
                "unauthenticated", (reason, address), reason=reason, address=address
            )
            raise
        except Forbidden as refusal:
            known = refusal.data.get("agentId")
            await self._check(known or f"address {address}")
            if known is not None:
                claimed = headers.get(b"x-agent-id")
                named = None if claimed is None else claimed.decode(errors="replace")
                self._on_agent_mismatch(known, named, address, refusal.message)
            raise
        await self._check(caller.agent_id)
        if caller.trust == "peer":
            # `charge` may not wait.
            await self._peer_limits.fill(caller.agent_id)
        if caller.via != "local":
            self._on_contact(caller.agent_id)
        return caller

    async def recheck_access(self, scope: Scope, caller: Caller) -> None:
        """Raise Unauthenticated or Forbidden when an admitted caller would no longer be admitted,
        or with other rights."""
        headers, address = dict(scope["headers"]), address_of(scope)
        now = await self._identified(headers, address)
        # A peer without a key names its repo itself, perhaps with the call just made.
        _check_same(replace(now, repo=caller.repo), caller)

    async def recheck_by_hash(self, scope: Scope, hashed: str, caller: Caller) -> None:
        """The same for a caller in a session that began with the key of this hash."""
        headers, address = dict(scope["headers"]), address_of(scope)
        _check_same(await self._identified_by_hash(hashed, headers, address), caller)

    async def _check(self, caller: str) -> None:
        await self._limits.fill(caller)
        self._limits.check(caller, time.monotonic())

    async def check_stranger(self, scope: Scope) -> None:
        """Enforce the rate limit of an address for a request without credentials. Raises
        RateLimited."""
        await self._check(f"address {address_of(scope)}")

    def charge(self, caller: Caller, more: int) -> None:
        """Count `more` requests of a caller that was admitted with one.

        A peer's batches carry what its own callers wrote, so at the rate of one caller a peer would
        never catch up: batches of peers have a limit of their own. Raises RateLimited when it is
        exhausted; then nothing of the batch was taken.
        """
        if caller.trust != "peer":
            self._limits.charge(caller.agent_id, more)
            return
        self._peer_limits.check(caller.agent_id, time.monotonic())
        self._peer_limits.charge(caller.agent_id, more)


def address_of(scope: Scope) -> str | None:
    """The client's address of a request."""
    client = scope.get("client")
    return client[0] if client else None


def _check_same(now: Caller, caller: Caller) -> None:
    if now != caller:
        raise Forbidden("Access of your key changed while the call ran; retry", reason="changed")


def _with_key(raw: list[tuple[bytes, bytes]], key: bytes) -> list[tuple[bytes, bytes]]:
    """The headers of a request as if it had given this key, and only that, in a header."""
    rest = [(name, value) for name, value in raw if name not in _CREDENTIALS]
    return [*rest, (b"authorization", b"Bearer " + key)]


def _check_twice(raw: list[tuple[bytes, bytes]]) -> None:
    names = [name for name, _ in raw]
    for name in ONCE_ONLY:
        if names.count(name) > 1:
            raise InvalidRequest(f"The header {name.decode()} may be sent only once")
