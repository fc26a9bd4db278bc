"""`cacp keys operator`: the operator's key (design §7)."""

from typing import Annotated

import typer

from cli.offline import transaction
from cli.options import DbOption, JsonOption
from cli.terminal import REFUSED, fail, print_json

DONE = {
    "kept": "The node's operator key is in this file, which only your user may read.",
    "made": "The operator key file is made. Keys that the operator had before are no longer valid.",
    "taken": "The key of this file is the operator's now. The one before is no longer valid.",
    "replaced": "The operator has a new key. The one before is no longer valid.",
}


def operator(
    rotate: Annotated[
        bool, typer.Option("--rotate", help="Replace the key; the old one ends at once.")
    ] = False,
    db: DbOption = None,
    as_json: JsonOption = False,
) -> None:
    """Print the path of the operator key file, and make the file again if it is lost.

    The operator's key is what makes a caller a node's operator: it coordinates handoffs outside
    teamspaces, changes any project's status and repos, and makes keys of humans. The first start
    of the node makes it, in a file beside the database. `cacp` reads it there when a command needs
    it; `cacp call --operator` calls any method with it. Without it, a program of this machine that
    calls without a key is the node's own agent and nothing more.

    Works while the node runs, which takes the new key at its next request. Whoever can write the
    database is its operator, so this needs no key.

    \b
    Examples:
      cacp keys operator
      cacp keys operator --rotate
      CACP_KEY=$(cat "$(cacp keys operator)") cacp status --url https://cacp.example
    """
    from server.auth.key_file import UnusableKeyFile
    from server.auth.operator_key import ensure, path_beside, replace
    from server.store import keys

    outcome = "replaced"
    with transaction(db) as node:
        try:
            if rotate:
                replace(node.db, node.path)
            elif node.shared and keys.has_operator(node.db) and not path_beside(node.path).exists():
                fail(
                    REFUSED,
                    "the operator's key of these replicas is in a file on another machine: copy it "
                    f"to {path_beside(node.path)}, or replace the key with --rotate",
                )
            else:
                outcome = ensure(node.db, node.path)
        except UnusableKeyFile as problem:
            fail(REFUSED, str(problem))
    path = path_beside(node.path)
    if as_json:
        print_json({"file": str(path), "outcome": outcome})
        return
    typer.echo(DONE[outcome], err=True)
    typer.echo(str(path))
