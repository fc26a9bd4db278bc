"""Replicas of one node, as processes, on one PostgreSQL."""

import signal
import time
from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Any

import psycopg

from schemas.base import iso
from server.domain.location import DatabaseUrl
from server.store import keys
from server.store.opening import connect
from tests.replicas.account import ChangeRow
from tests.replicas.workload import AGENTS, REPOS, World, agent_id
from tests.support.forkserver import PATCH
from tests.support.skewed_clock import SkewedNode


class Replica(SkewedNode):
    """A node among others on one database, on a machine whose clock tests set."""

    def __init__(self, folder: Path, url: DatabaseUrl, **settings: object) -> None:
        folder.mkdir(parents=True)
        patch = settings.pop("patch", None)
        self._patch = {} if patch is None else {PATCH: str(patch)}
        super().__init__(folder, ahead=0, database_url=str(url), **settings)
        self.location = url
        self.paused = False

    @property
    def env(self) -> dict[str, str]:
        return super().env | self._patch

    def pause(self) -> None:
        """SIGSTOP: as a process whose machine gives it no time."""
        assert self.process is not None
        self.process.send_signal(signal.SIGSTOP)
        self.paused = True

    def wake(self) -> None:
        if self.process is not None:
            self.process.send_signal(signal.SIGCONT)
        self.paused = False

    def end(self) -> None:
        """SIGKILL, which ends a paused one too."""
        if self.process is not None:
            self.kill()
        self.http.close()


class Cluster:
    """Running replicas, with a project or more that agents work on."""

    def __init__(self, url: DatabaseUrl, replicas: Sequence[Replica]) -> None:
        self.url = url
        self.replicas = replicas

    @property
    def urls(self) -> list[str]:
        return [replica.url for replica in self.replicas]

    def world(self, projects: int = 1) -> World:
        """Make the agents' keys, and projects that the repos' agents have joined."""
        made = {name: self._key(name) for name in AGENTS}
        world = World(made, [])
        first = self.replicas[0]
        repos = [{"name": repo, "role": "shared", "language": "python"} for repo in REPOS]
        for number in range(projects):
            project = first.call(
                "cacp/project/create", name=f"p{number}", objective="o", repos=repos
            )["projectId"]
            for repo in REPOS:
                first.call("cacp/project/join", key=made[repo], projectId=project, repoName=repo)
            world.projects.append(project)
        return world

    def _key(self, name: str) -> str:
        key = keys.new_key()
        db = connect(self.url)
        try:
            now = time.time_ns() // 1000
            repo = name if name in REPOS else "mail"
            keys.add(db, key, agent_id=agent_id(name), repo=repo, trust="verified", now=now)
        finally:
            db.close()
        return key

    def changes(self) -> list[ChangeRow]:
        """The final table, past all replicas."""
        rows = self.query(
            "SELECT seq, at, actor, action, entity, entity_id, outcome FROM changes ORDER BY seq"
        )
        return [ChangeRow(row[0], iso(row[1]), *row[2:]) for row in rows]

    def query(self, sql: str) -> list[tuple[Any, ...]]:
        with psycopg.connect(self.url, autocommit=True) as db:
            return db.execute(sql.encode()).fetchall()

    def cut(self, count: int) -> int:
        """End some connections of the replicas to their database. Returns how many there were."""
        return len(
            self.query(
                "SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE datname ="
                " current_database() AND application_name = 'cacp' AND pid <> pg_backend_pid()"
                f" ORDER BY random() LIMIT {count}"
            )
        )


@contextmanager
def running(
    folder: Path, url: DatabaseUrl, count: int = 3, **settings: object
) -> Iterator[Cluster]:
    """Replicas on a fresh database, each with its own port and folder."""
    given = {"unlimited_senders": True, "at_once": True, **settings}
    replicas = [Replica(folder / f"r{number}", url, **given) for number in range(count)]
    with ExitStack() as stack, ThreadPoolExecutor(count) as together:
        for replica in replicas:
            stack.callback(replica.end)
        list(together.map(Replica.start, replicas))
        yield Cluster(url, replicas)
