"""`cacp peers evidence` and `note`: nodes that contradict themselves (design §7)."""

import typer

from cli.casing import camel
from cli.columns import print_columns
from cli.offline import transaction
from cli.options import DbOption, JsonOption, PeerArgument
from cli.terminal import REFUSED, fail, print_json


def evidence(agent_id: PeerArgument, db: DbOption = None, as_json: JsonOption = False) -> None:
    """Show a node's contradictions: two different things that it signed under one id.

    With --json each has both signatures, which anyone can verify.

    Example: cacp peers evidence aid://example.com/beta@1.0.0 --json
    """
    from schemas.stamps import iso
    from server.store import equivocations

    with transaction(db) as node:
        contradictions = equivocations.of_node(node.db, agent_id)
    if as_json:
        print_json(
            [camel(item._asdict() | {"found_at": iso(item.found_at)}) for item in contradictions]
        )
        return
    print_columns(
        ("FOUND", "KIND", "IN", "KEY"),
        [[iso(item.found_at), item.kind, item.place, item.key] for item in contradictions],
        none=f"There is no evidence against {agent_id}: `cacp peers` lists "
        "the nodes that contradicted themselves",
    )


def note(agent_id: PeerArgument, db: DbOption = None) -> None:
    """Acknowledge that a node contradicts itself, or that it stays different from this one.

    It clears the warning in `/health` until a new contradiction or difference. The evidence is
    kept. To stop exchanging with the node, use `cacp peers remove`.

    Example: cacp peers note aid://example.com/beta@1.0.0
    """
    from server.domain.agents import identity
    from server.store import alarms, equivocations

    with transaction(db) as node:
        count = equivocations.note(node.db, agent_id, node.now)
        differed = alarms.end(node.db, "content_differs", identity(agent_id))
    if not count and not differed:
        fail(REFUSED, f"there is nothing new to note about {agent_id}; see `cacp doctor`")
    if differed:
        typer.echo(f"noted: {agent_id} stays different", err=True)
    if count:
        contradictions = "1 contradiction" if count == 1 else f"{count} contradictions"
        typer.echo(f"noted: {contradictions} of {agent_id}", err=True)
