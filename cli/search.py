"""`cacp search` and `cacp reindex`: full-text search, and its index."""

from typing import Annotated, Any

import typer

from cli.client import DEFAULT_URL, connected
from cli.options import DbOption, JsonOption, KeyOption, UrlOption
from cli.show import project_id_of
from cli.terminal import print_json

Json = dict[str, Any]
KINDS = ("mail", "context", "contract")


def search(
    words: Annotated[
        list[str],
        typer.Argument(metavar="WORDS", help="What to search for; put `-word` after --."),
    ],
    kind: Annotated[
        list[str] | None,
        typer.Option(metavar="KIND", help="Only mail, context or contract; repeatable."),
    ] = None,
    project: Annotated[
        str | None,
        typer.Option(
            metavar="PROJECT", help="Only this project: its name, its id, or the beginning of it."
        ),
    ] = None,
    limit: Annotated[int, typer.Option(min=1, max=100, help="How many hits to show at most.")] = 20,
    cursor: Annotated[
        str | None,
        typer.Option(metavar="CURSOR", help="Show the hits after this `nextCursor` of --json."),
    ] = None,
    url: UrlOption = DEFAULT_URL,
    key: KeyOption = None,
    as_json: JsonOption = False,
) -> None:
    """Search mail, context and contracts, the latest first.

    All words must occur. "A phrase" in quotes, the beginning of a word as pay*, and -word for what
    must not occur. Case and accents don't matter; createUser and user_id are found by their parts.
    It finds what the key may read: all contracts and context, but only its own mail.

    \b
    Examples:
      cacp search createUser
      cacp search '"created at"' 'pay*' --kind contract
      cacp search --project Checkout -- address -draft
    """
    for given in kind or ():
        if given not in KINDS:
            raise typer.BadParameter(f"must be one of {', '.join(KINDS)}", param_hint="--kind")
    params: Json = {"query": " ".join(words), "limit": limit}
    params |= {"kinds": kind} if kind else {}
    params |= {"cursor": cursor} if cursor else {}
    with connected(url, key) as node:
        if project is not None:
            params["projectId"] = project_id_of(node, project)
        answer = node.call("cacp/search", params)
    if as_json:
        print_json(answer)
        return
    if answer["indexing"]:
        typer.echo(
            f"The node is still indexing about {answer['waiting']:,} documents: there may be more.",
            err=True,
        )
    if not answer["hits"]:
        typer.echo("Nothing has these words.", err=True)
        return
    from cli.search_view import hits_text
    from cli.views import console

    console().print(hits_text(answer), soft_wrap=True)


def reindex(db: DbOption = None) -> None:
    """Build the index of `cacp search` anew. Works while the node runs, which then indexes.

    Needed only when `cacp doctor` or a search says that the index is damaged. Nothing else is lost
    with it.

    \b
    Example:
      cacp reindex --db team.db
    """
    from cli.offline import transaction
    from server.store import search as store

    with transaction(db) as offline:
        store.rebuild(offline.db)
        waiting = store.waiting(offline.db)
    typer.echo(f"The node will index about {waiting:,} documents.", err=True)
