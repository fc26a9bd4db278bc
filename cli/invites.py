"""`cacp invite`: one-time codes with which another node becomes a peer (design §6)."""

from typing import Annotated, Any

import typer

from cli.columns import print_columns
from cli.offline import transaction
from cli.options import DbOption, JsonOption
from cli.terminal import REFUSED, fail, print_json
from cli.times import ago, until
from schemas.plain import one_line

HOUR = 3_600_000_000

app = typer.Typer(
    name="invite",
    no_args_is_help=True,
    help="Invite another node to become a peer, without a mesh token.",
)


@app.command()
def create(
    hours: Annotated[int, typer.Option(min=1, max=720, help="Hours until it expires.")] = 24,
    db: DbOption = None,
    as_json: JsonOption = False,
) -> None:
    """Create an invite and print its code. The first node that joins with it becomes a peer.

    Send the code over a channel that you trust: pass it to `cacp join` on the other node. Works
    while this node runs.

    Example: cacp invite create --hours 2
    """
    from server.store import mesh

    with transaction(db) as node:
        invite_id, code = mesh.invite(node.db, now=node.now, expires_at=node.now + hours * HOUR)
    if as_json:
        print_json({"inviteId": invite_id, "code": code, "hours": hours})
        return
    typer.echo(f"{invite_id}: valid once, for {hours} h. On the other node:", err=True)
    typer.echo("  cacp join URL_OF_THIS_NODE CODE", err=True)
    typer.echo(code)


@app.command("list")
def list_(db: DbOption = None, as_json: JsonOption = False) -> None:
    """List all invites, also used, expired and revoked ones. The codes are not shown.

    Example: cacp invite list --json
    """
    from schemas.stamps import iso
    from server.store import mesh

    with transaction(db) as node:
        rows = [
            {
                "inviteId": invite.invite_id,
                "createdAt": iso(invite.created_at),
                "expiresAt": iso(invite.expires_at),
                "usedBy": invite.used_by,
                "revokedAt": iso(invite.revoked_at) if invite.revoked_at is not None else None,
            }
            for invite in mesh.invites(node.db)
        ]
        now = iso(node.now)
    if as_json:
        print_json(rows)
    else:
        print_columns(
            ("INVITE", "CREATED", "EXPIRES", "USED BY"),
            [_invite_row(row, now) for row in rows],
            none="There are no invites: `cacp invite create` creates one",
        )


@app.command()
def revoke(
    invite_id: Annotated[
        str, typer.Argument(metavar="INVITE_ID", help="The id that `cacp invite list` shows.")
    ],
    db: DbOption = None,
) -> None:
    """Revoke an invite that has not been used.

    Example: cacp invite revoke inv_1f0c22aa9b3e
    """
    from server.store import mesh

    with transaction(db) as node:
        revoked = mesh.revoke_invite(node.db, invite_id, now=node.now)
    if not revoked:
        fail(REFUSED, f"{invite_id} is not an open invite; `cacp invite list` shows the open ones")
    typer.echo(f"{invite_id} is revoked.", err=True)


def _invite_row(invite: dict[str, Any], now: str) -> list[str]:
    """An invite for people. `now` is an ISO time."""
    ended = "revoked" if invite["revokedAt"] else "expired" if invite["expiresAt"] <= now else None
    used_by = invite["usedBy"]
    return [
        invite["inviteId"],
        ago(invite["createdAt"]),
        "used" if used_by else ended or until(invite["expiresAt"]),
        one_line(used_by or "-"),
    ]
