"""`cacp peers deferred` on a real file."""

import json
from contextlib import closing
from pathlib import Path

from server.store import deferred
from tests.cli.run import cacp
from tests.support.located import connect

BETA = "aid://h/beta@1"
GAMMA = "aid://h/gamma@1"


def deferring(db: str) -> None:
    cacp("keys", "create", "a", "--repo", "r", "--create", db=db)
    with closing(connect(db)) as connection:
        for number, source in enumerate((BETA, GAMMA, GAMMA)):
            message = deferred.DeferredMessage(source, "cacp/contract/sync", "{}", str(number))
            deferred.put(connection, message, "predecessor", "c1", due=9, now=number)


def test_it_is_listed_by_peer_and_dropped(tmp_path: Path) -> None:
    db = str(tmp_path / "cacp.db")
    deferring(db)
    shares = json.loads(cacp("peers", "deferred", "--json", db=db).stdout)
    assert [(one["source"], one["messages"]) for one in shares] == [(GAMMA, 2), (BETA, 1)]
    assert GAMMA in cacp("peers", "deferred", db=db).stdout
    listed = cacp("peers", "deferred", GAMMA, db=db).stdout
    assert listed.count("an earlier version  c1") == 2
    [one] = json.loads(cacp("peers", "deferred", BETA, "--json", db=db).stdout)
    assert (one["reason"], one["about"]) == ("predecessor", "c1")
    assert cacp("peers", "deferred", GAMMA, "--drop", db=db).stderr == "Dropped: 2.\n"
    assert json.loads(cacp("peers", "deferred", GAMMA, "--json", db=db).stdout) == []


def test_what_is_not_there_is_not_dropped(tmp_path: Path) -> None:
    db = str(tmp_path / "cacp.db")
    deferring(db)
    refused = cacp("peers", "deferred", "aid://h/nobody@1", "--drop", db=db)
    assert (refused.exit_code, "no message of" in refused.stderr) == (1, True)
    assert cacp("peers", "deferred", "--drop", db=db).exit_code == 2
