"""Whether the nodes of a mesh hold the same, in a sentence (design §7). Pure.

A node knows this only by comparing itself with each of the others, about once a minute.
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Literal, NamedTuple

from server.domain.agents import short_name

State = Literal["alone", "equal", "behind", "differs", "unknown"]
PeerStanding = Literal["down", "differs", "unknown", "behind", "equal", "foreign"]

NAMED_MAX = 3
"""Nodes that the sentence names; it counts the rest."""
KIND_NAMES = {"context": "context packet", "file_request": "file request"}
"""What the kinds of entities are called where that is not their name."""
NOT_COMPARED = (
    "Mail, handoffs, teamspaces and keys are not compared: each is held by one node, or by its "
    "sender and its recipients."
)


@dataclass(frozen=True, slots=True)
class NodeCompared:
    """A mesh node as this one last compared itself with it. `compared_at` is a stamp; None before
    the first comparison. Where it was not equal and nothing is `differing`, it lacked something.
    `backlog` counts the changes that it has yet to confirm."""

    agent_id: str
    is_up: bool
    compared_at: int | None = None
    is_equal: bool = False
    differing: Mapping[str, int] = field(default_factory=dict)
    backlog: int = 0


class Equality(NamedTuple):
    """`compared_at` is the oldest of the last comparisons, a stamp; `limits` say what the sentence
    does not speak of."""

    state: State
    sentence: str
    compared_at: int | None
    limits: list[str]


def equality(nodes: Sequence[NodeCompared], *, foreign: int, deferred: int) -> Equality:
    """Whether this node and the others of its mesh hold the same. `foreign` counts the foreign
    peers, `deferred` the messages of peers that wait here."""
    state, sentence = _judged(nodes)
    times = [node.compared_at for node in nodes if node.compared_at is not None]
    return Equality(state, sentence, min(times, default=None), _limits(foreign, deferred))


def standing(
    *, is_mesh: bool, is_up: bool | None, is_equal: bool | None, backlog: int
) -> PeerStanding:
    """How one peer stands to this node, the gravest first. None: not known yet. `foreign`: a peer
    with other software that answers, of which no more is known."""
    if is_up is False:
        return "down"
    if not is_mesh:
        return "foreign"
    if is_up is None or is_equal is None:
        return "unknown"
    if not is_equal:
        return "differs"
    return "behind" if backlog else "equal"


def counted(count: int, noun: str) -> str:
    """A number with its noun.

    >>> counted(2, "contract")
    '2 contracts'
    """
    plural = f"{noun[:-1]}ies" if noun.endswith("ty") else f"{noun}s"
    return f"{count:,} {noun if count == 1 else plural}"


def difference(node: NodeCompared) -> str:
    """What was not equal, as a clause whose subject is the node."""
    if not node.differing:
        return "lacked something that this node holds"
    kinds = [
        counted(count, KIND_NAMES.get(kind, kind)) for kind, count in sorted(node.differing.items())
    ]
    return f"differed in {_and(kinds)}"


def _judged(nodes: Sequence[NodeCompared]) -> tuple[State, str]:
    if not nodes:
        return "alone", "This node is alone: no other node of a mesh is registered here"
    compared = [node for node in nodes if node.compared_at is not None]
    unequal = [node for node in compared if not node.is_equal]
    if unequal:
        named = [f"{short_name(node.agent_id)} {difference(node)}" for node in unequal]
        return "differs", f"The mesh was not equal when last compared: {_some(named, '; ')}"
    down = [node for node in nodes if not node.is_up]
    new = [node for node in nodes if node.is_up and node.compared_at is None]
    if down or new:
        same = len([node for node in compared if node.is_up])
        parts = [f"Equal with {same} of {counted(len(nodes), 'other node')}"]
        parts += [_about(down, "does not answer", "don't answer")]
        parts += [_about(new, "is yet to be compared", "are yet to be compared")]
        return "unknown", "; ".join(filter(None, parts))
    behind = [node for node in nodes if node.backlog]
    if behind:
        named = [
            f"{counted(node.backlog, 'change')} to {short_name(node.agent_id)}" for node in behind
        ]
        return "behind", f"The mesh was equal when last compared; on the way: {_some(named)}"
    if len(nodes) == 1:
        return "equal", f"The mesh is equal: {short_name(nodes[0].agent_id)} holds the same"
    return "equal", f"The mesh is equal: all {len(nodes) + 1} nodes hold the same"


def _about(nodes: Sequence[NodeCompared], singular: str, plural: str) -> str:
    names = _some([short_name(node.agent_id) for node in nodes])
    return names and f"{names} {singular if len(nodes) == 1 else plural}"


def _limits(foreign: int, deferred: int) -> list[str]:
    limits = [NOT_COMPARED]
    if foreign:
        verb = "is" if foreign == 1 else "are"
        limits.append(
            f"{counted(foreign, 'foreign peer')} {verb} not compared: no digests are exchanged "
            "with other software."
        )
    if deferred:
        verb = "waits" if deferred == 1 else "wait"
        limits.append(
            f"{counted(deferred, 'message')} of peers {verb} on this node and will be merged later."
        )
    return limits


def _some(names: Iterable[str], separator: str = ", ") -> str:
    listed = list(names)
    more = f" and {len(listed) - NAMED_MAX} more" if len(listed) > NAMED_MAX else ""
    return separator.join(listed[:NAMED_MAX]) + more


def _and(parts: Sequence[str]) -> str:
    return " and ".join(filter(None, [", ".join(parts[:-1]), parts[-1]]))
