"""The replicas that run see each other, and not those that are gone."""

from contextlib import closing

from server.store.postgresql import replicas
from server.store.postgresql.connection import PgConnection
from server.store.postgresql.migrate import prepare
from server.store.postgresql.replicas import AWAY, Announced


def own(name: str, report: str = "{}") -> Announced:
    return Announced(name, f"127.0.0.1:{name}", "2.0", "baseline", "healthy", report)


def test_replicas_see_each_other_and_a_stopped_one_is_gone(url: str) -> None:
    prepare(url)
    with closing(PgConnection(url)) as db:
        replicas.beat(db, own("1"))
        known, now = replicas.beat(db, own("2", '{"calls":{}}'))
        assert [each.replica for each in known] == ["1", "2"]
        assert known[1].report == '{"calls":{}}'
        assert known[1].address == "127.0.0.1:2"
        assert not any(each.is_away(now) for each in known)
        assert known[0].is_away(known[0].seen_at + AWAY + 1)
        began = known[0].started_at
        known, now = replicas.beat(db, own("1")._replace(status="degraded"))
        assert known[0].status == "degraded"
        assert known[0].started_at == began < known[0].seen_at <= now
        replicas.leave(db, "2")
        assert [each.replica for each in replicas.every(db)[0]] == ["1"]


def test_a_dead_replica_is_forgotten_after_a_minute(url: str) -> None:
    prepare(url)
    with closing(PgConnection(url)) as db:
        replicas.beat(db, own("1"))
        db.execute("UPDATE replicas SET seen_at = seen_at - interval '59 seconds'")
        assert [each.replica for each in replicas.beat(db, own("2"))[0]] == ["1", "2"]
        db.execute("UPDATE replicas SET seen_at = seen_at - interval '2 s' WHERE replica = '1'")
        assert [each.replica for each in replicas.beat(db, own("2"))[0]] == ["2"]
