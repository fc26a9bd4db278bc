"""`cacp invite`: one-time codes by which another node becomes a peer (design §6)."""

from typing import Annotated

import typer

from cli.offline import DbOption, print_columns, transaction
from cli.terminal import REFUSED, JsonOption, fail, print_json

HOUR = 3_600_000_000

app = typer.Typer(
    name="invite",
    no_args_is_help=True,
    help="Invite another node to be a peer, without a mesh token.",
)


@app.command()
def create(
    hours: Annotated[int, typer.Option(min=1, max=720, help="How long it can be used.")] = 24,
    db: DbOption = None,
    as_json: JsonOption = False,
) -> None:
    """Make an invite and print its code. Whoever gives it first to `cacp join` becomes a peer.

    Works while the node runs. Send the code by a way that you trust.

    Example: cacp invite create --hours 2
    """
    from server.store import mesh

    with transaction(db) as node:
        invite_id, code = mesh.invite(node.db, now=node.now, expires_at=node.now + hours * HOUR)
    if as_json:
        print_json({"inviteId": invite_id, "code": code, "hours": hours})
        return
    typer.echo(f"{invite_id}: good for {hours} h, once. On the other node:", err=True)
    typer.echo("  cacp join URL_OF_THIS_NODE CODE", err=True)
    typer.echo(code)


@app.command("list")
def list_(db: DbOption = None, as_json: JsonOption = False) -> None:
    """List every invite, used and revoked ones too; never the code.

    Example: cacp invite list --json
    """
    from schemas.base import iso
    from server.store import mesh

    with transaction(db) as node:
        rows = [
            {
                "inviteId": one.invite_id,
                "createdAt": iso(one.created_at),
                "expiresAt": iso(one.expires_at),
                "usedBy": one.used_by,
                "revokedAt": iso(one.revoked_at) if one.revoked_at is not None else None,
            }
            for one in mesh.invites(node.db)
        ]
    if as_json:
        print_json(rows)
    else:
        print_columns(
            ("INVITE", "CREATED", "EXPIRES", "USED BY", "REVOKED"),
            [[value or "-" for value in row.values()] for row in rows],
            none="none: `cacp invite create` makes one, for a node that is to become a peer",
        )


@app.command()
def revoke(
    invite_id: Annotated[
        str, typer.Argument(metavar="INVITE_ID", help="As `cacp invite list` shows it.")
    ],
    db: DbOption = None,
) -> None:
    """Revoke an invite that nobody has used.

    Example: cacp invite revoke inv_1f0c22aa9b3e
    """
    from server.store import mesh

    with transaction(db) as node:
        revoked = mesh.revoke_invite(node.db, invite_id, now=node.now)
    if not revoked:
        fail(REFUSED, f"there is no open invite {invite_id}; `cacp invite list` shows them")
    typer.echo(f"{invite_id} is revoked.", err=True)
