"""Forwards an agent's step of a handoff to the node that holds it (acp-canonical §7.2; design §7).

One call, in this node's name, and its answer: nothing is queued or tried again here. The caller
knows what it wanted, and a step that is repeated changes nothing (docs/handoffs.md).
"""

from typing import Any

from pydantic import ValidationError

from peers.errors import CallError, NotConnected, Refused
from schemas.errors import ErrorCode
from schemas.handoff_mesh import HandoffCallResult, HandoffRefusal, RefusalKind
from schemas.plain import one_line
from server.domain.errors import (
    Conflict,
    Forbidden,
    HeldElsewhere,
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
"""Characters of what another node says."""


async def forward(link: MeshChannel | None, call: HeldElsewhere) -> Any:
    """The answer of the node that holds a handoff; `link` is None when it is no peer.

    Raises the Refusal that it answers with, Forbidden when it doesn't let this node speak for the
    agent, and NodeAway when it gives no useful answer.
    """
    if link is None:
        raise _away(call, "is no peer of this node now", sent=False)
    try:
        given = {"agent": call.agent, "call": call.call} | ({"human": True} if call.human else {})
        answer = await link.ask("acp/sync/handoff", **given)
        said = HandoffCallResult.model_validate(answer)
    except NotConnected as error:
        raise _away(call, str(error), sent=False) from None
    except Refused as refused:
        if refused.code == ErrorCode.FORBIDDEN:
            reason = str(refused.data.get("reason", Forbidden.reason))
            raise Forbidden(f"{call.node} {refused}", reason=reason, node=call.node) from None
        raise _away(call, str(refused), sent=False) from None
    except CallError as error:
        raise _away(call, str(error), sent=True) from None
    except ValidationError:
        raise _away(call, "answers with what is no handoff", sent=True) from None
    if said.refusal is not None:
        raise _refusal(said.refusal)
    if said.answer is None:
        raise _away(call, "answers with nothing", sent=True)
    return call.result(answer["answer"])


def _refusal(said: HandoffRefusal) -> Refusal:
    """The refusal as the agent would have had it there. Its text is another node's."""
    data = {name: value for name, value in said.data.items() if _is_plain(value)}
    reason = data.pop("reason", None)
    return KINDS[said.kind](one_line(said.message, MESSAGE_MAX), reason=reason, **data)


def _is_plain(value: object) -> bool:
    if isinstance(value, list):
        return all(isinstance(one, str) for one in value)
    return value is None or isinstance(value, str | int)


def _away(call: HeldElsewhere, why: str, *, sent: bool) -> NodeAway:
    """`sent`: the call may have reached the node."""
    then = (
        "The step may have been taken: 'get' tells, and to repeat it is safe"
        if sent
        else "Nothing was changed; try again later"
    )
    said = one_line(why, MESSAGE_MAX)
    return NodeAway(
        f"{call.message}, which {said}. {then}", node=call.node, mayHaveHappened=sent, degraded=True
    )
