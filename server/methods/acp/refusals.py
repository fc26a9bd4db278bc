"""How `acp/*` treats refusals: typed, counted, audited, and marked as degraded when the disk fails
(acp-canonical §12.2, §12.4, §12.6)."""

from dataclasses import dataclass

from server.domain.acp import breaker, message_rate
from server.domain.acp.abuse import is_abuse
from server.domain.errors import Busy, NodeAway, Refusal, Unavailable
from server.methods.acp.delivery import address_of, audit, sender_breaker
from server.methods.base import Context
from server.store import sender_limits

REASON_MAX = 500


@dataclass(frozen=True, slots=True)
class AcpGuard:
    """`sending`: refusals are audited, and abuse counts towards the sender's circuit breaker."""

    sending: bool
    reason: str = "schema_invalid"

    def explain(self, refusal: Refusal) -> Refusal:
        if not isinstance(refusal, Unavailable) or isinstance(refusal, NodeAway | Busy):
            return refusal
        return Unavailable(
            f"{refusal.message}. ACP messages are degraded: nothing was changed. Go on with your "
            "work, and try again later",
            **refusal.data | {"degraded": True},
        )

    def notes(self, refusal: Refusal) -> bool:
        return self.sending and not isinstance(refusal, Unavailable)

    def note(self, ctx: Context, refusal: Refusal) -> None:
        """Audit the refusal, and count it if it is abuse. Nothing is written for a sender whose
        breaker is open, or whose audited mistakes have reached the limit for a minute."""
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
        detail = {"reason": reason, "message": refusal.message[:REASON_MAX]}
        audit(ctx, "refused", None, **detail)
        if breaker.wait(after, ctx.stamp) is not None:
            audit(ctx, "circuit_opened", None, **detail)


def _has_room(ctx: Context, sender: str) -> bool:
    """Count one more mistake. False when the limit of audited mistakes is reached."""
    noted = sender_limits.stamps(ctx.db, sender, "refused")
    kept, full = message_rate.allow(noted, ctx.stamp, message_rate.REFUSED)
    if full is None:
        sender_limits.put_stamps(ctx.db, sender, "refused", kept)
    return full is None


SENDING = AcpGuard(sending=True)
LOOKING = AcpGuard(sending=False)
