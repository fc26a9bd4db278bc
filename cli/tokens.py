"""`cacp tokens`: tokens that restrict an agent to one project (CACP 2.0, Headers; design §6)."""

import re
from collections.abc import Mapping
from typing import TYPE_CHECKING, Annotated, Any, NamedTuple

import typer

from cli.columns import print_columns
from cli.offline import Offline, chosen_project, transaction
from cli.options import DbOption, JsonOption, ProjectArgument
from cli.terminal import REFUSED, fail, print_json
from cli.times import ago, until
from schemas.plain import one_line

if TYPE_CHECKING:
    from server.store.tokens import Token

app = typer.Typer(
    name="tokens",
    no_args_is_help=True,
    help="Create, list and revoke tokens that restrict an agent to one project.",
)

_SECONDS = {"s": 1, "m": 60, "h": 3_600, "d": 86_400}
_DAYS_MAX = 366


class IssuedToken(NamedTuple):
    """A new token and its id. `expires_at` is a stamp."""

    token_id: str
    token: str
    expires_at: int


def seconds(text: str) -> int:
    """The seconds in a duration such as 90s, 30m, 24h or 7d.

    >>> seconds("24h")
    86400
    """
    match = re.fullmatch(r"([0-9]{1,9})([smhd])", text)
    if match:
        duration = int(match[1]) * _SECONDS[match[2]]
        if 0 < duration <= _DAYS_MAX * _SECONDS["d"]:
            return duration
    raise typer.BadParameter(
        f"should be a duration up to {_DAYS_MAX}d, such as 90s, 30m, 24h or 7d"
    )


@app.command()
def create(
    project: ProjectArgument,
    agent_id: Annotated[
        str, typer.Option("--agent", metavar="AID", help="The agent, exactly as its key names it.")
    ],
    expires: Annotated[
        int,
        typer.Option(
            parser=seconds, metavar="DURATION", help="How long it is valid: 90s, 30m, 24h or 7d."
        ),
    ] = "24h",  # type: ignore[assignment]  # typer parses the default as it parses the option
    db: DbOption = None,
    as_json: JsonOption = False,
) -> None:
    """Create a token that restricts an agent to one project, and print it once.

    The agent sends it in the header X-Project-Token, beside its key, which then has access to this
    project only. Works while the node runs.

    Example: cacp tokens create Coupons --agent aid://example.com/web@1.0.0
    """
    from schemas.stamps import iso

    with transaction(db) as node:
        project_id = chosen_project(node.db, project)
        _check_holder(node, agent_id)
        issued = _issue(node, project_id, agent_id, node.now + expires * 1_000_000)
    expires_at = iso(issued.expires_at)
    if as_json:
        print_json(
            {
                "tokenId": issued.token_id,
                "token": issued.token,
                "projectId": project_id,
                "agentId": agent_id,
                "expiresAt": expires_at,
            }
        )
        return
    typer.echo(f"{issued.token_id}: for {agent_id}, until {expires_at}. Shown only once:", err=True)
    typer.echo(issued.token)


def _check_holder(node: Offline, agent_id: str) -> None:
    """End the command unless the agent has a key or is the node's."""
    from server.store import keys

    holders = {key.agent_id for key in keys.every(node.db) if key.revoked_at is None}
    if agent_id not in holders | {node.settings.agent}:
        fail(REFUSED, f"{agent_id} has no active key; `cacp keys create` makes one")


def _issue(node: Offline, project_id: str, agent_id: str, expires_at: int) -> IssuedToken:
    from server.auth.authenticator import issue_token
    from server.store import tokens

    token_id = tokens.add(
        node.db, project_id=project_id, agent_id=agent_id, now=node.now, expires_at=expires_at
    )
    token = issue_token(
        tokens.node_secret(node.db),
        token_id=token_id,
        project_id=project_id,
        agent_id=agent_id,
        issued_at=node.now,
        expires_at=expires_at,
    )
    return IssuedToken(token_id, token, expires_at)


@app.command("list")
def list_(db: DbOption = None, as_json: JsonOption = False) -> None:
    """List all tokens with their projects and agents, also expired and revoked ones.

    The tokens themselves are not shown.

    Example: cacp tokens list --json
    """
    from schemas.stamps import iso
    from server.store import project_names, tokens

    with transaction(db) as node:
        rows = [_token_json(token) for token in tokens.every(node.db)]
        names, now = project_names.every(node.db), iso(node.now)
    if as_json:
        print_json(rows)
    else:
        print_columns(
            ("TOKEN", "PROJECT", "AGENT", "CREATED", "EXPIRES"),
            [_token_row(row, names, now) for row in rows],
            none="There are no tokens: `cacp tokens create PROJECT --agent AID` creates one",
        )


@app.command()
def revoke(
    token_id: Annotated[
        str, typer.Argument(metavar="TOKEN_ID", help="The id that `cacp tokens list` shows.")
    ],
    db: DbOption = None,
) -> None:
    """Revoke a token for good: a running node refuses it from the next request on.

    Example: cacp tokens revoke tok_1f0c22aa9b3e
    """
    from server.store import tokens

    with transaction(db) as node:
        revoked = tokens.revoke(node.db, token_id, now=node.now)
    if not revoked:
        fail(
            REFUSED, f"{token_id} is not an active token; `cacp tokens list` shows the active ones"
        )
    typer.echo(f"{token_id} is revoked.", err=True)


def _token_json(token: "Token") -> dict[str, Any]:
    from schemas.stamps import iso

    return {
        "tokenId": token.token_id,
        "projectId": token.project_id,
        "agentId": token.agent_id,
        "createdAt": iso(token.created_at),
        "expiresAt": iso(token.expires_at),
        "revokedAt": None if token.revoked_at is None else iso(token.revoked_at),
    }


def _token_row(token: dict[str, Any], names: Mapping[str, str], now: str) -> list[str]:
    """A token for people. `names` has the name of each project by id; `now` is an ISO time."""
    ended = "revoked" if token["revokedAt"] else "expired" if token["expiresAt"] <= now else None
    return [
        token["tokenId"],
        one_line(names.get(token["projectId"], token["projectId"])),
        one_line(token["agentId"]),
        ago(token["createdAt"]),
        ended or until(token["expiresAt"]),
    ]
