"""`cacp peers` and `cacp join`: which nodes this one keeps equal with (design §6, §7)."""

import os
import re
import sys
from pathlib import Path
from typing import Annotated, Any

import typer

from cli.client import DEFAULT_URL, KeyOption, UrlOption, connected
from cli.offline import DbOption, Offline, print_columns, transaction
from cli.terminal import REFUSED, USAGE, JsonOption, fail, print_json

app = typer.Typer(name="peers")

KEY_BYTES = 4_096
API_KEY = re.compile(r"[!-~]{1,4096}")
"""What can stand in a header, in one piece."""

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
        (
            "AGENT",
            "REPO",
            "ENDPOINT",
            "TRUST",
            "HEALTH",
            "BACKLOG",
            "UNDELIVERED",
            "LAG",
            "CLOCK",
            "LAST ERROR",
        ),
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
        if peer:
            store.put_api_key(node.db, peer.endpoint.rstrip("/"), None)
        if not store.remove(node.db, agent_id):
            _unknown(agent_id)
    typer.echo(f"{agent_id} is removed.", err=True)


@app.command("key")
def key_(
    peer: Annotated[
        str, typer.Argument(metavar="URL|AID", help="Where the peer listens, or who it is.")
    ],
    file: Annotated[
        Path | None, typer.Option("--file", help="A file that holds the key, and nothing else.")
    ] = None,
    env: Annotated[
        str | None, typer.Option("--env", help="The environment variable that holds the key.")
    ] = None,
    remove: Annotated[bool, typer.Option("--remove", help="Forget the key.")] = False,
    db: DbOption = None,
) -> None:
    """Keep the API key that a foreign peer has given this node, read from standard input.

    The node sends it as `Authorization: Bearer` to that endpoint and no other. It is shown nowhere.
    Works while the node runs, and before the peer is added.

    \b
    Examples:
      cacp peers key http://mobile.example:8080 < mobile.key
      cacp peers key aid://example.com/mobile@1.0.0 --env MOBILE_KEY
      cacp peers key http://mobile.example:8080 --remove
    """
    from server.store import peers as store

    api_key = None if remove else _read_key(file, env)
    with transaction(db, make=True) as node:
        endpoint = _endpoint_of(node, peer)
        if remove and store.api_key(node.db, endpoint) is None:
            fail(REFUSED, f"there is no key for {endpoint}")
        store.put_api_key(node.db, endpoint, api_key)
    done = "is forgotten" if remove else "is sent from now on"
    typer.echo(f"The key for {endpoint} {done}.", err=True)


def _read_key(file: Path | None, env: str | None) -> str:
    if file is not None and env is not None:
        fail(USAGE, "give --file or --env, not both")
    if env is not None:
        found = os.environ.get(env)
        if found is None:
            fail(USAGE, f"--env: there is no variable {env}")
    elif file is not None:
        try:
            with file.open("rb") as opened:
                found = opened.read(KEY_BYTES + 2).decode("latin-1")
        except OSError as error:
            fail(USAGE, f"--file: {file} can't be read: {error.strerror}")
    elif sys.stdin.isatty():
        found = typer.prompt("Key", hide_input=True, err=True)
    else:
        found = sys.stdin.read(KEY_BYTES + 2)
    if not API_KEY.fullmatch(found.strip()):
        fail(USAGE, f"a key is one word of 1 to {KEY_BYTES} printable ASCII characters")
    return found.strip()


def _endpoint_of(node: Offline, peer: str) -> str:
    """Where a peer listens, by its URL or its agent id."""
    from server.domain.endpoints import check_endpoint
    from server.domain.errors import Refusal
    from server.store import peers as store

    known = store.find(node.db, peer)
    if known is not None:
        if known.secret is not None:
            fail(REFUSED, f"{peer} is a node of a mesh: its keys were made when it was registered")
        return known.endpoint.rstrip("/")
    if not peer.startswith(("http://", "https://")):
        _unknown(peer)
    try:
        check_endpoint(peer, loopback_allowed=True)
    except Refusal as refusal:
        fail(USAGE, refusal.message)
    return peer.rstrip("/")


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


def _clock(ahead: int | None) -> str:
    """How far a clock is off, "ok" for what networks add."""
    if ahead is None:
        return "-"
    return "ok" if abs(ahead) <= 2 else f"{ahead:+d} s"


def _row(peer: dict[str, Any]) -> list[str]:
    sync = peer.get("sync") or {}
    return [
        peer["agentId"],
        peer.get("repoName") or "-",
        peer["endpoint"],
        peer["trust"],
        sync.get("health", "-"),
        str(sync.get("backlog", "-")),
        str(sync.get("undelivered", "-")),
        f"{sync['lagSeconds']:.1f} s" if sync else "-",
        _clock(peer.get("clockAheadSeconds")),
        sync.get("lastError") or "-",
    ]
