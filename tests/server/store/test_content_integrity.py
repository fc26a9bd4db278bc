"""What SQLite's own check can't see."""

import hashlib

from server.store import content_integrity
from server.store.connection import Connection


def test_a_content_that_is_not_what_its_sha256_says(db: Connection) -> None:
    for number in range(3):
        data = bytes([number]) * 100
        row = ("p", f"f{number}", hashlib.sha256(data).hexdigest(), 100, None, data)
        db.execute("INSERT INTO file_contents VALUES (?, ?, ?, ?, ?, ?)", row)
    assert content_integrity.damaged_contents(db) == []
    db.execute("UPDATE file_contents SET content = ? WHERE file_id = 'f1'", (bytes(100),))
    assert [one.file_id for one in content_integrity.damaged_contents(db)] == ["f1"]
