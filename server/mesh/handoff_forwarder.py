"""Forwards an agent's step of a handoff to the node that holds it (acp-canonical §7.2; design §7).

One call in this node's name, and its response: nothing is queued or tried again here. The caller
can repeat a step, which changes nothing (docs/handoffs.md).
"""

from collections.abc import Awaitable, Callable
from dataclasses import replace
from typing import Any

from pydantic import ValidationError

from peers.errors import CallError, NotConnected, PeerRefused
from schemas.errors import ErrorCode
from schemas.handoff_mesh import HandoffCallResult, HandoffRefusal, RefusalKind
from schemas.plain import one_line
from server.domain.acp.handoff import HeldElsewhere, package_hash
from server.domain.errors import (
    Conflict,
    Forbidden,
    IllegalTransition,
    InvalidInput,
    NodeAway,
    NotFound,
    RateLimited,
    Refusal,
    TooLarge,
)
from server.mesh.mesh_channel import MeshChannel

KINDS: dict[RefusalKind, type[Refusal]] = {
    "InvalidInput": InvalidInput,
    "NotFound": NotFound,
    "IllegalTransition": IllegalTransition,
    "Forbidden": Forbidden,
    "Conflict": Conflict,
    "RateLimited": RateLimited,
    "TooLarge": TooLarge,
}

MESSAGE_MAX = 2_000
"""Characters of another node's message that are shown."""


async def forward(link: MeshChannel | None, call: HeldElsewhere) -> Any:
    """The result from the node that holds a handoff; `link` is None if that node is not a peer.

    Raises the Refusal that it answers with, Forbidden if it doesn't let this node speak for the
    agent, and NodeAway if it gives no valid response.
    """
    if link is None:
        raise _away(call, "is not a peer of this node now", sent=False)
    try:
        asked = {"agent": call.agent, "call": call.call} | ({"human": True} if call.human else {})
        answer = await link.ask("acp/sync/handoff", **asked)
        result = HandoffCallResult.model_validate(answer)
    except NotConnected as error:
        raise _away(call, str(error), sent=False) from None
    except PeerRefused as refused:
        if refused.code == ErrorCode.FORBIDDEN:
            reason = str(refused.data.get("reason", Forbidden.reason))
            raise Forbidden(f"{call.node} {refused}", reason=reason, node=call.node) from None
        raise _away(call, str(refused), sent=False) from None
    except CallError as error:
        raise _away(call, str(error), sent=True) from None
    except ValidationError:
        raise _away(call, "answers with an invalid result", sent=True) from None
    if result.refusal is not None:
        raise _refusal(result.refusal)
    if result.answer is None:
        raise _away(call, "answers with an empty result", sent=True)
    # What evidence is worth here is not that node's to say.
    return call.result(
        {name: value for name, value in answer["answer"].items() if name != "evidence"}
    )


async def accept_checked(
    link: MeshChannel | None, call: HeldElsewhere, check: Callable[[Any], Awaitable[None]]
) -> Any:
    """As `forward`, of an acceptance, once `check` has let the package pass, which it is for. What
    the other node says of the handoff's state is not asked: it would decide whether to check."""
    read = replace(call, call={"action": "get", "handoff_id": call.handoff_id})
    package = (await forward(link, read)).get("package")
    if package is None:
        raise _away(call, "answers without the package", sent=False)
    digest = package_hash(package)
    if call.call.get("package_hash") not in (None, digest):
        raise Conflict(
            "package_hash: differs from this handoff's package; fetch the handoff with action "
            "'get'",
            reason="hash_mismatch",
            packageHash=digest,
        )
    await check(package)
    return await forward(link, replace(call, call=call.call | {"package_hash": digest}))


def _refusal(refusal: HandoffRefusal) -> Refusal:
    """The refusal as the agent would have got it there. Its text comes from another node."""
    data = {name: value for name, value in refusal.data.items() if _is_plain(value)}
    reason = data.pop("reason", None)
    return KINDS[refusal.kind](one_line(refusal.message, MESSAGE_MAX), reason=reason, **data)


def _is_plain(value: object) -> bool:
    if isinstance(value, list):
        return all(isinstance(item, str) for item in value)
    return value is None or isinstance(value, str | int)


def _away(call: HeldElsewhere, why: str, *, sent: bool) -> NodeAway:
    """`sent`: the call may have reached the node."""
    then = (
        "The step may have been taken: 'get' shows it, and it is safe to repeat it"
        if sent
        else "Nothing was changed; try again later"
    )
    reason = one_line(why, MESSAGE_MAX)
    return NodeAway(
        f"Handoff {call.handoff_id} is held by {call.node}, which {reason}. {then}",
        node=call.node,
        mayHaveHappened=sent,
        degraded=True,
    )
