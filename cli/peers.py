"""`cacp peers` and `cacp join`: the nodes that exchange everything with this one (design §6)."""

from typing import Annotated

import typer

from cli.client import DEFAULT_URL, connected
from cli.offline import Offline, fail_unknown_peer, transaction
from cli.options import (
    CreateOption,
    DbOption,
    JsonOption,
    KeyOption,
    PeerArgument,
    ReasonOption,
    UrlOption,
)
from cli.page_link import WebOption, print_link
from cli.peers_bans import ban, bans, put_ban, unban
from cli.peers_deferred import deferred
from cli.peers_evidence import evidence, note
from cli.peers_key import key as key_command
from cli.peers_table import print_peers
from cli.show import project_names
from cli.terminal import REFUSED, USAGE, fail, print_json

app = typer.Typer(name="peers")


@app.callback(invoke_without_command=True)
def peers(
    ctx: typer.Context,
    url: UrlOption = DEFAULT_URL,
    key: KeyOption = None,
    as_json: JsonOption = False,
    web: WebOption = False,
) -> None:
    """List, add and remove the nodes that exchange everything with this one.

    Without a command it lists them.
    """
    if ctx.invoked_subcommand is None:
        list_(url, key, as_json, web)


@app.command("list")
def list_(
    url: UrlOption = DEFAULT_URL,
    key: KeyOption = None,
    as_json: JsonOption = False,
    web: WebOption = False,
) -> None:
    """List the peers of a running node: health, backlog, lag, clock and last error of each.

    It also lists the entities that a peer has refused, and says whether the nodes of the mesh held
    the same when they were last compared.

    \b
    Examples:
      cacp peers
      cacp peers list --json
    """
    if web:
        print_link(url, "mesh")
        return
    with connected(url, key, oversees=True) as node:
        answer = node.get("/peers")
        listed = answer["peers"]
        refused = any((peer.get("sync") or {}).get("undeliveredEntities") for peer in listed)
        names = project_names(node) if refused and not as_json else {}
    if as_json:
        print_json(listed)
    else:
        print_peers(listed, answer.get("mesh"), names)


@app.command()
def add(
    url: Annotated[str, typer.Argument(metavar="URL", help="Where the other node listens.")],
    db: DbOption = None,
    create: CreateOption = False,
) -> None:
    """Register this node with another, using the mesh token that both have (CACP_MESH_TOKEN).

    The node tries until it succeeds; then `cacp peers` lists the other. Works while it runs.

    Example: cacp peers add http://beta.example:8080
    """
    _register_with(url, None, db, create)


def join(
    url: Annotated[str, typer.Argument(metavar="URL", help="Where the other node listens.")],
    code: Annotated[
        str,
        typer.Argument(metavar="CODE", help="The code that `cacp invite create` printed there."),
    ],
    db: DbOption = None,
    create: CreateOption = False,
) -> None:
    """Register this node with another, using an invite of the other node.

    The node tries until it succeeds; then `cacp peers` lists the other. Works while it runs.

    Example: cacp join http://beta.example:8080 inv_1f0c22aa9b3e.kN3…
    """
    if not code.startswith("inv_") or "." not in code:
        fail(USAGE, "CODE should be what `cacp invite create` printed: inv_….…")
    _register_with(url, code, db, create)


@app.command()
def remove(
    agent_id: PeerArgument,
    forget: Annotated[
        bool,
        typer.Option(
            "--forget", help="Don't ban it: it may register again, even with another key."
        ),
    ] = False,
    reason: ReasonOption = "",
    db: DbOption = None,
) -> None:
    """Remove a peer and ban it, by its name and by its key. Its keys are revoked immediately.

    What it wrote before stays. `cacp peers unban` lets it register again. Use --forget for a node
    that has lost its database and comes back with another key.

    \b
    Examples:
      cacp peers remove aid://example.com/beta@1.0.0 --reason "left the project"
      cacp peers remove aid://example.com/beta@1.0.0 --forget
    """
    from server.store import bans, mesh
    from server.store import peers as store

    with transaction(db) as node:
        peer = store.find(node.db, agent_id)
        if peer is None:
            fail_unknown_peer(agent_id)
        if forget:
            bans.expel(node.db, peer, node.now)
            mesh.unpin(node.db, agent_id)
        else:
            put_ban(node, agent_id, reason, banned=True)
    typer.echo(f"{agent_id} is removed{'' if forget else ' and banned'}.", err=True)


app.command()(ban)
app.command()(unban)
app.command()(bans)
app.command()(key_command)


@app.command()
def retry(agent_id: PeerArgument, db: DbOption = None) -> None:
    """Make a running node try a peer again now, and compare everything with it.

    It resends what the peer has not accepted. Entities given up by `cacp peers drop` are sent when
    the comparison shows that the peer lacks them.

    Example: cacp peers retry aid://example.com/beta@1.0.0
    """
    from server.store import peers as store

    with transaction(db) as node:
        if not store.retry(node.db, agent_id):
            fail_unknown_peer(agent_id)


app.command()(evidence)
app.command()(note)


@app.command()
def drop(
    agent_id: PeerArgument,
    entity: Annotated[
        str | None, typer.Argument(metavar="ID", help="The entity; all of them by default.")
    ] = None,
    db: DbOption = None,
) -> None:
    """Stop sending what a peer has not accepted, until it changes.

    It stays on this node, so the two nodes differ. Works while the node runs.

    \b
    Examples:
      cacp peers drop aid://example.com/beta@1.0.0 0198f5c2-7d1e-…
      cacp peers drop aid://example.com/beta@1.0.0
    """
    from server.store import peers as store
    from server.store import undelivered

    with transaction(db) as node:
        if store.find(node.db, agent_id) is None:
            fail_unknown_peer(agent_id)
        dropped = undelivered.drop(node.db, agent_id, entity)
        if not dropped:
            fail(
                REFUSED,
                f"{agent_id} has not refused {entity or 'anything'}; see `cacp peers`",
            )
    typer.echo(f"Given up: {dropped}.", err=True)


app.command()(deferred)


def _register_with(url: str, code: str | None, db: DbOption, create: bool) -> None:
    """Note that the node shall register at `url`; with the mesh token if `code` is None."""
    from server.domain.endpoints import check_endpoint
    from server.domain.errors import Refusal
    from server.store import mesh

    with transaction(db, create=create) as node:
        if code is None:
            _warn_without_mesh_token(node)
        try:
            check_endpoint(url, loopback_allowed=True)
        except Refusal as refusal:
            fail(USAGE, refusal.message)
        mesh.want(node.db, url.rstrip("/"), code)
    typer.echo(f"The node registers with {url} as soon as both run.", err=True)


def _warn_without_mesh_token(node: Offline) -> None:
    if not node.settings.mesh_tokens:
        typer.echo("CACP_MESH_TOKEN is not set here: make sure that the node has it.", err=True)
