"""`cacp keys`: the keys with which agents and people call a node (design §6)."""

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal, NamedTuple

import typer

from cli.columns import print_columns
from cli.keys_operator import operator
from cli.offline import checked_agent, checked_name, chosen_project, transaction
from cli.operator_key import AuthorityOption, check_may_make_humans
from cli.options import CreateOption, DbOption, JsonOption, grouped
from cli.terminal import REFUSED, fail, print_json
from cli.times import ago
from schemas.plain import one_line

if TYPE_CHECKING:
    from server.store.keys import Key
    from server.store.peers import Peer

app = typer.Typer(
    name="keys", no_args_is_help=True, help="Create, list and revoke the API keys of agents."
)
app.command()(operator)


def _checked_repo(value: str | None) -> str | None:
    return None if value is None else checked_name(value)


@dataclass(frozen=True)
class HolderOptions:
    """Who the key is for, and what it may reach."""

    agent_id: Annotated[
        str,
        typer.Argument(metavar="AID", callback=checked_agent, help="The agent that will call."),
    ]
    repo: Annotated[
        str | None,
        typer.Option(
            callback=_checked_repo,
            help="The repo that the agent represents. Required, except with --human, and with "
            "--runner: a runner without it runs for every repo.",
        ),
    ] = None
    trust: Annotated[
        Literal["verified", "known", "peer"],
        typer.Option(
            help="verified: an agent, which reads and writes. known: reads only. peer: a foreign "
            "peer, which registers, syncs and reads."
        ),
    ] = "verified"
    human: Annotated[
        bool,
        typer.Option(
            "--human", help="The holder is a person, who may approve mail with `cacp approve`."
        ),
    ] = False
    runner: Annotated[
        bool,
        typer.Option(
            "--runner",
            help="The holder runs tests and signs their receipts (`cacp verify`). It may record "
            "receipts and read, and nothing else.",
        ),
    ] = False
    file: Annotated[
        Path | None,
        typer.Option(
            help="For --runner: the file to write its keys into, which must be new and only its "
            "user can read.",
        ),
    ] = None
    projects: Annotated[
        list[str] | None,
        typer.Option(
            "--project",
            metavar="PROJECT",
            help="Restrict the key to this project, by its name, its id or the beginning of it; "
            "repeatable. All projects by default.",
        ),
    ] = None


class MadeKey(NamedTuple):
    """A new key, and what it changed. `home` is the node that is its agent's home, if another."""

    key_id: str | None
    key: str
    project_ids: list[str]
    ended: "list[Peer]"
    """The registrations without a key that it ended."""
    home: str | None
    public_key: str | None = None
    """Of a runner: with which its receipts are checked."""


@app.command()
@grouped
def create(
    holder: HolderOptions,
    db: DbOption = None,
    create: CreateOption = False,
    authority: AuthorityOption = None,
    as_json: JsonOption = False,
) -> None:
    """Create a key and print it once; the node stores only its hash.

    Works while the node runs, and before its first start with --create, which makes the
    database.

    An agent that was registered as a peer without a key becomes an agent of this node: the
    registration ends, and the command reports it. An agent's key can't register a peer or sync; a
    foreign peer needs a key with --trust peer, which can't write or send mail. Nodes that run this
    software need no key: they exchange their own.

    A person's key (--human) needs no repo; without one it reads, approves mail, and coordinates
    handoffs. It is made with the operator's key, which is read from the operator key file (see
    `cacp keys operator`), or with another human's. A key that is restricted to projects has access
    to them only: not to mail, teamspaces or handoffs.

    A runner's key (--runner) comes with one that signs receipts, which this command makes: both go
    into --file, and the node keeps only the public part. Keep the file where the tests run, such as
    a secret of CI, and out of reach of the agents whose work is tested.

    \b
    Examples:
      cacp keys create aid://example.com/ci@1.0.0 --runner --file runner.json
      cacp keys create aid://example.com/frontend@1.0.0 --repo frontend-app
      cacp keys create aid://example.com/ann@1.0.0 --human
    """
    _check_use(holder)
    made = make_key(holder, db, authority, create=create)
    if as_json:
        print_json(_created_json(holder, made))
    elif holder.runner:
        typer.echo(
            f"{made.key_id}: for the runner {holder.agent_id}, {_reach(holder)}. Its keys are in "
            f"{holder.file}; it signs as {made.public_key}.",
            err=True,
        )
    else:
        print_side_effects(holder.agent_id, made)
        _print_key(holder, made)


def make_key(
    holder: HolderOptions, db: str | None, authority: str | None = None, *, create: bool = False
) -> MadeKey:
    """Make a key in a node's database; with `create` also in a new one. `authority` is the key by
    which a human's is made. Problems end the command with one line on stderr."""
    from server.store import keys, mesh, peers

    key = keys.new_key()
    with transaction(db, create=create) as node:
        project_ids = sorted({chosen_project(node.db, name) for name in holder.projects or ()})
        if holder.human:
            check_may_make_humans(node.db, node.path, authority)
        public_key = _written_runner(holder, key) if holder.runner else None
        key_id = keys.add(
            node.db,
            key,
            agent_id=holder.agent_id,
            repo=holder.repo or "",
            trust="runner" if holder.runner else holder.trust,
            human=holder.human,
            public_key=public_key,
            projects=project_ids,
            now=node.now,
        )
        if holder.runner:
            return MadeKey(key_id, key, project_ids, [], None, public_key)
        ended = peers.take_back(node.db, holder.agent_id)
        home = mesh.home_at_peer(node.db, holder.agent_id)
    return MadeKey(key_id, key, project_ids, ended, home)


def _written_runner(holder: HolderOptions, key: str) -> str:
    """Make a runner's signing key, and write it into its file beside `key`; returns the public
    part. Ends the command when the file is there already, or can't be written."""
    from cli.key_file import write_private
    from proof.runner_key import RunnerKeys

    file = holder.file
    assert file is not None
    made = RunnerKeys.new(holder.agent_id, holder.repo or "", key)
    if file.exists():
        fail(REFUSED, f"{file} is there already: name a new file with --file")
    try:
        write_private(file, made.text())
    except OSError as error:
        fail(REFUSED, f"{file} can't be written: {error.strerror}")
    return made.signing.public


def _reach(holder: HolderOptions) -> str:
    return f"repo {holder.repo}" if holder.repo else "every repo"


@app.command("list")
def list_(db: DbOption = None, as_json: JsonOption = False) -> None:
    """List all keys with their agents, also revoked ones. The keys themselves are not shown.

    \b
    Examples:
      cacp keys list
      cacp keys list --json
    """
    from server.store import keys, project_names

    with transaction(db) as node:
        rows = [_key_json(key) for key in keys.every(node.db)]
        names = project_names.every(node.db)
    if as_json:
        print_json(rows)
    else:
        heads = ("KEY", "AGENT", "REPO", "TRUST", "CREATED", "PROJECTS")
        shown = len(heads) if any(row["projectIds"] for row in rows) else len(heads) - 1
        print_columns(
            heads[:shown],
            [_key_row(row, names)[:shown] for row in rows],
            none="There are no keys: `cacp keys create AID --repo NAME` creates one",
        )


@app.command()
def revoke(
    key_id: Annotated[
        str, typer.Argument(metavar="KEY_ID", help="The id that `cacp keys list` shows.")
    ],
    db: DbOption = None,
) -> None:
    """Revoke a key for good: a running node refuses it from the next request on.

    Example: cacp keys revoke key_1f0c22aa9b3e
    """
    if not revoke_key(key_id, db):
        fail(REFUSED, f"{key_id} is not an active key; `cacp keys list` shows the active ones")
    typer.echo(f"{key_id} is revoked.", err=True)


def revoke_key(key_id: str, db: str | None) -> bool:
    """Revoke a key in a node's database. False when it is not active there. Problems end the
    command with one line on stderr."""
    from server.store import keys

    with transaction(db) as node:
        return keys.revoke(node.db, key_id, now=node.now)


def _check_use(holder: HolderOptions) -> None:
    if holder.runner:
        _check_runner(holder)
    elif holder.file is not None:
        raise typer.BadParameter("only a runner's keys go into a file", param_hint="--file")
    if holder.repo is None and not holder.human and not holder.runner:
        raise typer.BadParameter(
            "name the repo that the agent speaks for; only a person's key, with --human, needs "
            "none",
            param_hint="--repo",
        )
    if holder.human and holder.trust != "verified":
        raise typer.BadParameter(
            f"a key of --trust {holder.trust} can't write, so its holder could not approve mail",
            param_hint="--human",
        )


def _check_runner(holder: HolderOptions) -> None:
    if holder.human or holder.trust != "verified":
        raise typer.BadParameter(
            "a runner is neither a person nor a peer: leave out --human and --trust",
            param_hint="--runner",
        )
    if holder.file is None:
        raise typer.BadParameter(
            "name the file that its keys are written into with --file; the signing key is shown "
            "nowhere else",
            param_hint="--runner",
        )


def _created_json(holder: HolderOptions, made: MadeKey) -> dict[str, Any]:
    if holder.runner:
        return {
            "keyId": made.key_id,
            "agentId": holder.agent_id,
            "repo": holder.repo or "",
            "trust": "runner",
            "publicKey": made.public_key,
            "file": str(holder.file),
            "projectIds": made.project_ids,
        }
    return {
        "keyId": made.key_id,
        "key": made.key,
        "agentId": holder.agent_id,
        "repo": holder.repo or "",
        "trust": holder.trust,
        "human": holder.human,
        "projectIds": made.project_ids,
        "registrationsEnded": [_registration_json(peer) for peer in made.ended],
        "homeElsewhere": made.home,
    }


def _registration_json(ended: "Peer") -> dict[str, Any]:
    from server.methods.sync.registration import describe

    return describe(ended)


def _print_key(holder: HolderOptions, made: MadeKey) -> None:
    repo = f"repo {holder.repo}" if holder.repo else "no repo"
    human = "a human's, " if holder.human else ""
    typer.echo(
        f"{made.key_id}: for {holder.agent_id}, {repo}, {human}{holder.trust}. Shown only once:",
        err=True,
    )
    typer.echo(made.key)


def print_side_effects(agent_id: str, made: MadeKey) -> None:
    """Say which registrations the new key has ended, and whether the agent's home is elsewhere."""
    for registration in made.ended:
        typer.echo(_ended_note(registration), err=True)
    if made.home is not None:
        typer.echo(
            f"Note: the home of {agent_id} is {one_line(made.home)}. Here it may only read, until "
            "that node has revoked its keys (`cacp keys revoke` there).",
            err=True,
        )


def _ended_note(ended: "Peer") -> str:
    from schemas.stamps import iso

    return one_line(
        f"Note: {ended.agent_id} was registered as a peer without a key, at {ended.endpoint}, repo "
        f"{ended.repo_name or '-'}, since {iso(ended.registered_at)}. That registration has ended: "
        "from now on that name can only be used with a key, and the agent's mailbox is on this "
        "node. If it was a peer that you know, it registers again, with a key of --trust peer."
    )


def _key_json(key: "Key") -> dict[str, Any]:
    from schemas.stamps import iso

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


def _key_row(key: dict[str, Any], names: Mapping[str, str]) -> list[str]:
    """A key for people. `names` has the name of each project by id."""
    trust = "human" if key["human"] else key["trust"]
    return [
        key["keyId"],
        one_line(key["agentId"]),
        one_line(key["repo"]) or "-",
        "revoked" if key["revokedAt"] else trust,
        ago(key["createdAt"]),
        ", ".join(one_line(names.get(id, id)) for id in key["projectIds"]) or "all",
    ]
