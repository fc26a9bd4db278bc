"""Authenticates callers: the holder of a key, the operator, the node's own agent, or a peer without
a key (design §6)."""

import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from functools import lru_cache
from typing import Literal

from server.domain.access import Trust, check_project
from server.domain.agents import check_canonical, check_unlike, identity, same_agent
from server.domain.endpoints import is_loopback
from server.domain.errors import Forbidden, InvalidInput, Unauthenticated
from server.settings import Settings
from server.store import bans, keys, mail_outbox, mesh, peers, tokens
from server.store.connection import Connection

AUDIENCE = "cacp"
_ALGORITHM = "HS256"
_CLAIMS = ["exp", "aud", "sub", "jti", "project"]

_BEARER = re.compile(rb"(?i:bearer) +(" + keys.PATTERN.pattern + rb")")
_AUTHORITY = r"(\[[0-9a-f:.]{2,45}\]|[^\s:/?#@\[\]\\]{1,253})(?::[0-9]{1,5})?"
_HOST = re.compile(_AUTHORITY, re.IGNORECASE)
_ORIGIN = re.compile("https?://" + _AUTHORITY, re.IGNORECASE)
_FORWARDING = frozenset({b"forwarded", b"via", b"x-real-ip"})
_SHOWN = frozenset({b"authorization", b"x-agent-id", b"x-project-token"})
"""Headers by which a caller says who it is."""
_AGENT_ID_MAX = 200

_SEND_KEY = (
    "send Authorization: Bearer cacp_sk_…; `cacp keys create AID --repo NAME` on the node makes one"
)


@dataclass(frozen=True, slots=True)
class Caller:
    """The agent that calls, its repo, and how far it is trusted."""

    agent_id: str
    repo: str
    trust: Trust
    via: Literal["local", "key", "peer"]
    """How it is known: as a program of this machine, by its key, or by a peer's word alone."""
    projects: frozenset[str] | None = None
    """The only projects that its key or project token allows; None allows all."""
    human: bool = False
    """Its key is a human's: it may approve gated messages (acp-canonical §12.8)."""
    operator: bool = False
    """It has the operator's key, and otherwise is the node's own agent."""
    on_this_machine: bool = field(default=False, compare=False)
    """It calls over loopback, and not through a proxy that says so."""

    @property
    def is_own_agent(self) -> bool:
        """Whether it is the node's own agent, which no key binds to one repo: a program of this
        machine without a key, or the operator."""
        return self.via == "local" or self.operator

    @property
    def sees_agents(self) -> bool:
        """Whether it may see when other agents called, which is the whole node's and no
        project's."""
        return self.trust == "verified" and self.projects is None


class Authenticator:
    """Authenticates each request. Keys are looked up each time, so a revoked key fails at once."""

    def __init__(
        self,
        settings: Settings,
        secret: bytes,
        known: Callable[[Connection, str], str | None] = lambda db, hashed: None,
    ) -> None:
        """`known` returns the agent that was granted the key with a hash
        (`server.discovery.known_agents`)."""
        self._known = known
        self._secret = secret
        self._own = Caller(settings.agent, settings.repo, "verified", "local")
        self._own_here = replace(self._own, on_this_machine=True)
        self._operator = keys.Holder(settings.agent, settings.repo, "verified", None)
        self._trusted_bans = settings.trusted_bans
        self._is_local = settings.is_local
        self._takes_unkeyed = settings.takes_unkeyed_peers
        self._allowed_hosts = frozenset(map(str.lower, settings.allowed_hosts))

    def own_agent(self, headers: Mapping[bytes, bytes], client_host: str | None) -> Caller | None:
        """The node's own agent, as a program of this machine that shows nothing; None for any other
        caller, which the database decides on. Raises Unauthenticated."""
        if not _SHOWN.isdisjoint(headers):
            return None
        # What the check refuses is all that could tell that it is not on this machine.
        return self._own_here if self._check_keyless(headers, client_host, claims=False) else None

    def identify(
        self,
        db: Connection,
        headers: Mapping[bytes, bytes],
        client_host: str | None,
        *,
        registers: bool = False,
    ) -> Caller:
        """The caller of a request with these headers (lower-case names) from this address.

        A caller that `registers` over loopback may be new, where peers without a key are accepted.
        Raises Unauthenticated when the credentials are missing or invalid, Forbidden when they are
        valid but contradict the request, Unavailable when they can't be looked up.
        """
        authorization = headers.get(b"authorization")
        if authorization is None:
            caller = self._without_key(db, headers, client_host, registers)
        else:
            caller = self._with_key(db, authorization, headers)
        return self._placed(db, caller, headers, client_host)

    def identify_by_hash(
        self, db: Connection, hashed: str, headers: Mapping[bytes, bytes], client_host: str | None
    ) -> Caller:
        """The caller of a request whose sender has shown the key with this hash before, when its
        session began. Raises as `identify`."""
        operator = keys.is_operators(db, hashed)
        return self._placed(db, self._of_key(db, hashed, operator, headers), headers, client_host)

    def _placed(
        self,
        db: Connection,
        caller: Caller,
        headers: Mapping[bytes, bytes],
        client_host: str | None,
    ) -> Caller:
        """The caller with what the rest of its request says of it."""
        caller = _near(caller, headers, client_host)
        token = headers.get(b"x-project-token")
        return caller if token is None else self._narrowed(db, caller, token)

    def _with_key(
        self, db: Connection, authorization: bytes, headers: Mapping[bytes, bytes]
    ) -> Caller:
        match = _BEARER.fullmatch(authorization)
        if match is None:
            raise Unauthenticated(
                f"The Authorization header does not contain a valid key (cacp_sk_...): {_SEND_KEY}",
                reason="malformed_key",
            )
        hashed = keys.hash_of(match[1])
        is_operator_key = match[1].startswith(keys.OPERATOR_PREFIX.encode())
        operator = is_operator_key and keys.is_operators(db, hashed)
        return self._of_key(db, hashed, operator, headers)

    def _of_key(
        self, db: Connection, hashed: str, operator: bool, headers: Mapping[bytes, bytes]
    ) -> Caller:
        """The holder of the key with this hash. `operator`: it is the operator's."""
        holder = self._operator if operator else self._holder(db, hashed)
        if holder is None:
            raise Unauthenticated(f"This key is unknown here: {_SEND_KEY}", reason="unknown_key")
        bans.check(db, self._trusted_bans, holder.agent_id)
        if holder.revoked_at is not None:
            raise Unauthenticated(f"This key is revoked: {_SEND_KEY}", reason="revoked_key")
        if self._allowed_hosts and not _names(headers.get(b"host"), self._allowed_hosts):
            raise Forbidden(
                "The Host header is not an allowed host; an operator adds it to CACP_ALLOWED_HOSTS",
                reason="host_not_allowed",
            )
        claimed = headers.get(b"x-agent-id")
        if claimed is not None and not same_agent(_agent_id(claimed), holder.agent_id):
            raise Forbidden(
                "X-Agent-ID differs from the key's agent; leave it out or send the key's agent",
                reason="agent_mismatch",
                agentId=holder.agent_id,
            )
        trust: Trust = "visitor" if self._is_visitor(db, holder) else holder.trust
        return Caller(
            holder.agent_id,
            holder.repo,
            trust,
            "key",
            holder.projects,
            human=holder.human,
            operator=operator,
        )

    def _is_visitor(self, db: Connection, holder: keys.Holder) -> bool:
        """Whether another node is the home node of the holder of a key of this node
        (`server.methods.sync.agent_homes`)."""
        if holder.trust != "verified":
            return False
        address = identity(holder.agent_id)
        home = mail_outbox.speaker(db, address)
        return home is not None and not same_agent(home, self._own.agent_id)

    def _holder(self, db: Connection, hashed: str) -> keys.Holder | None:
        """The holder of an agent's or a peer's key, or of one that was granted by ADP."""
        holder = keys.holder(db, hashed)
        if holder is not None:
            return holder
        agent_id = self._known(db, hashed)
        return None if agent_id is None else keys.Holder(agent_id, "", "known", None)

    def _without_key(
        self,
        db: Connection,
        headers: Mapping[bytes, bytes],
        client_host: str | None,
        registers: bool,
    ) -> Caller:
        claimed = headers.get(b"x-agent-id")
        local = self._check_keyless(headers, client_host, claims=claimed is not None)
        agent_id = self._own.agent_id if claimed is None else _agent_id(claimed)
        if not same_agent(agent_id, self._own.agent_id):
            return self._peer(db, agent_id, new=local and registers)
        if not local:
            raise Unauthenticated(f"A key is needed: {_SEND_KEY}", reason="no_credentials")
        return self._own

    def _check_keyless(
        self, headers: Mapping[bytes, bytes], client_host: str | None, *, claims: bool
    ) -> bool:
        """Whether a caller without a key is a program of this machine. `claims`: it names an agent.
        Raises Unauthenticated where it needs a key."""
        local = self._is_local and client_host is not None and _is_loopback(client_host)
        if not local and (self._is_local or not claims or not self._takes_unkeyed):
            raise Unauthenticated(f"A key is needed: {_SEND_KEY}", reason="no_credentials")
        self._refuse_disguised(headers, frozenset() if local else self._allowed_hosts)
        return local

    def _refuse_disguised(self, headers: Mapping[bytes, bytes], own_names: frozenset[str]) -> None:
        """Refuse web pages (DNS rebinding) and proxies on this host, which act for others.

        `own_names` are the host names besides loopback's that the request may give this node.
        """
        if not _names(headers.get(b"host"), own_names):
            raise Unauthenticated(
                "Without a key, the Host header must be a loopback name: "
                f"call http://localhost, or {_SEND_KEY}",
                reason="foreign_host",
            )
        origin = headers.get(b"origin")
        if origin is not None and not _names(origin, own_names, _ORIGIN):
            raise Unauthenticated(
                f"Cross-origin requests need a key: {_SEND_KEY}",
                reason="foreign_origin",
            )
        header = _forwarding(headers)
        if header is not None:
            raise Unauthenticated(
                f"Without a key, a request may not come through a proxy: {_SEND_KEY}",
                reason="forwarded",
                header=header.decode("latin-1"),
            )

    def _peer(self, db: Connection, agent_id: str, *, new: bool) -> Caller:
        """A foreign peer without a key, whose X-Agent-ID is trusted (design §6). It may be `new`
        when it registers."""
        peer = peers.find(db, agent_id)
        keyed = mesh.is_known_by_key(db, agent_id, self._own.agent_id)
        if keyed or (peer is not None and peer.trust != "unkeyed"):
            raise Unauthenticated(
                f"{agent_id} must call with its key: {_SEND_KEY}", reason="key_required"
            )
        try:
            check_canonical(agent_id, "X-Agent-ID")
            if peer is None and new:
                check_unlike(agent_id, [self._own.agent_id, *mesh.known_agents(db)])
        except (InvalidInput, Forbidden) as refusal:
            raise Unauthenticated(refusal.message, **refusal.data) from None
        if peer is None and not new:
            raise Unauthenticated(
                f"{agent_id} is unknown here; register it as a peer, or {_SEND_KEY}",
                reason="unknown_agent",
            )
        if not self._takes_unkeyed:
            raise Unauthenticated(
                f"This node does not accept peers without a key "
                f"(CACP_TRUST_UNKEYED_PEERS): {_SEND_KEY}",
                reason="unkeyed_peers_off",
            )
        bans.check(db, self._trusted_bans, agent_id)
        repo = peer.repo_name if peer is not None else None
        return Caller(agent_id, repo or "", "unkeyed", "peer")

    def _narrowed(self, db: Connection, caller: Caller, token: bytes) -> Caller:
        """The caller, limited to the project of its token (CACP 2.0, Headers)."""
        # Slow to import, and few callers have a token.
        import jwt

        try:
            claims = jwt.decode(
                token,
                self._secret,
                algorithms=[_ALGORITHM],
                audience=AUDIENCE,
                options={"require": _CLAIMS},
            )
        except jwt.ExpiredSignatureError:
            raise Unauthenticated(
                "The project token has expired; `cacp tokens create` makes a new one",
                reason="expired_token",
            ) from None
        except (jwt.InvalidTokenError, RecursionError):
            raise Unauthenticated(
                "X-Project-Token is not a valid token issued by this node; "
                "`cacp tokens create` makes one",
                reason="invalid_token",
            ) from None
        if not tokens.is_active(db, claims["jti"]):
            raise Unauthenticated(
                "The project token is revoked; `cacp tokens create` makes a new one",
                reason="revoked_token",
            )
        if claims["sub"] != caller.agent_id:
            raise Forbidden(
                "The project token was issued to another agent",
                reason="agent_mismatch",
                agentId=caller.agent_id,
            )
        check_project(caller.projects, claims["project"])
        return replace(caller, projects=frozenset({claims["project"]}))


def issue_token(
    secret: bytes, *, token_id: str, project_id: str, agent_id: str, issued_at: int, expires_at: int
) -> str:
    """A project token: a JWT that limits `agent_id` to one project. Times are stamps."""
    import jwt

    claims = {
        "aud": AUDIENCE,
        "sub": agent_id,
        "jti": token_id,
        "project": project_id,
        "iat": issued_at // 1_000_000,
        "exp": expires_at // 1_000_000,
    }
    return jwt.encode(claims, secret, algorithm=_ALGORITHM)


def _near(caller: Caller, headers: Mapping[bytes, bytes], client_host: str | None) -> Caller:
    """The caller, with whether it calls from this machine."""
    if _is_on_this_machine(headers, client_host):
        return replace(caller, on_this_machine=True)
    return caller


def _is_on_this_machine(headers: Mapping[bytes, bytes], client_host: str | None) -> bool:
    if client_host is None or not _is_loopback(client_host):
        return False
    return _names(headers.get(b"host"), frozenset()) and _forwarding(headers) is None


def _forwarding(headers: Mapping[bytes, bytes]) -> bytes | None:
    """The first header by which a proxy says that it acts for another."""
    for name in headers:
        if name in _FORWARDING or name.startswith(b"x-forwarded-"):
            return name
    return None


def _agent_id(header: bytes) -> str:
    text = header.decode(errors="replace")
    if not 0 < len(text) <= _AGENT_ID_MAX:
        raise Unauthenticated(
            f"X-Agent-ID must have 1 to {_AGENT_ID_MAX} characters", reason="malformed_agent_id"
        )
    return text


@lru_cache(maxsize=256)
def _names(
    header: bytes | None, own_names: frozenset[str], pattern: re.Pattern[str] = _HOST
) -> bool:
    """Whether a Host or Origin header names a loopback host or one of `own_names`."""
    if header is None:
        return False
    name = _name(pattern, header)
    return _is_loopback(name) or name in own_names


def _name(pattern: re.Pattern[str], header: bytes) -> str:
    """The host name in a Host or Origin header, in lower case; "" without one."""
    match = pattern.fullmatch(header.decode("latin-1"))
    return match[1].lower() if match else ""


_is_loopback = lru_cache(maxsize=256)(is_loopback)
