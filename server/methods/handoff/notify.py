"""Messages to the parties of a handoff, one for each step, in its thread (acp-canonical §5.1)."""

from collections.abc import Sequence
from typing import Any

from schemas.acp import ACPPolicy, ACPPriority, ACPSupportedType, HandoffRejectReason
from schemas.handoff import HandoffStatus
from server.domain.acp.drafts import Draft
from server.domain.acp.routing import PRIORITIES, reaches
from server.methods.acp import mail
from server.methods.acp.mail import Envelope
from server.methods.base import Context

SUMMARY_MAX = 500
DETAIL_MAX = 500
"""Characters: a message refers to the handoff, which has the full text."""


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
    status: HandoffStatus | None = None,
    charged: bool = False,
    urgent: bool = False,
) -> Envelope | None:
    """Send a message about a handoff in the caller's name, in the handoff's thread. None when `to`
    is empty.

    It has the task's priority, and at least `high` when `urgent`. `status` is the state
    after the step, where the receiver's node learns it from this message only.

    Only an offer of work is `charged` to the sender's limits: every other step follows an offer,
    and the state machine bounds their number.
    """
    if not to:
        return None
    restricted = package["policy"]["classification"] == "restricted"
    draft = Draft(
        type=type,
        to=to,
        payload={
            "summary": shortened(summary, SUMMARY_MAX),
            **_reference(type, package, status),
            **_explanation(type, reason, shortened(detail or "", DETAIL_MAX)),
        },
        policy=ACPPolicy(
            visibility="team" if team is not None and not restricted else "private",
            sensitivity="high" if restricted else "low",
            human_gate="none",
        ),
        priority=_priority(package, urgent),
        team=team,
        thread_id=package["thread_id"],
        topic=f"handoff {package['task']['task_id']}"[:200],
    )
    return mail.post(ctx, draft, charged=charged)


def _reference(
    type: ACPSupportedType, package: dict[str, Any], status: HandoffStatus | None
) -> dict[str, Any]:
    """The members of a payload that say which handoff it is about, where its type has them."""
    about = {
        "handoff_id": package["handoff_id"],
        "task_id": package["task"]["task_id"],
        "package_hash": package["verification"]["package_hash"],
    }
    if status is not None:
        about["status"] = status
    if type == "handoff.initiate":
        return about
    if type.startswith("handoff."):
        return {"handoff_id": package["handoff_id"], "details": about}
    return {"details": about}


def _explanation(
    type: ACPSupportedType, reason: HandoffRejectReason | None, detail: str
) -> dict[str, Any]:
    """The members of a payload that say why, where its type has them."""
    if type == "handoff.reject":
        return {"reason": reason, "detail": detail}
    return {"blocked_on": detail} if type == "status.blocked" else {}


def _priority(package: dict[str, Any], urgent: bool) -> ACPPriority:
    """The task's priority, raised to `high` if `urgent`; `normal` for a damaged package, whose
    rejection is sent too."""
    priority = package["task"]["priority"]
    if priority not in PRIORITIES:
        priority = "normal"
    if urgent and not reaches(priority, "high"):
        return "high"
    known: ACPPriority = priority
    return known


def shortened(text: str, most: int) -> str:
    return text if len(text) <= most else f"{text[: most - 1]}…"
