"""`cacp clock`: what peers stamped too far ahead of the time, and taking it in all the same."""

import typer

from cli.offline import DbOption, print_columns, transaction
from cli.terminal import JsonOption, print_json

app = typer.Typer(
    name="clock",
    no_args_is_help=True,
    help="See and accept what peers stamped too far ahead of the time.",
)


@app.command()
def deferred(db: DbOption = None, as_json: JsonOption = False) -> None:
    """List what peers sent and this node does not show before it is due, a hundred at most.

    Example: cacp clock deferred --json
    """
    import orjson

    from schemas.base import iso
    from server.store import mesh

    with transaction(db) as node:
        rows = [
            {
                "dueAt": iso(due),
                "peer": one.source,
                "method": one.method,
                "projectId": orjson.loads(one.params).get("projectId"),
            }
            for due, one in mesh.each_deferred(node.db, node.now)
        ]
    if as_json:
        print_json(rows)
    else:
        print_columns(
            ("DUE", "PEER", "METHOD", "PROJECT"),
            [[value or "-" for value in row.values()] for row in rows],
        )


@app.command()
def accept(db: DbOption = None) -> None:
    """Take in now what is deferred, and what comes with stamps up to the last of it.

    Works while the node runs: it takes them in within seconds. Look at `cacp clock deferred` first:
    a stamp wins over what is written at the same time elsewhere, and lists show it last until it is
    due. Other nodes defer for themselves: give the command on each that does.

    Example: cacp clock accept
    """
    from schemas.base import iso
    from server.store import mesh

    with transaction(db) as node:
        last = mesh.deferred(node.db, node.now).until
        accepted = mesh.accept(node.db, node.now)
    if not accepted:
        typer.echo("Nothing is deferred.", err=True)
        return
    told = f"{accepted} message{'s' if accepted > 1 else ''}, due until {iso(last)}"
    typer.echo(f"accepted {told}: a running node takes them in within seconds.", err=True)
