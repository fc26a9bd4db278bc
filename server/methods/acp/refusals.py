"""What `acp/*` does with what it refuses: typed, counted, audited, and calm when the disk is not
(acp-canonical §12.2, §12.4, §12.6)."""

from dataclasses import dataclass

from server.domain.acp import breaker, rates
from server.domain.acp.abuse import is_abuse
from server.domain.errors import Busy, NodeAway, Refusal, Unavailable
from server.methods.acp.delivery import address_of, audit, sender_breaker
from server.methods.base import Context
from server.store import sender_limits

REASON_MAX = 500


@dataclass(frozen=True, slots=True)
class AcpGuard:
    """`sending`: what is refused is audited, and abuse counts for the sender's circuit breaker."""

    sending: bool
    reason: str = "schema_invalid"

    def explain(self, refusal: Refusal) -> Refusal:
        if not isinstance(refusal, Unavailable) or isinstance(refusal, NodeAway | Busy):
            return refusal
        return Unavailable(
            f"{refusal.message}. ACP is degraded: nothing was changed. Go on with your work, and "
            "try again later",
            **refusal.data | {"degraded": True},
        )

    def notes(self, refusal: Refusal) -> bool:
        return self.sending and not isinstance(refusal, Unavailable)

    def note(self, ctx: Context, refusal: Refusal) -> None:
        """Audit the refusal, and count it if it is abuse. Nothing more is written of a sender whose
        breaker is open, or who makes more mistakes in a minute than are audited."""
        sender, reason = address_of(ctx), refusal.data["reason"]
        name = sender_breaker(sender)
        before = after = sender_limits.breaker(ctx.db, name)
        if breaker.wait(before, ctx.stamp) is not None:
            return
        if is_abuse(reason):
            after = breaker.after_failure(before, ctx.stamp, reason=reason)
            sender_limits.put_breaker(ctx.db, name, after)
        elif not _has_room(ctx, sender):
            return
        told = {"reason": reason, "message": refusal.message[:REASON_MAX]}
        audit(ctx, "refused", None, **told)
        if breaker.wait(after, ctx.stamp) is not None:
            audit(ctx, "circuit_opened", None, **told)


def _has_room(ctx: Context, sender: str) -> bool:
    """Count one more mistake, if it is still to be audited."""
    noted = sender_limits.stamps(ctx.db, sender, "refused")
    kept, full = rates.allow(noted, ctx.stamp, rates.REFUSED)
    if full is None:
        sender_limits.put_stamps(ctx.db, sender, "refused", kept)
    return full is None


SENDING = AcpGuard(sending=True)
LOOKING = AcpGuard(sending=False)
