"""`cacp keys`: who may call a node (design §6)."""

from collections.abc import Iterable
from typing import TYPE_CHECKING, Annotated, Any, Literal

import typer

from cli.offline import DbOption, checked_name, print_columns, transaction
from cli.terminal import REFUSED, JsonOption, fail, print_json
from schemas.plain import one_line

if TYPE_CHECKING:
    import sqlite3

    from server.store.keys import Key
    from server.store.peers import Peer

app = typer.Typer(
    name="keys", no_args_is_help=True, help="Make, list and revoke the keys that agents call with."
)


def _checked_repo(value: str | None) -> str | None:
    return None if value is None else checked_name(value)


@app.command()
def create(
    agent_id: Annotated[
        str, typer.Argument(metavar="AID", callback=checked_name, help="The agent that will call.")
    ],
    repo: Annotated[
        str | None,
        typer.Option(
            callback=_checked_repo,
            help="The one repo that it speaks for; with --human it may have none.",
        ),
    ] = None,
    trust: Annotated[
        Literal["verified", "known", "peer"],
        typer.Option(
            help="verified is an agent's, known may read, peer is for a foreign peer: it may "
            "register, sync and read."
        ),
    ] = "verified",
    human: Annotated[
        bool,
        typer.Option(
            "--human", help="For a person, who may let gated messages through with `cacp approve`."
        ),
    ] = False,
    project: Annotated[
        list[str] | None,
        typer.Option(
            "--project",
            metavar="ID",
            help="A project that it may see, as often as there are some; all without it.",
        ),
    ] = None,
    db: DbOption = None,
    as_json: JsonOption = False,
) -> None:
    """Make a key and print it, this once: the node keeps only its hash.

    Works while the node runs, and before its first start. An agent that was registered as a peer
    without a key is one of this node from then on; what was registered ends, and is told. An
    agent's key registers no peer and syncs nothing: that takes one of --trust peer, which neither
    writes nor mails. Nodes of this make need none: they exchange their own.

    A person's key (--human) needs no repo: who has none reads, and lets mail through. One for some
    projects (--project) reaches nothing else: no mail, teams or handoffs, and not the whole node.

    Example: cacp keys create aid://example.com/frontend@1.0.0 --repo frontend-app
    """
    from server.store import keys, mesh, peers

    _check_use(repo, trust, human=human)
    repo = repo or ""

    key = keys.new_key()
    with transaction(db, make=True) as node:
        _check_projects(node.db, project or ())
        key_id = keys.add(
            node.db,
            key,
            agent_id=agent_id,
            repo=repo,
            trust=trust,
            human=human,
            projects=project or (),
            now=node.now,
        )
        ended = peers.take_back(node.db, agent_id)
        home = mesh.home_at_peer(node.db, agent_id)
    if as_json:
        print_json(
            {
                "keyId": key_id,
                "key": key,
                "agentId": agent_id,
                "repo": repo,
                "trust": trust,
                "human": human,
                "projectIds": sorted(set(project or ())),
                "registrationsEnded": [_registration(one) for one in ended],
                "homeElsewhere": home,
            }
        )
        return
    _note(agent_id, ended, home)
    whose = "a human's, " if human else ""
    where = f"repo {repo}" if repo else "no repo"
    typer.echo(f"{key_id}: for {agent_id}, {where}, {whose}{trust}. Shown this once:", err=True)
    typer.echo(key)


@app.command("list")
def list_(db: DbOption = None, as_json: JsonOption = False) -> None:
    """List every key that was made, revoked ones too; never the key itself.

    Example: cacp keys list --json
    """
    from server.store import keys

    with transaction(db) as node:
        rows = [_shown(key) for key in keys.every(node.db)]
    if as_json:
        print_json(rows)
    else:
        print_columns(
            ("KEY", "AGENT", "REPO", "TRUST", "CREATED", "REVOKED", "HUMAN", "PROJECTS"),
            [[_cell(value) for value in row.values()] for row in rows],
            none="none: `cacp keys create AID --repo NAME` makes one",
        )


@app.command()
def revoke(
    key_id: Annotated[str, typer.Argument(metavar="KEY_ID", help="As `cacp keys list` shows it.")],
    db: DbOption = None,
) -> None:
    """Revoke a key for good: the node refuses it from the next request on.

    Example: cacp keys revoke key_1f0c22aa9b3e
    """
    from server.store import keys

    with transaction(db) as node:
        revoked = keys.revoke(node.db, key_id, now=node.now)
    if not revoked:
        fail(REFUSED, f"there is no active key {key_id}; `cacp keys list` shows them")
    typer.echo(f"{key_id} is revoked.", err=True)


def _check_use(repo: str | None, trust: str, *, human: bool) -> None:
    if repo is None and not human:
        raise typer.BadParameter(
            "name the one repo that the agent speaks for; only a person's key, with --human, may "
            "have none",
            param_hint="--repo",
        )
    if human and trust != "verified":
        raise typer.BadParameter(
            f"a key of --trust {trust} writes nothing, so who holds it could let no mail through",
            param_hint="--human",
        )


def _check_projects(db: "sqlite3.Connection", ids: Iterable[str]) -> None:
    from server.store import tokens

    for project_id in ids:
        if not tokens.has_project(db, project_id):
            fail(REFUSED, f"there is no project {project_id} on this node")


def _note(agent_id: str, ended: "list[Peer]", home: str | None) -> None:
    """Say what else a new key has changed, or doesn't change."""
    for one in ended:
        typer.echo(_told(one), err=True)
    if home is not None:
        typer.echo(
            f"Note: {agent_id} is at home on {one_line(home)}. Here it may only read, until that "
            "node has revoked its keys (`cacp keys revoke` there).",
            err=True,
        )


def _told(ended: "Peer") -> str:
    from schemas.base import iso

    return one_line(
        f"Note: {ended.agent_id} was registered as a peer without a key, at {ended.endpoint}, repo "
        f"{ended.repo_name or '-'}, since {iso(ended.registered_at)}. That has ended: nobody is "
        "taken at that name's word any more, and the agent's mailbox is on this node. If it was a "
        "peer that you know, it registers again, with a key of --trust peer."
    )


def _registration(ended: "Peer") -> dict[str, Any]:
    from server.methods.sync.registration import describe

    return describe(ended)


def _shown(key: "Key") -> dict[str, Any]:
    from schemas.base import iso

    return {
        "keyId": key.key_id,
        "agentId": key.agent_id,
        "repo": key.repo,
        "trust": key.trust,
        "createdAt": iso(key.created_at),
        "revokedAt": None if key.revoked_at is None else iso(key.revoked_at),
        "human": key.human,
        "projectIds": sorted(key.projects or ()),
    }


def _cell(value: Any) -> str:
    if isinstance(value, list):
        return " ".join(value) or "-"
    return "yes" if value is True else str(value or "-")
