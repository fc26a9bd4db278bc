"""What `acp/*` does with what it refuses: typed, counted, audited, and calm when the disk is not
(acp-canonical §12.2, §12.4, §12.6)."""

from dataclasses import dataclass

from server.domain.acp import breaker
from server.domain.errors import NodeAway, Refusal, Unavailable
from server.methods.acp.course import address_of, audit, sender_breaker
from server.methods.base import Context
from server.store import senders

REASON_MAX = 500


@dataclass(frozen=True, slots=True)
class AcpGuard:
    """`sending`: what is refused is audited, and counts for the sender's circuit breaker."""

    sending: bool
    reason: str = "schema_invalid"

    def explain(self, refusal: Refusal) -> Refusal:
        if not isinstance(refusal, Unavailable) or isinstance(refusal, NodeAway):
            return refusal
        return Unavailable(
            f"{refusal.message}. ACP is degraded: nothing was changed. Go on with your work, and "
            "try again later",
            **refusal.data | {"degraded": True},
        )

    def notes(self, refusal: Refusal) -> bool:
        return self.sending and not isinstance(refusal, Unavailable)

    def note(self, ctx: Context, refusal: Refusal) -> None:
        """Audit the refusal and count it, unless the breaker is open: then nothing more of this
        sender is written."""
        name = sender_breaker(address_of(ctx))
        before = senders.breaker(ctx.db, name)
        if breaker.wait(before, ctx.stamp) is not None:
            return
        after = breaker.after_failure(before, ctx.stamp)
        senders.put_breaker(ctx.db, name, after)
        told = {"reason": refusal.data["reason"], "message": refusal.message[:REASON_MAX]}
        audit(ctx, "refused", None, **told)
        if breaker.wait(after, ctx.stamp) is not None:
            audit(ctx, "circuit_opened", None, **told)


SENDING = AcpGuard(sending=True)
LOOKING = AcpGuard(sending=False)
