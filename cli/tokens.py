"""`cacp tokens`: narrowing a caller to one project (CACP 2.0, Headers; design §6)."""

import re
from typing import TYPE_CHECKING, Annotated, Any

import typer

from cli.offline import DbOption, print_columns, transaction
from cli.terminal import REFUSED, JsonOption, fail, print_json

if TYPE_CHECKING:
    from server.store.tokens import Token

app = typer.Typer(
    name="tokens",
    no_args_is_help=True,
    help="Make, list and revoke the tokens that narrow an agent to one project.",
)

_SECONDS = {"s": 1, "m": 60, "h": 3_600, "d": 86_400}
_DAYS_MAX = 366


def seconds(text: str) -> int:
    """The seconds in a time such as 90s, 30m, 24h or 7d.

    >>> seconds("24h")
    86400
    """
    match = re.fullmatch(r"([0-9]{1,9})([smhd])", text)
    if match:
        found = int(match[1]) * _SECONDS[match[2]]
        if 0 < found <= _DAYS_MAX * _SECONDS["d"]:
            return found
    raise typer.BadParameter(f"should be a time up to {_DAYS_MAX}d, such as 90s, 30m, 24h or 7d")


@app.command()
def create(
    project_id: Annotated[
        str, typer.Argument(metavar="PROJECT_ID", help="The one project to allow.")
    ],
    agent_id: Annotated[
        str, typer.Option("--agent", metavar="AID", help="The agent, exactly as its key names it.")
    ],
    expires: Annotated[
        int, typer.Option(parser=seconds, metavar="TIME", help="How long it holds: 30m, 24h, 7d.")
    ] = "24h",  # type: ignore[assignment]  # typer parses the default as it parses the option
    db: DbOption = None,
    as_json: JsonOption = False,
) -> None:
    """Make a token and print it, this once. The agent sends it beside its key.

    The header is X-Project-Token; with it, the key reaches this one project.

    Example: cacp tokens create 0198c0de-… --agent aid://example.com/frontend@1.0.0 --expires 24h
    """
    from schemas.base import iso
    from server.auth.authenticator import issue_token
    from server.store import keys, tokens

    with transaction(db) as node:
        if not tokens.has_project(node.db, project_id):
            fail(REFUSED, f"there is no project {project_id} on this node")
        holders = {key.agent_id for key in keys.every(node.db) if key.revoked_at is None}
        if agent_id not in holders | {node.settings.agent}:
            fail(
                REFUSED,
                f"{agent_id} has no active key; `cacp keys create` makes one",
            )
        expires_at = node.now + expires * 1_000_000
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
    if as_json:
        print_json(
            {
                "tokenId": token_id,
                "token": token,
                "projectId": project_id,
                "agentId": agent_id,
                "expiresAt": iso(expires_at),
            }
        )
        return
    typer.echo(f"{token_id}: for {agent_id}, until {iso(expires_at)}. Shown this once:", err=True)
    typer.echo(token)


@app.command("list")
def list_(db: DbOption = None, as_json: JsonOption = False) -> None:
    """List every token that was made; never the token itself.

    Example: cacp tokens list --json
    """
    from server.store import tokens

    with transaction(db) as node:
        rows = [_shown(token) for token in tokens.every(node.db)]
    if as_json:
        print_json(rows)
    else:
        print_columns(
            ("TOKEN", "PROJECT", "AGENT", "CREATED", "EXPIRES", "REVOKED"),
            [[value or "-" for value in row.values()] for row in rows],
            none="none: `cacp tokens create PROJECT_ID --agent AID` makes one",
        )


@app.command()
def revoke(
    token_id: Annotated[
        str, typer.Argument(metavar="TOKEN_ID", help="As `cacp tokens list` shows it.")
    ],
    db: DbOption = None,
) -> None:
    """Revoke a token for good: the node refuses it from the next request on.

    Example: cacp tokens revoke tok_1f0c22aa9b3e
    """
    from server.store import tokens

    with transaction(db) as node:
        revoked = tokens.revoke(node.db, token_id, now=node.now)
    if not revoked:
        fail(REFUSED, f"there is no active token {token_id}; `cacp tokens list` shows them")
    typer.echo(f"{token_id} is revoked.", err=True)


def _shown(token: "Token") -> dict[str, Any]:
    from schemas.base import iso

    return {
        "tokenId": token.token_id,
        "projectId": token.project_id,
        "agentId": token.agent_id,
        "createdAt": iso(token.created_at),
        "expiresAt": iso(token.expires_at),
        "revokedAt": None if token.revoked_at is None else iso(token.revoked_at),
    }
