"""Which of two registers wins: the description of a repo, or the name of a contract (design §7)."""

from collections.abc import Callable
from typing import Any, NamedTuple, Protocol

from schemas.mesh import Signature
from server.domain.registers import Weight, gives_way
from server.methods.base import Context
from server.methods.cacp.authority import signer
from server.methods.sync.peer_message import PeerMessage
from server.methods.sync.signer_check import SignerCheck


class SignedRegister(Protocol):
    """The description of a repo, or the header of a contract, as a node has signed it."""

    @property
    def signature(self) -> str | None:
        """As it is stored."""

    def body(self) -> dict[str, Any]:
        """The signed members; `stamp` is when."""


class RegisterRef(NamedTuple):
    """Which register: its kind, the place where it is signed, and its id there."""

    kind: str
    place: str
    id: str


class RegisterDecision(NamedTuple):
    """Whether a register that was sent replaces the one known here, and why not if its signer had
    too little authority."""

    replaces: bool
    skip_reason: str | None = None


class RegisterMerge:
    """Decides between registers, and records what is skipped or contradictory in a message."""

    def __init__(self, message: PeerMessage, signers: SignerCheck) -> None:
        self._message = message
        self._signers = signers

    def replaces(
        self,
        ref: RegisterRef,
        known: SignedRegister,
        sent: SignedRegister,
        signature: Signature | None,
        weight: Callable[[str | None], Weight],
    ) -> bool:
        """Whether a register that was sent, or its signature, replaces the one known here. `weight`
        is the authority of a stored signature."""
        if _is_same(self._message.ctx, known, sent):
            return False
        if signature is not None and not self._check(ref, known, sent, signature):
            return False
        weights = weight(known.signature), weight(sent.signature)
        decision = decide(known.body(), sent.body(), weights, signature)
        if decision.skip_reason is not None:
            self._message.ctx.node.overruled[self._message.source] += 1
            self._message.skip(ref.kind, ref.id, decision.skip_reason)
        return decision.replaces

    def _check(
        self, ref: RegisterRef, known: SignedRegister, sent: SignedRegister, signature: Signature
    ) -> bool:
        """Whether the signature holds. A contradiction with the known register is recorded."""
        kind, place, id = ref
        if not self._signers.accept(kind, place, sent.body(), None, signature):
            return False
        # A node that has forgotten what a foreign peer called a contract may hear another name.
        if kind != "contract" or not signature.unkeyed:
            stored = (known.body(), known.signature or None)
            self._signers.note_contradiction(
                kind, (place, id), stored, sent.body(), None, signature
            )
        return True


def decide(
    known: dict[str, Any],
    sent: dict[str, Any],
    weights: tuple[Weight, Weight],
    signature: Signature | None,
) -> RegisterDecision:
    """Decide between two bodies of a register by the authority of their signers."""
    if gives_way(known, sent, weights):
        return RegisterDecision(replaces=True)
    if weights[1] < weights[0] and known != sent:
        node = "nobody" if signature is None else signature.node
        reason = f"its description is signed by {node}, which has lower authority"
        return RegisterDecision(replaces=False, skip_reason=reason)
    return RegisterDecision(replaces=False)


def _is_same(ctx: Context, known: SignedRegister, sent: SignedRegister) -> bool:
    return known.body() == sent.body() and signer(ctx, known.signature) == signer(
        ctx, sent.signature
    )
