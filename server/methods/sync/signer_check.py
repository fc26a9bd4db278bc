"""Who vouches for what a mesh peer sends: signatures, bans and contradictions (design §7)."""

from typing import Any

from peers.signing import verify
from schemas.mesh import Signature
from server.domain.agents import same_agent
from server.domain.authorship import may_speak, statement
from server.methods.base import Context
from server.methods.sync import agent_homes
from server.methods.sync.bans import banned_by_then
from server.methods.sync.equivocation import name_two_faced
from server.methods.sync.peer_message import PeerMessage
from server.store import mesh

Body = dict[str, Any]
"""What of an entity is signed; `stamp` or `timestamp` says when."""


class SignerCheck:
    """Checks who signed the entities of a message, and skips those that fail.

    `kind` and `place` are part of what is signed: of a fact, for example, "fact" and its contract.
    """

    def __init__(self, message: PeerMessage) -> None:
        self._message = message
        self._ctx = message.ctx
        self.has_banned = False
        """Whether a ban excludes part of the message: what follows on that part must not wait."""

    def accept(
        self, kind: str, place: str, body: Body, author: str | None, signature: Signature
    ) -> bool:
        """Whether a node signed `body`, may speak for its author, and is not banned.

        Skips `body` if not; else pins the key of the node, if it is the first from there.
        """
        node = signature.node
        public = self._public_key(node)
        if public is None:
            self._message.skip(kind, place, f"the public key of {node} is unknown")
            return False
        text = statement(kind, place, body)
        problem = self._problem(public, text, body, author, signature)
        if problem is not None:
            self._message.skip(kind, place, problem)
            return False
        self._pin_new_key(node, public)
        return True

    def skip_banned(
        self, kind: str, place: str, body: Body, author: str | None, signature: Signature
    ) -> bool:
        """Skip `body` if it was written after a ban that applies here. Returns whether it was."""
        public = self._public_key(signature.node)
        problem = self._ban_problem(public, body, author, signature)
        if problem is not None:
            self._message.skip(kind, place, problem)
        return problem is not None

    def note_contradiction(
        self,
        kind: str,
        at: tuple[str, str],
        known: tuple[Body, str | None],
        sent: Body,
        author: str | None,
        signature: Signature,
    ) -> None:
        """Keep as evidence that one node has signed both what is known here and what was sent.
        `at` is the place and the key there; `known` is a body with its signature as stored."""

        def is_accepted(body: Body, by: Signature) -> bool:
            return self.accept(kind, at[0], body, author, by)

        name_two_faced(self._ctx, kind, at, known, (sent, signature), is_accepted)

    def _problem(
        self, public: str, text: bytes, body: Body, author: str | None, signature: Signature
    ) -> str | None:
        """Why `body`, signed as `text`, is not accepted; None if it is. `public` is the key of the
        node that the signature names."""
        node = signature.node
        if not verify(public, text, signature.value, signature.path):
            return f"the signature does not match the key of {node}"
        if problem := self._ban_problem(public, body, author, signature):
            return problem
        if author is not None and not same_agent(author, node):
            key = ("home", author, node, str(signature.unkeyed))
            if not self._message.once(key, lambda: self._speaks_for(author, signature)):
                return f"{node} doesn't speak for {author}"
        return None

    def _ban_problem(
        self, public: str | None, body: Body, author: str | None, signature: Signature
    ) -> str | None:
        node = signature.node
        if not banned_by_then(self._ctx, body, node, public, author):
            return None
        self.has_banned = True
        return f"it is signed by {node}, after a ban that applies here"

    def _pin_new_key(self, node: str, public: str) -> None:
        if not self._settled_key(node):
            mesh.pin(self._ctx.db, node, public, introduced_by=self._message.source)

    def _settled_key(self, node: str) -> str | None:
        """The public key of this node, or that to which another is pinned."""
        return self._message.once(("key", node), lambda: self._look_up_key(node))

    def _look_up_key(self, node: str) -> str | None:
        if self._message.is_own_node(node):
            return self._ctx.node.key.public
        known = mesh.node_key(self._ctx.db, node)
        return None if known is None else known.public_key

    def _public_key(self, node: str) -> str | None:
        settled = self._settled_key(node)
        return settled or agent_homes.introduced_key(self._ctx, node, self._message.introduced)

    def _speaks_for(self, author: str, signature: Signature) -> bool:
        home = agent_homes.home_of(self._ctx, author)
        author_is_node = _is_node(self._ctx, author)
        return may_speak(signature, author, author_is_node=author_is_node, home=home)


def kept_of(ctx: Context, signature: Signature) -> str | None:
    """A signature as it is stored; None for one of this node itself."""
    if same_agent(signature.node, ctx.node.agent_id):
        return None
    return signature.model_dump_json()


def _is_node(ctx: Context, author: str) -> bool:
    return same_agent(author, ctx.node.agent_id) or mesh.node_key(ctx.db, author) is not None
