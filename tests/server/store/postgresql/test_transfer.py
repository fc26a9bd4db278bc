"""A database that is read to be moved, and one that is filled (`tests/server/store/test_move.py`
moves whole nodes)."""

from contextlib import closing

import pytest

from server.domain.errors import Unavailable
from server.domain.location import DatabaseUrl
from server.store.postgresql.connection import PgConnection
from server.store.postgresql.migrate import prepare
from server.store.postgresql.transfer import source, target
from tests.support.postgresql import execute


def test_nobody_writes_meanwhile(url: DatabaseUrl) -> None:
    prepare(url)
    last = prepare(url).last_stamp
    with source(url) as former, closing(PgConnection(url)) as replica:
        replica.execute("SELECT set_config('lock_timeout', '10', false)")
        replica.execute("UPDATE duties SET epoch = 1")
        with pytest.raises(Exception, match="lock timeout"):
            replica.execute("SELECT stamp FROM cluster FOR UPDATE")
        assert former.last_stamp() == last
        assert former.count("meta") > 0
        former.mark_moved("there")
    with pytest.raises(ValueError, match="was moved to there"):
        prepare(url)


def test_what_is_no_node_is_not_moved(url: DatabaseUrl) -> None:
    with pytest.raises(ValueError, match="There is no node in this database"), source(url):
        pass
    with pytest.raises(Unavailable, match="can't be reached"), source("postgresql://127.0.0.1:1/x"):
        pass
    with pytest.raises(ValueError, match="not one of PostgreSQL"), source("postgresql://?x=1"):
        pass


def test_tables_are_filled_after_those_that_they_refer_to(url: DatabaseUrl) -> None:
    with target(url, "there") as new:
        order = new.order(["repo_aliases", "repos", "projects", "meta"])
        assert order.index("projects") < order.index("repos") < order.index("repo_aliases")
        assert "meta" in order


def test_an_unfinished_copy_is_begun_anew(url: DatabaseUrl) -> None:
    for _ in range(2):
        with target(url, "there") as new:
            new.fill("send_rates", ("sender", "kind", "stamps"), [("s\0", "k", "")])
            new.filled({}, 5)
            assert list(new.rows("send_rates", ("sender",))) == [("s\0",)]
        with pytest.raises(ValueError, match="unfinished copy of there"):
            prepare(url)
    with target(url, "there") as new:
        new.filled({}, 5)
        new.finish()
    assert execute(url, "SELECT count(*) FROM send_rates") == [(0,)]
    assert execute(url, "SELECT stamp FROM cluster") == [(5,)]
    prepare(url)
    with pytest.raises(ValueError, match="holds a node already"), target(url, "there"):
        pass
