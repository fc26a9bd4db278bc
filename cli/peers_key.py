"""`cacp peers key`: the API keys that foreign peers have given to this node (design §6)."""

import os
import re
import sys
from pathlib import Path
from typing import Annotated

import typer

from cli.offline import Offline, fail_unknown_peer, transaction
from cli.options import CreateOption, DbOption
from cli.terminal import REFUSED, USAGE, fail

KEY_BYTES = 4_096
API_KEY = re.compile(r"[!-~]{1,4096}")
"""A header value without spaces."""


def key(
    peer: Annotated[
        str, typer.Argument(metavar="URL|AID", help="Where the peer listens, or its agent id.")
    ],
    file: Annotated[
        Path | None, typer.Option("--file", help="Read the key from this file.")
    ] = None,
    env: Annotated[
        str | None, typer.Option("--env", help="Read the key from this environment variable.")
    ] = None,
    remove: Annotated[bool, typer.Option("--remove", help="Forget the key.")] = False,
    db: DbOption = None,
    create: CreateOption = False,
) -> None:
    """Store the API key that a foreign peer has given to this node.

    By default it is read from standard input. The node sends it as `Authorization: Bearer` to that
    endpoint and no other. No command shows it. Works while the node runs, and before the peer is
    added.

    \b
    Examples:
      cacp peers key http://mobile.example:8080 < mobile.key
      cacp peers key aid://example.com/mobile@1.0.0 --env MOBILE_KEY
      cacp peers key http://mobile.example:8080 --remove
    """
    from server.store import peers as store

    api_key = None if remove else _checked_key(_read_key(file, env))
    with transaction(db, create=create) as node:
        endpoint = _endpoint_of(node, peer)
        if remove and store.api_key(node.db, endpoint) is None:
            fail(REFUSED, f"no key is stored for {endpoint}")
        store.put_api_key(node.db, endpoint, api_key)
    done = "is forgotten" if remove else "is sent from now on"
    typer.echo(f"The key for {endpoint} {done}.", err=True)


def _read_key(file: Path | None, env: str | None) -> str:
    if file is not None and env is not None:
        fail(USAGE, "give --file or --env, not both")
    if env is not None:
        value = os.environ.get(env)
        if value is None:
            fail(USAGE, f"--env: the variable {env} is not set")
        return value
    if file is not None:
        try:
            with file.open("rb") as opened:
                return opened.read(KEY_BYTES + 2).decode("latin-1")
        except OSError as error:
            fail(USAGE, f"--file: {file} can't be read: {error.strerror}")
    if sys.stdin.isatty():
        return str(typer.prompt("Key", hide_input=True, err=True))
    return sys.stdin.read(KEY_BYTES + 2)


def _checked_key(text: str) -> str:
    if not API_KEY.fullmatch(text.strip()):
        fail(USAGE, f"a key is 1 to {KEY_BYTES} printable ASCII characters without spaces")
    return text.strip()


def _endpoint_of(node: Offline, peer: str) -> str:
    """The endpoint of a peer, given its URL or its agent id."""
    from server.domain.endpoints import check_endpoint
    from server.domain.errors import Refusal
    from server.store import peers as store

    known = store.find(node.db, peer)
    if known is not None:
        if known.secret is not None:
            fail(REFUSED, f"{peer} is a mesh node: its keys were exchanged when it registered")
        return known.endpoint.rstrip("/")
    if not peer.startswith(("http://", "https://")):
        fail_unknown_peer(peer)
    try:
        check_endpoint(peer, loopback_allowed=True)
    except Refusal as refusal:
        fail(USAGE, refusal.message)
    return peer.rstrip("/")
