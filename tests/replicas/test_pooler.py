"""Replicas behind PgBouncer in transaction mode, which gives each transaction another connection to
the server: nothing is prepared or set for longer, and streams look instead of listening."""

import os
import pwd
import subprocess
import threading
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from urllib.parse import urlsplit

import pytest

from server.domain.location import DatabaseUrl
from server.store.postgresql.connection import PgConnection
from tests.support import postgresql
from tests.support.node import AGENT, Node, free_port
from tests.support.waiting import eventually

pytestmark = pytest.mark.needs("pgbouncer")

CONFIG = """\
[databases]
* = host={host} port={server_port}
[pgbouncer]
listen_addr = 127.0.0.1
listen_port = {port}
unix_socket_dir =
auth_type = trust
auth_file = {users}
pool_mode = transaction
default_pool_size = 4
max_client_conn = 100
"""


@contextmanager
def pooler(url: DatabaseUrl) -> Iterator[DatabaseUrl]:
    """PgBouncer in front of a server. Gives the URL of the same database through it."""
    parts, port = urlsplit(url), free_port()
    user = parts.username or pwd.getpwuid(os.geteuid()).pw_name
    with postgresql.temporary_folder() as folder:
        users, config = folder / "users.txt", folder / "pgbouncer.ini"
        users.write_text(f'"{user}" ""\n')
        values = {"host": parts.hostname, "server_port": parts.port or 5432}
        config.write_text(CONFIG.format(**values, port=port, users=users))
        account = "nobody" if os.geteuid() == 0 else None
        process = subprocess.Popen(
            ["pgbouncer", "--quiet", str(config)], user=account, stderr=subprocess.DEVNULL
        )
        through = f"postgresql://{user}@127.0.0.1:{port}{parts.path}"
        try:
            eventually(lambda: _takes(through))
            yield DatabaseUrl(through)
        finally:
            process.kill()
            process.wait()


def _takes(url: str) -> bool:
    try:
        postgresql.execute(url, "SELECT 1")
    except Exception:
        return False
    return True


@pytest.fixture
def through() -> Iterator[DatabaseUrl]:
    with postgresql.database() as url, pooler(url) as pooled:
        yield pooled


def test_a_pooler_is_recognised(through: DatabaseUrl) -> None:
    with ExitStack() as stack:
        connection = PgConnection(through)
        stack.callback(connection.close)
        assert connection.pooled
        directly = PgConnection(postgresql.at(postgresql.server(), urlsplit(through).path[1:]))
        stack.callback(directly.close)
        assert not directly.pooled


def test_replicas_work_behind_it(through: DatabaseUrl, tmp_path: Path) -> None:
    """Each takes what the other wrote, and a waiting call of one wakes up by a write of the
    other."""
    with ExitStack() as stack:
        folders = [tmp_path / name for name in ("one", "two")]
        for folder in folders:
            folder.mkdir()
        one, two = (
            stack.enter_context(Node(folder, database_url=str(through))) for folder in folders
        )
        for number in range(6):
            (one, two)[number % 2].call("cacp/project/create", name=f"{number}", objective="o")
        for node in (one, two):
            assert node.call("cacp/project/list")["total"] == 6
            health = node.get("/health").json()
            assert health["status"] == "healthy", health
        letters: list[str] = []

        def wait() -> None:
            page = two.call("acp/inbox", wait=60)
            letters.extend(each["payload"]["summary"] for each in page["messages"])

        waiting = threading.Thread(target=wait)
        waiting.start()
        one.call("acp/send", type="knowledge.push", to=[AGENT], payload={"summary": "wake up"})
        waiting.join()
        assert letters == ["wake up"]
