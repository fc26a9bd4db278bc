"""`cacp peers ban`, `unban` and `bans`: agents that may not be peers (design §6)."""

from typing import Annotated, Any

import typer

from cli.columns import print_columns
from cli.offline import Offline, transaction
from cli.options import DbOption, JsonOption, PeerArgument, ReasonOption
from cli.terminal import REFUSED, fail, print_json
from schemas.plain import one_line


def ban(
    agent_id: Annotated[
        str, typer.Argument(metavar="AID", help="The agent; it need not be a peer.")
    ],
    reason: ReasonOption = "",
    db: DbOption = None,
) -> None:
    """Ban every version of an agent's name, and every agent that uses its key.

    From now on the node refuses its calls, registrations and writes, also when another node
    forwards them. Nodes that name this one in CACP_BANS_FROM adopt the ban.

    Example: cacp peers ban aid://example.com/mallory@1.0.0 --reason "stolen key"
    """
    with transaction(db) as node:
        put_ban(node, agent_id, reason, banned=True)
    typer.echo(f"{agent_id} is banned.", err=True)


def unban(agent_id: PeerArgument, reason: ReasonOption = "", db: DbOption = None) -> None:
    """Lift a ban on this node, also one adopted from another node. The agent may register again.

    Example: cacp peers unban aid://example.com/beta@1.0.0
    """
    from server.domain.agents import identity
    from server.store import bans

    with transaction(db) as node:
        agent = identity(agent_id)
        if not any(item.banned and item.agent == agent for item in bans.every(node.db)):
            fail(REFUSED, f"{agent_id} is not banned; `cacp peers bans` lists the bans")
        put_ban(node, agent_id, reason, banned=False)
    typer.echo(f"{agent_id} is not banned any more; it may register again.", err=True)


def bans(db: DbOption = None, as_json: JsonOption = False) -> None:
    """List the bans that this node knows, its own and other nodes', and which of them it applies.

    Example: cacp peers bans
    """
    from server.store import bans as store

    with transaction(db) as node:
        rows = [_ban_json(node, item) for item in store.every(node.db) if item.banned]
    if as_json:
        print_json(rows)
        return
    print_columns(
        ("AGENT", "BY", "SINCE", "HOLDS", "REASON"),
        [
            [row["agentId"], row["by"], row["at"], "yes" if row["holds"] else "no", row["reason"]]
            for row in rows
        ],
        none="There are no bans: `cacp peers ban AID` adds one",
    )


def put_ban(node: Offline, agent_id: str, reason: str, *, banned: bool) -> None:
    """Store this node's statement that an agent is banned, or isn't any more, and apply it.

    The running node signs the statement when another node asks for it.
    """
    from peers.clock import after
    from server.domain.agents import identity, same_agent
    from server.domain.bans import BANS_MAX, REASON_MAX, BanStatement
    from server.store import bans

    trusted_bans = node.settings.trusted_bans
    if same_agent(agent_id, trusted_bans.own):
        fail(REFUSED, f"{agent_id} is this node itself")
    statements = {item.agent: item for item in bans.statements_by(node.db, trusted_bans.own)}
    before = statements.get(identity(agent_id))
    if before is None and len(statements) >= BANS_MAX:
        fail(REFUSED, f"this node has banned or unbanned {BANS_MAX} agents, the most that it may")
    key = _proved_key(node, agent_id) or (before.public_key if before else None)
    stamp = after(node.now, before.stamp) if before else node.now
    reason = one_line(reason)[:REASON_MAX]
    bans.put(
        node.db, BanStatement(trusted_bans.own, identity(agent_id), key, banned, stamp, reason)
    )
    bans.enforce(node.db, trusted_bans, node.now)


def _proved_key(node: Offline, agent_id: str) -> str | None:
    """The public key that the agent itself has proved. One that another node introduced may be
    somebody else's."""
    from server.store import mesh

    known = mesh.node_key(node.db, agent_id)
    return known.public_key if known is not None and known.introduced_by is None else None


def _ban_json(node: Offline, statement: Any) -> dict[str, Any]:
    from schemas.stamps import iso
    from server.store import bans

    trusted_bans = node.settings.trusted_bans
    active = bans.find(node.db, trusted_bans, statement.agent, statement.public_key) is not None
    return {
        "agentId": str(statement.agent),
        "by": statement.by_node,
        "at": iso(statement.stamp),
        "holds": active and statement.by_node in {trusted_bans.own, *trusted_bans.others},
        "reason": one_line(statement.reason),
    }
