"""The operator's key as commands use it, from the file beside the database (design §7).

It goes to the node that runs on that database and nowhere else: another program that listens where
the command calls doesn't get it.
"""

import os
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from cli.node_url import database, running_url
from cli.terminal import REFUSED, USAGE, fail, notice
from schemas.plain import one_line

if TYPE_CHECKING:
    from server.store.connection import Connection

OperatorOption = Annotated[
    bool,
    typer.Option(
        "--operator",
        help="Call as the operator of the node that runs on CACP_DB or data/cacp.db, with the key "
        "of the file beside it, whatever --key and CACP_KEY are.",
    ),
]
AuthorityOption = Annotated[
    str | None,
    typer.Option(
        "--key",
        envvar="CACP_KEY",
        metavar="KEY",
        help="For --human: the operator's key, or a human's. Without it, the operator key file's.",
    ),
]


def operators_key(url: str) -> str:
    """The key of the operator of the node at `url`. Ends the command when this machine's file is
    not that node's, or unusable."""
    from server.auth.key_file import UnusableKeyFile
    from server.auth.operator_key import read

    db = database(os.environ)
    running = running_url(db)
    if running is None:
        fail(
            REFUSED,
            f"no node of this user runs on {db}, whose operator key file would be used: name its "
            "database with CACP_DB, or give the operator's key with --key instead of --operator",
        )
    if url.rstrip("/") != running:
        fail(
            USAGE,
            f"the node that runs on {db} is at {running}, not at {url}, and only it gets the key "
            "of its operator key file: leave out --url and CACP_URL, or give the key with --key",
        )
    try:
        return read(db)
    except UnusableKeyFile as problem:
        fail(
            REFUSED,
            f"{problem}. `cacp keys operator` makes a lost file again, with --rotate a new key",
        )


def local_operator_key(url: str) -> str | None:
    """The operator's key when the node at `url` is the one of this folder's database; else None."""
    from server.auth.key_file import UnusableKeyFile
    from server.auth.operator_key import path_beside, read

    db = database(os.environ)
    if url.rstrip("/") != running_url(db) or not path_beside(db).exists():
        return None
    try:
        return read(db)
    except UnusableKeyFile as problem:
        notice(str(problem))
        return None


def check_may_make_humans(db: "Connection", path: Path, key: str | None) -> None:
    """End the command unless `key`, or without one the key of the operator key file of the database
    at `path`, is the operator's or a human's for the whole node."""
    from server.auth.key_file import UnusableKeyFile
    from server.auth.operator_key import ensure, path_beside, read
    from server.store import keys

    given = key
    if given is None:
        try:
            if not keys.has_operator(db) and ensure(db, path) == "made":
                notice(f"made the operator key file {path_beside(path)}")
            given = read(path)
        except UnusableKeyFile as problem:
            fail(
                REFUSED,
                f"{problem}. `cacp keys operator` makes a lost file again, with --rotate a new key",
            )
    hashed = keys.hash_of(given.encode())
    if keys.is_operators(db, hashed):
        return
    holder = keys.holder(db, hashed)
    if holder is not None and holder.human and not holder.revoked_at and holder.projects is None:
        return
    whose = "unknown to this node" if holder is None else f"that of {one_line(holder.agent_id)}"
    source = "--key or CACP_KEY" if key else f"{path_beside(path)}"
    remedy = (
        "leave it out to use the operator key file"
        if key
        else "`cacp keys operator` makes the file's key valid"
    )
    fail(
        REFUSED,
        "a human's key is made by the operator or by another human (for the whole node), and the "
        f"key of {source} is {whose}: {remedy}",
    )
