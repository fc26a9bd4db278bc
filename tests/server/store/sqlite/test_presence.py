"""Are a database's files still at their paths?"""

from contextlib import closing
from pathlib import Path

import pytest

from server.store.sqlite.connection import connect
from server.store.sqlite.presence import LostFile, Presence


@pytest.mark.parametrize(
    ("suffix", "what"), [("", "database"), ("-wal", "log"), ("-shm", "index of the log")]
)
def test_a_file_that_is_moved_or_replaced_is_named(path: Path, suffix: str, what: str) -> None:
    with closing(connect(path)) as db:
        db.execute("INSERT INTO meta (name, value) VALUES ('a', 'b')")
        presence = Presence(path)
        assert presence.lost() is None
        one, away = path.with_name(path.name + suffix), path.with_name("away")
        one.rename(away)
        assert presence.lost() == LostFile(what, one)
        one.write_bytes(away.read_bytes())
        assert presence.lost() == LostFile(what, one), "another file in its place"
        away.replace(one)
        assert presence.lost() is None
