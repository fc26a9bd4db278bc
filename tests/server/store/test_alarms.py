"""What is wrong with content is on record until it is mended."""

from server.store import alarms
from server.store.alarms import Alarm
from server.store.connection import Connection


def test_an_alarm_is_news_once_and_ends(db: Connection) -> None:
    first, second = (Alarm("content_corrupt", about, "what to do", 5) for about in ("b", "a"))
    assert alarms.begin(db, first)
    assert not alarms.begin(db, first._replace(raised_at=9)), "it is no news"
    assert alarms.begin(db, second)
    assert alarms.every(db) == [second, first]
    assert alarms.counts(db) == {"content_corrupt": 2}
    assert alarms.end(db, "content_corrupt", "b")
    assert not alarms.end(db, "content_corrupt", "b")
    assert alarms.every(db) == [second]
