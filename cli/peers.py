"""`cacp peers` and `cacp join`: which nodes this one keeps equal with (design §6, §7)."""

from typing import Annotated, Any

import typer

from cli.client import DEFAULT_URL, KeyOption, UrlOption, connected
from cli.offline import DbOption, Offline, print_columns, transaction
from cli.terminal import REFUSED, USAGE, JsonOption, fail, print_json

app = typer.Typer(name="peers")

PeerArgument = Annotated[str, typer.Argument(metavar="AID", help="As `cacp peers` shows it.")]


@app.callback(invoke_without_command=True)
def peers(
    ctx: typer.Context,
    url: UrlOption = DEFAULT_URL,
    key: KeyOption = None,
    as_json: JsonOption = False,
) -> None:
    """List, add and remove the nodes that this one keeps equal with; without a command, list."""
    if ctx.invoked_subcommand is None:
        list_(url, key, as_json)


@app.command("list")
def list_(url: UrlOption = DEFAULT_URL, key: KeyOption = None, as_json: JsonOption = False) -> None:
    """List a running node's peers: how they are, what waits for them, and what went wrong last.

    \b
    Examples:
      cacp peers
      cacp peers list --json
    """
    with connected(url, key) as node:
        found = node.get("/peers")["peers"]
    if as_json:
        print_json(found)
        return
    print_columns(
        ("AGENT", "REPO", "ENDPOINT", "TRUST", "HEALTH", "BACKLOG", "LAG", "LAST ERROR"),
        [_row(one) for one in found],
    )


@app.command()
def add(
    url: Annotated[str, typer.Argument(metavar="URL", help="Where the other node listens.")],
    db: DbOption = None,
) -> None:
    """Have this node register with another, by the mesh token that both know.

    It tries again until it succeeds; `cacp peers` shows it then. Works while the node runs.

    Example: cacp peers add http://beta.example:8080
    """
    _want(url, None, db)


def join(
    url: Annotated[str, typer.Argument(metavar="URL", help="Where the other node listens.")],
    code: Annotated[
        str, typer.Argument(metavar="CODE", help="What `cacp invite create` printed there.")
    ],
    db: DbOption = None,
) -> None:
    """Become a peer of another node by an invite of its own.

    It tries again until it succeeds; `cacp peers` shows it then. Works while the node runs.

    Example: cacp join http://beta.example:8080 inv_1f0c22aa9b3e.kN3…
    """
    if not code.startswith("inv_") or "." not in code:
        fail(USAGE, "CODE should be what `cacp invite create` printed: inv_….…")
    _want(url, code, db)


@app.command()
def remove(agent_id: PeerArgument, db: DbOption = None) -> None:
    """Forget a peer: its key ends at once, and it may come back with another.

    Example: cacp peers remove aid://example.com/beta@1.0.0
    """
    from server.store import keys, mesh, posting
    from server.store import peers as store

    with transaction(db) as node:
        peer = store.find(node.db, agent_id)
        for key_id in (peer.key_id or "").split(",") if peer else []:
            keys.revoke(node.db, key_id, now=node.now)
        mesh.unpin(node.db, agent_id)
        posting.forget_node(node.db, agent_id)
        if not store.remove(node.db, agent_id):
            _unknown(agent_id)
    typer.echo(f"{agent_id} is removed.", err=True)


@app.command()
def retry(agent_id: PeerArgument, db: DbOption = None) -> None:
    """Have a running node try a peer again at once, and compare with it.

    Example: cacp peers retry aid://example.com/beta@1.0.0
    """
    from server.store import peers as store

    with transaction(db) as node:
        if not store.retry(node.db, agent_id):
            _unknown(agent_id)


def _want(url: str, code: str | None, db: Any) -> None:
    from server.domain.endpoints import check_endpoint
    from server.domain.errors import Refusal
    from server.store import mesh

    with transaction(db, make=True) as node:
        _check_secret(node, code)
        try:
            check_endpoint(url, loopback_allowed=True)
        except Refusal as refusal:
            fail(USAGE, refusal.message)
        mesh.want(node.db, url.rstrip("/"), code)
    typer.echo(f"The node registers with {url} as soon as both run.", err=True)


def _check_secret(node: Offline, code: str | None) -> None:
    if code is None and not node.settings.mesh_tokens:
        typer.echo(
            "No CACP_MESH_TOKEN is set here: make sure that the node itself has it.", err=True
        )


def _unknown(agent_id: str) -> None:
    fail(REFUSED, f"there is no peer {agent_id}; `cacp peers` lists them")


def _row(peer: dict[str, Any]) -> list[str]:
    sync = peer.get("sync") or {}
    return [
        peer["agentId"],
        peer["repoName"] or "-",
        peer["endpoint"],
        peer["trust"],
        sync.get("health", "-"),
        str(sync.get("backlog", "-")),
        f"{sync['lagSeconds']:.1f} s" if sync else "-",
        sync.get("lastError") or "-",
    ]
