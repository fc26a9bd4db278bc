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
from schemas.plain import one_line

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
        none="none: `cacp peers add URL` or `cacp join URL CODE` makes this node another's peer",
    )
    untaken = [row for one in found for row in _untaken(one)]
    if untaken:
        typer.echo()
        heads = ("NOT TAKEN BY", "ENTITY", "ID", "PROJECT", "TRIES", "WHY")
        print_columns(heads, untaken, none="")


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


ReasonOption = Annotated[str, typer.Option("--reason", help="Why, in a line; others see it.")]


@app.command()
def remove(
    agent_id: PeerArgument,
    forget: Annotated[
        bool, typer.Option("--forget", help="Ban nobody: it may come back, with another key too.")
    ] = False,
    reason: ReasonOption = "",
    db: DbOption = None,
) -> None:
    """End a peer for good: its keys end at once, and it is banned, by its name and by its key.

    What it wrote before stays. `cacp peers unban` lets it come back. With --forget it is only
    forgotten: for a node that has lost its file, and comes with another key.

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
            _unknown(agent_id)
        elif forget:
            bans.expel(node.db, peer, node.now)
            mesh.unpin(node.db, agent_id)
        else:
            _say(node, agent_id, reason, banned=True)
    done = "is removed" if forget else "is removed and banned"
    typer.echo(f"{agent_id} {done}.", err=True)


@app.command()
def ban(
    agent_id: Annotated[str, typer.Argument(metavar="AID", help="A peer's, or anybody's.")],
    reason: ReasonOption = "",
    db: DbOption = None,
) -> None:
    """Let an agent be no peer, in any version of its name, nor who holds its key.

    Its calls, its registrations and what it writes from now on are refused, whoever passes it on.
    The nodes that name this one in CACP_BANS_FROM hear of it and do the same.

    Example: cacp peers ban aid://example.com/mallory@1.0.0 --reason "its key was stolen"
    """
    with transaction(db) as node:
        _say(node, agent_id, reason, banned=True)
    typer.echo(f"{agent_id} is banned.", err=True)


@app.command()
def unban(agent_id: PeerArgument, reason: ReasonOption = "", db: DbOption = None) -> None:
    """Let an agent be a peer again, on this node, whoever else has banned it.

    Example: cacp peers unban aid://example.com/beta@1.0.0
    """
    from server.domain.agents import identity
    from server.store import bans

    with transaction(db) as node:
        about = [one for one in bans.every(node.db) if one.agent == identity(agent_id)]
        if not any(one.banned for one in about):
            fail(REFUSED, f"nobody has banned {agent_id}; `cacp peers bans` lists who is")
        _say(node, agent_id, reason, banned=False)
    typer.echo(f"{agent_id} is banned no more; it may register again.", err=True)


@app.command("bans")
def bans_(db: DbOption = None, as_json: JsonOption = False) -> None:
    """List the bans that this node knows, its own and others', and which of them hold here.

    Example: cacp peers bans
    """
    from schemas.base import iso
    from schemas.plain import one_line
    from server.store import bans

    with transaction(db) as node:
        heeds = node.settings.heeds
        rows: list[dict[str, Any]] = [
            {
                "agentId": one.agent,
                "by": one.by_node,
                "at": iso(one.stamp),
                "holds": bans.find(node.db, heeds, one.agent, one.public_key) is not None
                and one.by_node in {heeds.own, *heeds.others},
                "reason": one_line(one.reason),
            }
            for one in bans.every(node.db)
            if one.banned
        ]
    if as_json:
        print_json(rows)
        return
    cells = [
        [str(one["agentId"]), one["by"], one["at"], "yes" if one["holds"] else "no", one["reason"]]
        for one in rows
    ]
    heads = ("AGENT", "BY", "SINCE", "HOLDS", "REASON")
    print_columns(heads, cells, none="No bans: `cacp peers ban AID` makes one")


def _say(node: Offline, agent_id: str, reason: str, *, banned: bool) -> None:
    """Write down this node's word of an agent, which it signs when it is asked for it."""
    from peers.clock import after
    from schemas.plain import one_line
    from server.domain.agents import identity, same_agent
    from server.domain.bans import BANS_MAX, REASON_MAX, BanStatement
    from server.store import bans, mesh

    heeds = node.settings.heeds
    if same_agent(agent_id, heeds.own):
        fail(REFUSED, f"{agent_id} is this node itself")
    said = {one.agent: one for one in bans.said_by(node.db, heeds.own)}
    before = said.get(identity(agent_id))
    if before is None and len(said) >= BANS_MAX:
        fail(REFUSED, f"this node has said so of {BANS_MAX} agents, and others keep no more")
    known = mesh.node_key(node.db, agent_id)
    # A key that was only introduced may be another's.
    proved = known is not None and known.introduced_by is None
    key = known.public_key if known and proved else before.public_key if before else None
    stamp = after(node.now, before.stamp) if before else node.now
    reason = one_line(reason)[:REASON_MAX]
    bans.put(node.db, BanStatement(heeds.own, identity(agent_id), key, banned, stamp, reason))
    bans.enforce(node.db, heeds, node.now)


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

    So what the peer has not taken is sent again, and what `cacp peers drop` gave up is shown again
    when the peer asks for it.

    Example: cacp peers retry aid://example.com/beta@1.0.0
    """
    from server.store import peers as store

    with transaction(db) as node:
        if not store.retry(node.db, agent_id):
            _unknown(agent_id)


@app.command()
def evidence(agent_id: PeerArgument, db: DbOption = None, as_json: JsonOption = False) -> None:
    """Show the contradictions that a node has signed: two things where it could honestly say one.

    With --json whole, with both signatures, for whoever is to check them.

    Example: cacp peers evidence aid://example.com/beta@1.0.0 --json
    """
    from schemas.base import iso
    from server.store import equivocations

    with transaction(db) as node:
        found = equivocations.of_node(node.db, agent_id)
    if as_json:
        print_json([one._asdict() | {"found_at": iso(one.found_at)} for one in found])
        return
    rows = [[iso(one.found_at), one.kind, one.place, one.key] for one in found]
    none = f"none of {agent_id}: `cacp peers` says who has contradicted itself"
    print_columns(("FOUND", "KIND", "IN", "KEY"), rows, none=none)


@app.command()
def note(agent_id: PeerArgument, db: DbOption = None) -> None:
    """Note that a node contradicts itself or stays different: `/health` says it when it is so anew.

    The evidence stays. To end the exchange with it, use `cacp peers remove`.

    Example: cacp peers note aid://example.com/beta@1.0.0
    """
    from server.domain.agents import identity
    from server.store import alarms, equivocations

    with transaction(db) as node:
        count = equivocations.note(node.db, agent_id, node.now)
        differed = alarms.end(node.db, "content_differs", identity(agent_id))
    if not count and not differed:
        fail(REFUSED, f"nothing new is known of {agent_id}; `cacp doctor` says what is")
    if differed:
        typer.echo(f"noted: {agent_id} stays different", err=True)
    if count:
        said = "1 contradiction" if count == 1 else f"{count} contradictions"
        typer.echo(f"noted: {said} of {agent_id}", err=True)


@app.command()
def drop(
    agent_id: PeerArgument,
    entity: Annotated[
        str | None, typer.Argument(metavar="[ID]", help="One entity; without it, all of them.")
    ] = None,
    db: DbOption = None,
) -> None:
    """Give up what a peer has not taken: it is tried again only once it changes.

    It stays here, and differs from what the peer holds. Works while the node runs.

    \b
    Examples:
      cacp peers drop aid://example.com/beta@1.0.0 0198f5c2-7d1e-7c43-9b7a-3d0a6c1f2e4b
      cacp peers drop aid://example.com/beta@1.0.0
    """
    from server.store import peers as store
    from server.store import undelivered

    with transaction(db) as node:
        if store.find(node.db, agent_id) is None:
            _unknown(agent_id)
        dropped = undelivered.drop(node.db, agent_id, entity)
        if not dropped:
            what = "nothing" if entity is None else f"no {entity}"
            fail(REFUSED, f"there is {what} that {agent_id} has not taken; `cacp peers` lists it")
    typer.echo(f"Given up: {dropped}.", err=True)


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


def _untaken(peer: dict[str, Any]) -> list[list[str]]:
    held = (peer.get("sync") or {}).get("undeliveredEntities") or []
    return [
        [
            peer["agentId"],
            one["entity"],
            one["entityId"],
            one["projectId"],
            str(one["tries"]),
            one_line(one["reason"]),
        ]
        for one in held
    ]


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
        sync.get("lastError") or _contradictions(peer) or "-",
    ]


def _contradictions(peer: dict[str, Any]) -> str:
    count = peer.get("equivocations", 0)
    return f"it has contradicted itself ({count}): see `cacp peers evidence`" if count else ""
