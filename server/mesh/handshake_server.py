"""The answering side of a handshake, and what both sides write when it is done (design §6)."""

import secrets
from dataclasses import dataclass

import orjson

from peers import handshake
from peers.signing import verify
from schemas.mesh import Confirm, Confirmed, Hello, Introduction, Welcome
from server.cluster.shared_values import SharedValues
from server.domain.agents import same_agent
from server.domain.endpoints import check_endpoint
from server.domain.errors import Conflict, Forbidden, RateLimited, Unauthenticated
from server.domain.peer_limits import JoinMethod, check_peer_limit
from server.node import Node
from server.settings import Settings
from server.store import bans, changes, keys, mesh, peers
from server.store.connection import Connection
from server.store.database import Database
from server.store.group_commit import Transaction

PENDING_SECONDS = 30.0
PENDING_MAX = 100
KEYS_KEPT = 2
"""Keys of one peer that stay valid: handshakes from both sides may cross."""


@dataclass(frozen=True, slots=True)
class HandshakeParty:
    """The other node, authenticated, and the keys of the pair: this node calls with `call_with`,
    the other with `called_with`."""

    introduction: Introduction
    call_with: str
    called_with: str


class HandshakeServer:
    """Answers Hello and Confirm, which may come to different replicas. A handshake that isn't
    confirmed in time is dropped."""

    def __init__(self, settings: Settings, database: Database, node: Node) -> None:
        self._tokens = settings.mesh_tokens
        self._database = database
        self._node = node
        self._pending = SharedValues(database, "hello")
        """The Hello and this node's Introduction, by the nonce of that. No secret is kept."""

    async def hello(self, hello: Hello) -> Welcome:
        """Begin a handshake. Raises Unauthenticated for an unknown secret, Forbidden, RateLimited,
        and Conflict for an agent that is registered with another key."""
        caller = hello.introduction
        secret = await self._secret(hello)
        check_introduction(self._node, caller)
        await self._database.read(lambda db: check_welcome(db, self._node, caller))
        if await self._pending.count() >= PENDING_MAX:
            raise RateLimited(
                f"{PENDING_MAX} handshakes are open, the limit: retry in {PENDING_SECONDS:g} s",
                retryAfter=int(PENDING_SECONDS),
            )
        own = introduce(self._node)
        transcript = handshake.transcript(caller, own)
        open_handshake = orjson.dumps(
            [each.model_dump(by_alias=True, mode="json") for each in (hello, own)]
        )
        await self._pending.put(own.nonce, open_handshake.decode(), PENDING_SECONDS)
        return Welcome(
            introduction=own,
            proof=handshake.proof(secret, "answerer", transcript),
            signature=self._node.key.sign(handshake.signed("answerer", transcript)),
        )

    async def confirm(self, confirm: Confirm) -> Confirmed:
        """Make the caller a peer. Raises Unauthenticated if its proof or signature is wrong."""
        pending = await self._pending.take(confirm.nonce)
        if pending is None:
            raise Unauthenticated(
                f"This handshake is unknown, or older than {PENDING_SECONDS:g} s: "
                "start another with POST /peers/hello",
                reason="unknown_handshake",
            )
        given, answered = orjson.loads(pending)
        hello, own = Hello.model_validate(given), Introduction.model_validate(answered)
        caller, secret = hello.introduction, await self._secret(hello)
        transcript = handshake.transcript(caller, own)
        check_proof("caller", secret, transcript, caller, confirm)
        pair = handshake.pair_keys(secret, transcript)
        party = HandshakeParty(caller, call_with=pair.answerer, called_with=pair.caller)

        def enter_both(transaction: Transaction) -> None:
            invite = hello.secret_id
            is_invite = invite.startswith("inv_")
            if (
                is_invite
                and mesh.invite_secret(transaction.connection, invite, transaction.now) is None
            ):
                raise Unauthenticated("This invite has already been used", reason="invite_used")
            enter(transaction, self._node, party, "invite" if is_invite else "token")
            if is_invite:
                mesh.use_invite(transaction.connection, invite, caller.agent_id)

        await self._database.write(enter_both)
        return Confirmed(status="registered", agent_id=self._node.agent_id)

    async def _secret(self, hello: Hello) -> str:
        nonce = hello.introduction.nonce
        for token in self._tokens:
            if secrets.compare_digest(
                handshake.token_tag(token, nonce).encode(), hello.secret_id.encode()
            ):
                return token
        now = self._database.now()
        invited = await self._database.read(lambda db: mesh.invite_secret(db, hello.secret_id, now))
        if invited is None:
            raise Unauthenticated(
                "The secret is neither this node's mesh token nor an open invite",
                reason="unknown_secret",
            )
        return invited


def introduce(node: Node) -> Introduction:
    """This node, with a fresh nonce."""
    return Introduction.model_construct(
        agent_id=node.agent_id,
        endpoint=node.url,
        repo_name=node.repo,
        public_key=node.key.public,
        nonce=secrets.token_hex(32),
    )


def check_introduction(node: Node, other: Introduction) -> None:
    """Raises Forbidden for this node itself, or for an endpoint that must not be called."""
    if same_agent(other.agent_id, node.agent_id):
        raise Forbidden("This node doesn't register itself as its peer", reason="own_agent")
    check_endpoint(other.endpoint, loopback_allowed=node.loopback)


def check_welcome(db: Connection, node: Node, other: Introduction) -> None:
    """Raises Forbidden if the node is banned, by its name or its key; Conflict as `check_pin`."""
    bans.check(db, node.trusted_bans, other.agent_id, other.public_key)
    check_pin(mesh.node_key(db, other.agent_id), other)


def check_pin(pinned: mesh.NodeKey | None, other: Introduction) -> None:
    """Raises Conflict if the agent has proved another key before (design §6)."""
    if pinned is None or pinned.introduced_by is not None:
        return
    if pinned.public_key != other.public_key:
        raise Conflict(
            f"{other.agent_id} is registered with another key. Use that key, or have an operator "
            f"run `cacp peers remove {other.agent_id} --forget` on this node first",
            reason="key_pinned",
        )


def check_proof(
    role: handshake.Role,
    secret: str,
    transcript: bytes,
    other: Introduction,
    given: Welcome | Confirm,
) -> None:
    """Raises Unauthenticated unless the other node knows the secret and holds its key."""
    if not handshake.holds(secret, role, transcript, given.proof):
        raise Unauthenticated(
            "The proof doesn't match the secret: CACP_MESH_TOKEN, or the invite, is probably not "
            "the same on both nodes",
            reason="wrong_proof",
        )
    if not verify(other.public_key, handshake.signed(role, transcript), given.signature):
        raise Unauthenticated(
            f"The signature of the handshake doesn't match the public key of {other.agent_id}",
            reason="wrong_signature",
        )


def enter(
    transaction: Transaction, node: Node, party: HandshakeParty, came_by: JoinMethod = "operator"
) -> None:
    """Add an authenticated peer, or renew its keys. Raises Conflict, Forbidden."""
    db, other = transaction.connection, party.introduction
    check_welcome(db, node, other)
    known = peers.find(db, other.agent_id)
    if known is None:
        check_peer_limit(peers.count_by_way(db), came_by)
    key_id = keys.add(
        db,
        party.called_with,
        agent_id=other.agent_id,
        repo=other.repo_name,
        trust="peer",
        now=transaction.stamp,
    )
    mesh.pin(db, other.agent_id, other.public_key)
    peers.put(db, other.agent_id, other.endpoint, other.repo_name, "verified", transaction.stamp)
    if known is None:
        peers.put_way(db, other.agent_id, came_by)
    peers.take_back(db, other.agent_id)
    if key_id is not None:
        # The previous key stays valid: handshakes begun by both sides may cross.
        ids = [*(known.key_id.split(",") if known and known.key_id else []), key_id]
        for old in ids[:-KEYS_KEPT]:
            keys.revoke(db, old, now=transaction.stamp)
        peers.put_keys(db, other.agent_id, party.call_with, ",".join(ids[-KEYS_KEPT:]))
    if known is None or known.secret is None:
        # Comparisons bring what exists already; the cursor is for later changes.
        peers.put_cursor(db, other.agent_id, changes.newest(db), transaction.stamp)
    changes.append(
        db,
        at=transaction.stamp,
        origin=node.agent_id,
        actor=other.agent_id,
        action="peers/register",
        entity="peer",
        entity_id=other.agent_id,
        project_id=None,
        outcome="registered",
    )
