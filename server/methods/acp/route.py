"""Where a message goes: into a box here, or to the node that its recipient is at home at
(acp-canonical §10; design §7).

A message for an agent elsewhere is owed to its home until that node has confirmed it. It goes there
only, never through a node between.
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
    """The address of each recipient, and the node that is its home; None for this one.

    Everyone (§10.3) is who holds a key or a repo here, the node's own agent, and all who are at
    home on this node's peers, but not the sender. With `known_only`, raises NotFound
    (`unknown_recipient`, `no_mailbox`).
    """
    if recipients == [policy.EVERYONE]:
        found = _everyone(ctx) | {identity(ctx.node.agent_id): None}
        found.pop(sender, None)
        if not found:
            raise NotFound("to: this node knows nobody else yet", reason="unknown_recipient")
        return dict(sorted(found.items()))
    addresses = [identity(agent_id) for agent_id in recipients]
    if not known_only:
        return {one: _home_elsewhere(ctx, one) for one in addresses}
    return {one: _place(ctx, one, sender, place) for place, one in enumerate(addresses)}


def hold(ctx: Context, message_id: str, address: str, node: str | None) -> None:
    """Note that a message is for a recipient, without letting it go there yet."""
    mailboxes.hold(ctx.db, message_id, address)
    if node is not None:
        mail_outbox.put_route(ctx.db, message_id, address, node)


def let_go(ctx: Context, message_id: str, address: str, now: str) -> bool:
    """Let a message that was held go where it belongs; whether that is a box here."""
    route = mail_outbox.route(ctx.db, message_id, address)
    if route is None:
        mailboxes.put_held(ctx.db, message_id, address, now)
    else:
        mail_outbox.owe(ctx.db, route.node, "message", message_id)
    return route is None


def is_out_of_hand(ctx: Context, message_id: str, address: str) -> bool:
    """Whether the message was sent to another node, which says what becomes of it."""
    route = mail_outbox.route(ctx.db, message_id, address)
    return route is not None and route.offered


def report(ctx: Context, message_id: str) -> None:
    """Have the node that a message came from told how far it is."""
    source = mail_outbox.source(ctx.db, message_id)
    if source is not None:
        mail_outbox.owe(ctx.db, source, "receipts", message_id)


def _everyone(ctx: Context) -> dict[str, str | None]:
    reachable = _reachable(ctx)
    homes = mail_outbox.elsewhere(ctx.db, ctx.node.agent_id)
    found: dict[str, str | None] = {
        address: node for address, node in homes.items() if node in reachable
    }
    unkeyed = {identity(peer.agent_id) for peer in peers.every(ctx.db) if peer.trust == "unkeyed"}
    foreign = unkeyed - mail_outbox.keyed(ctx.db)
    own = identity(ctx.node.agent_id)
    for address in mailboxes.everyone(ctx.db):
        if address not in foreign and home_of(ctx, address) in (None, own):
            found[address] = None
    return found


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
                f"to.{place}: {address} is at home on {home}, which takes no mail from this node; "
                "an operator makes the two peers with `cacp join`",
                reason="no_mailbox",
                path=f"to.{place}",
                home=home,
            )
        return home
    if mailboxes.box(ctx.db, address) is not None:
        return None
    registered = any(identity(one.agent_id) == address for one in peers.every(ctx.db))
    if registered and address not in mail_outbox.keyed(ctx.db):
        raise NotFound(
            f"to.{place}: {address} is a peer that takes no ACP mail; share what it should know "
            "with cacp/context/share",
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
    """The nodes that take mail from this one: peers that have said who is at home there."""
    return {
        node
        for peer in peers.every(ctx.db)
        if peer.secret is not None
        and mail_outbox.directory(ctx.db, node := identity(peer.agent_id)) is not None
    }
