"""Which node is an agent's home: the one that signs for it and receives its mail (design §7;
acp-canonical §12.1).

A node is the home of its own agent and of the agents that hold its keys, and lists them for its
peers in a directory that it signs. An agent that two nodes list has its home at the one that was
heard first, not at the one with the earliest stamp: a node can set any stamp. At the other node it
is a visitor, which may read. That node becomes its home once the first no longer lists it.
"""

from collections.abc import Mapping
from typing import Any

import orjson

from peers.signing import verify
from schemas.acp_mesh import Directory, SignedDirectory
from schemas.mesh import Signature
from server.domain.agents import identity, same_agent
from server.domain.authorship import statement
from server.domain.errors import Forbidden
from server.methods.base import Context
from server.store import changes, keys, mail_outbox, mesh
from server.store.mail_outbox import StoredDirectory
from server.util.log_once import name_once


def home_of(ctx: Context, agent_id: str) -> str | None:
    """The node that speaks for an agent, without its version; None if no node is known to."""
    address, own = identity(agent_id), identity(ctx.node.agent_id)
    if address == own:
        return own
    home = mail_outbox.speaker(ctx.db, address)
    if home is None and keys.is_keyed(ctx.db, address):
        return own
    return home


def key_of(
    ctx: Context, node: str, known: mesh.NodeKey | None, introduced: Mapping[str, str]
) -> str | None:
    """The public key of a node: the one `known` here, or the one that a peer introduces."""
    if same_agent(node, ctx.node.agent_id):
        return ctx.node.key.public
    if known is not None:
        return known.public_key
    return introduced_key(ctx, node, introduced)


def introduced_key(ctx: Context, node: str, introduced: Mapping[str, str]) -> str | None:
    """The public key of a node of which none is known here, as a peer introduces it."""
    # An agent that has a home is not a node, even if a peer introduces a key for its name.
    return None if home_of(ctx, node) else introduced.get(node)


def is_signed(
    ctx: Context, node: str, kind: str, place: str, body: dict[str, Any], by: Signature
) -> bool:
    """Whether a node has signed `body` with the key that is known here."""
    known = mesh.node_key(ctx.db, node)
    return (
        known is not None
        and same_agent(by.node, node)
        and verify(known.public_key, statement(kind, identity(place), body), by.value, by.path)
    )


def own_directory(ctx: Context) -> SignedDirectory | None:
    """The directory that this node last published."""
    kept = mail_outbox.directory(ctx.db, ctx.node.agent_id)
    return None if kept is None else SignedDirectory.model_validate_json(kept.document)


def publish(ctx: Context) -> None:
    """Sign a new directory of the agents whose home is this node."""
    agents = sorted(at_home(ctx))
    kept = mail_outbox.directory(ctx.db, ctx.node.agent_id)
    stamp = ctx.stamp if kept is None else ctx.after(kept.stamp)
    directory = Directory(agents=agents, stamp=stamp, epoch=changes.epoch(ctx.db))
    signature = Signature(node=ctx.node.agent_id, value=ctx.node.key.sign(_said(ctx, directory)))
    signed = SignedDirectory(directory=directory, signature=signature)
    _keep(ctx, ctx.node.agent_id, signed)


def at_home(ctx: Context) -> set[str]:
    """The addresses of the agents whose home is this node: its own, and those that hold a key here
    and have no home elsewhere."""
    own = identity(ctx.node.agent_id)
    return {agent for agent in mail_outbox.keyed(ctx.db) | {own} if _may_be_home(ctx, agent, own)}


def is_stale(ctx: Context) -> bool:
    """Whether an agent has come or gone since the directory was published, or a backup was
    restored."""
    own = identity(ctx.node.agent_id)
    kept = mail_outbox.directory(ctx.db, own)
    if kept is None or kept.epoch != changes.epoch(ctx.db):
        return True
    listed, held = mail_outbox.listed(ctx.db, own), mail_outbox.keyed(ctx.db) | {own}
    return bool(listed - held) or any(_may_be_home(ctx, agent, own) for agent in held - listed)


def take(ctx: Context, node: str, signed: SignedDirectory) -> bool:
    """Take a peer's directory. Returns False if it is not newer than the stored one.

    Raises Forbidden if the peer has not signed it.
    """
    if not is_signed(ctx, node, "directory", node, signed.directory.model_dump(), signed.signature):
        raise Forbidden(
            f"The directory is not signed by the key of {node}", reason="wrong_signature"
        )
    kept = mail_outbox.directory(ctx.db, node)
    if kept is not None and kept.stamp >= signed.directory.stamp:
        return False
    _keep(ctx, node, signed)
    if kept is not None and kept.epoch != signed.directory.epoch:
        # The peer was restored from a backup, and may lack what it had confirmed.
        mail_outbox.enqueue_again(ctx.db, node)
    return True


def _keep(ctx: Context, node: str, signed: SignedDirectory) -> None:
    """Keep a directory. An agent that it lists for the first time gets a home; one that it no
    longer lists moves to the next node that lists it."""
    directory = signed.directory
    document = orjson.dumps(signed.model_dump()).decode()
    mail_outbox.put_directory(
        ctx.db, node, StoredDirectory(directory.stamp, directory.epoch, document)
    )
    before = mail_outbox.listed(ctx.db, node)
    now = {identity(agent) for agent in directory.agents}
    for agent in sorted(before - now):
        mail_outbox.unlist_agent(ctx.db, agent, node)
        following = mail_outbox.first_to_list(ctx.db, agent)
        if following is not None and mesh.home_of(ctx.db, agent) == identity(node):
            mail_outbox.move_home(ctx.db, agent, following)
    for agent in sorted(now - before):
        if agent != identity(node) and mesh.node_key(ctx.db, agent) is not None:
            name_once("agent_at_two_nodes", agent=agent, named_by=node, home=agent)
            continue
        if agent != identity(node):
            free = _may_be_home(ctx, agent, identity(node))
            home = identity(node) if free else home_of(ctx, agent) or identity(node)
            mesh.put_home(ctx.db, agent, home)
            mail_outbox.move_home(ctx.db, agent, home)
        else:
            home = agent
        mail_outbox.list_agent(ctx.db, agent, node)
        if home != identity(node):
            name_once("agent_at_two_nodes", agent=agent, named_by=node, home=home)


def _may_be_home(ctx: Context, agent: str, node: str) -> bool:
    """Whether the home of an agent is this node, none yet, or a node that has given it up: the
    directory of that node is known, and no longer lists the agent."""
    home = home_of(ctx, agent)
    if home is None or home == node:
        return True
    if home == agent or mail_outbox.directory(ctx.db, home) is None:
        return False
    given_up = agent not in mail_outbox.listed(ctx.db, home)
    keyed_here = same_agent(home, ctx.node.agent_id) and keys.is_keyed(ctx.db, agent)
    return given_up and not keyed_here


def _said(ctx: Context, directory: Directory) -> bytes:
    return statement("directory", identity(ctx.node.agent_id), directory.model_dump())
