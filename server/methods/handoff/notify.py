"""What a handoff tells its parties: a message of its thread for each step (acp-canonical §5.1)."""

from collections.abc import Sequence
from typing import Any

from schemas.acp import ACPPolicy, ACPSupportedType, HandoffRejectReason
from schemas.handoff import HandoffStatus
from server.domain.acp.routing import PRIORITIES, reaches
from server.methods.acp import mail
from server.methods.acp.mail import Envelope
from server.methods.base import Context

SUMMARY_MAX = 500
DETAIL_MAX = 500
"""Characters: a message points to the handoff, which has the whole."""


def tell(
    ctx: Context,
    package: dict[str, Any],
    team: str | None,
    type: ACPSupportedType,
    summary: str,
    *,
    to: Sequence[str],
    reason: HandoffRejectReason | None = None,
    detail: str | None = None,
    ended: HandoffStatus | None = None,
    charged: bool = False,
    urgent: bool = False,
) -> Envelope | None:
    """Post a message about a handoff in the caller's name, in the handoff's thread. It has the
    task's priority; what is `urgent` has `high` at least. `ended` is the state that the step ends
    it in: a receiver's node has no other word of that.

    Only what offers work counts for the sender's limits (`charged`): every other step answers one
    of these, and the state machine bounds them. None when there is nobody to tell.
    """
    if not to:
        return None
    payload: dict[str, Any] = {"summary": shortened(summary, SUMMARY_MAX)}
    about = {
        "handoff_id": package["handoff_id"],
        "task_id": package["task"]["task_id"],
        "package_hash": package["verification"]["package_hash"],
    }
    if ended is not None:
        about["status"] = ended
    if type == "handoff.initiate":
        payload |= about
    elif type.startswith("handoff."):
        payload |= {"handoff_id": package["handoff_id"], "details": about}
    else:
        payload["details"] = about
    if type == "handoff.reject":
        payload |= {"reason": reason, "detail": shortened(detail or "", DETAIL_MAX)}
    if type == "status.blocked":
        payload["blocked_on"] = shortened(detail or "", DETAIL_MAX)
    # A package that was damaged is told of, too.
    priority = package["task"]["priority"]
    if priority not in PRIORITIES:
        priority = "normal"
    if urgent and not reaches(priority, "high"):
        priority = "high"
    restricted = package["policy"]["classification"] == "restricted"
    return mail.post(
        ctx,
        mail.Draft(
            type=type,
            to=to,
            payload=payload,
            policy=ACPPolicy(
                visibility="team" if team is not None and not restricted else "private",
                sensitivity="high" if restricted else "low",
                human_gate="none",
            ),
            priority=priority,
            team=team,
            thread_id=package["thread_id"],
            topic=f"handoff {package['task']['task_id']}"[:200],
        ),
        charged=charged,
    )


def shortened(text: str, most: int) -> str:
    return text if len(text) <= most else f"{text[: most - 1]}…"
