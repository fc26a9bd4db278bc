"""The route of a message: a box here, or the home node of its recipient (acp-canonical §10; design
§7).

A message for an agent of another node stays in the outbox until that node has confirmed it. It goes
there directly, never through a third node.
"""

from server.domain.acp import policy
from server.domain.agents import identity
from server.domain.errors import NotFound
from server.methods.base import Context
from server.methods.sync.agent_homes import home_of
from server.store import mail_outbox, mailboxes, peers


def places(
    ctx: Context, recipients: list[str], sender: str, *, known_only: bool = True
) -> dict[str, str | None]:
    """The address of each recipient, and its home node; None for this node.

    `*` (§10.3) stands for the holders of keys and repos here, the node's own agent, and the agents
    of this node's peers, except the sender. With `known_only`, raises NotFound
    (`unknown_recipient`, `no_mailbox`).
    """
    if recipients == [policy.EVERYONE]:
        others = everyone(ctx)
        others.pop(sender, None)
        if not others:
            raise NotFound("to: this node knows no other agent yet", reason="unknown_recipient")
        return dict(sorted(others.items()))
    addresses = [identity(agent_id) for agent_id in recipients]
    if not known_only:
        return {address: _home_elsewhere(ctx, address) for address in addresses}
    return {address: _place(ctx, address, sender, place) for place, address in enumerate(addresses)}


def hold(ctx: Context, message_id: str, address: str, node: str | None) -> None:
    """Enter a recipient of a message that must not be delivered yet."""
    mailboxes.hold(ctx.db, message_id, address)
    if node is not None:
        mail_outbox.put_route(ctx.db, message_id, address, node)


def let_go(ctx: Context, message_id: str, address: str, now: str) -> bool:
    """Deliver a message that was held. True when its recipient's box is here."""
    route = mail_outbox.route(ctx.db, message_id, address)
    if route is None:
        mailboxes.put_held(ctx.db, message_id, address, now)
    else:
        mail_outbox.enqueue(ctx.db, route.node, "message", message_id)
    return route is None


def is_out_of_hand(ctx: Context, message_id: str, address: str) -> bool:
    """Whether the message was sent to another node, which now decides its status."""
    route = mail_outbox.route(ctx.db, message_id, address)
    return route is not None and route.offered


def report(ctx: Context, message_id: str) -> None:
    """Queue a receipt for the node that a message came from."""
    source = mail_outbox.source(ctx.db, message_id)
    if source is not None:
        mail_outbox.enqueue(ctx.db, source, "receipts", message_id)


def everyone(ctx: Context) -> dict[str, str | None]:
    """Every agent that mail from here reaches: its address, and its home node (None for this
    one)."""
    reachable = _reachable(ctx)
    homes = mail_outbox.elsewhere(ctx.db, ctx.node.agent_id)
    reached: dict[str, str | None] = {
        address: node for address, node in homes.items() if node in reachable
    }
    unkeyed = {identity(peer.agent_id) for peer in peers.every(ctx.db) if peer.trust == "unkeyed"}
    foreign = unkeyed - mail_outbox.keyed(ctx.db)
    own = identity(ctx.node.agent_id)
    for address in mailboxes.everyone(ctx.db):
        if address not in foreign and home_of(ctx, address) in (None, own):
            reached[address] = None
    return reached | {own: None}


def _home_elsewhere(ctx: Context, address: str) -> str | None:
    home = mail_outbox.speaker(ctx.db, address)
    return None if home == identity(ctx.node.agent_id) else home


def _place(ctx: Context, address: str, sender: str, place: int) -> str | None:
    if address in (identity(ctx.node.agent_id), sender):
        return None
    home = _home_elsewhere(ctx, address)
    if home is not None:
        if home not in _reachable(ctx):
            raise NotFound(
                f"to.{place}: {address} belongs to node {home}, which does not accept mail from "
                "this node; an operator makes the two nodes peers with `cacp join`",
                reason="no_mailbox",
                path=f"to.{place}",
                home=home,
            )
        return home
    if mailboxes.box(ctx.db, address) is not None:
        return None
    registered = any(identity(peer.agent_id) == address for peer in peers.every(ctx.db))
    if registered and address not in mail_outbox.keyed(ctx.db):
        raise NotFound(
            f"to.{place}: {address} is a peer that does not support ACP messages; share "
            "information with it by cacp/context/share",
            reason="no_mailbox",
            path=f"to.{place}",
        )
    if not mailboxes.is_known(ctx.db, address):
        raise NotFound(
            f"to.{place}: neither this node nor its peers know an agent {address}; "
            f"`cacp keys create` makes it known",
            reason="unknown_recipient",
            path=f"to.{place}",
        )
    return None


def _reachable(ctx: Context) -> set[str]:
    """The nodes that accept mail from this one: peers that have sent their directory."""
    return {
        node
        for peer in peers.every(ctx.db)
        if peer.secret is not None
        and mail_outbox.directory(ctx.db, node := identity(peer.agent_id)) is not None
    }
