"""A kept membership is the one in the database, whoever changes it and however."""

import sqlite3
from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from server.domain.lifecycle import Lifecycle
from server.store import lifecycle, projects
from server.store.connection import Connection
from server.store.projects import ProjectHeader, Repo
from server.store.sqlite import memberships
from server.store.sqlite.connection import connect
from server.store.sqlite.memberships import Memberships
from server.store.sqlite.migrate import prepare

pytestmark = pytest.mark.sqlite
PROJECT = "project"
OTHER = "other"


def header(project_id: str = PROJECT, name: str = "n") -> ProjectHeader:
    return ProjectHeader(project_id, name, "o", "active", "all", 1, 1)


def repo(name: str) -> Repo:
    return Repo(f"id-{name}", name, "backend", "python", "[]", None, 1)


class Writer:
    """A writer with what it keeps."""

    def __init__(self, db: sqlite3.Connection) -> None:
        self.db = db
        self.kept = Memberships()
        self.kept.watch(db)

    @contextmanager
    def transaction(self, end: str = "COMMIT") -> Iterator[sqlite3.Connection]:
        self.db.execute("BEGIN IMMEDIATE")
        self.kept.begin(self.db)
        yield self.db
        self.db.execute(end)

    def is_right(self, project_id: str = PROJECT) -> bool:
        """Whether nothing is known of the project, or what is stored; it is known afterwards."""
        stored = projects.membership(self.db, project_id)
        known = self.kept.find(project_id)
        if stored is not None:
            self.kept.keep(project_id, stored)
        return known is None or known == stored


@pytest.fixture
def place(tmp_path: Path) -> Path:
    path = tmp_path / "cacp.db"
    prepare(path)
    return path


@pytest.fixture
def writer(place: Path) -> Iterator[Writer]:
    with closing(connect(place)) as db:
        made = Writer(db)
        with made.transaction():
            projects.insert(db, header(), [repo("a"), repo("b")])
            projects.insert(db, header(OTHER), [repo("c")])
        with made.transaction():
            assert made.is_right()
            assert made.is_right(OTHER)
            assert made.kept.find(PROJECT) is not None
        yield made


CHANGES: dict[str, Callable[[Connection], object]] = {
    "header": lambda db: projects.update_header(db, header(name="other")),
    "repo": lambda db: projects.update_repo(db, PROJECT, repo("a")._replace(name="z")),
    "claim": lambda db: projects.update_claim(db, PROJECT, "id-a", "aid://x/a@1.0.0", None, 5),
    "new repo": lambda db: projects.insert_repo(db, PROJECT, repo("d")),
    "archive": lambda db: lifecycle.put(
        db, PROJECT, Lifecycle("archived", "n", "aid://x/a@1.0.0", 5)
    ),
    "release": lambda db: db.execute("UPDATE repos SET agent_id = NULL WHERE repo_id = 'id-a'"),
    "move": lambda db: db.execute("UPDATE repos SET project_id = 'other' WHERE repo_id = 'id-a'"),
    "removal": lambda db: db.execute("DELETE FROM repos WHERE repo_id = 'id-a'"),
}


@pytest.mark.parametrize("change", CHANGES)
def test_a_change_is_seen(writer: Writer, change: str) -> None:
    with writer.transaction() as db:
        CHANGES[change](db)
        assert writer.kept.find(PROJECT) is None
        assert (writer.kept.find(OTHER) is None) == (change == "move")
        assert writer.is_right()
        assert writer.kept.find(PROJECT) is None, "nothing is kept of what may be rolled back"
    with writer.transaction():
        assert writer.is_right()
        assert writer.kept.find(PROJECT) is not None


@pytest.mark.parametrize("change", CHANGES)
def test_a_change_that_is_rolled_back_leaves_nothing(writer: Writer, change: str) -> None:
    with writer.transaction("ROLLBACK") as db:
        CHANGES[change](db)
        assert writer.is_right()
    with writer.transaction():
        assert writer.is_right()
        assert writer.is_right()


@pytest.mark.parametrize("change", CHANGES)
def test_a_change_by_another_process_is_seen(writer: Writer, place: Path, change: str) -> None:
    with closing(connect(place)) as other:
        CHANGES[change](other)
    with writer.transaction():
        assert writer.kept.find(PROJECT) is None
        assert writer.is_right()


def test_what_it_keeps_is_bounded(writer: Writer, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(memberships, "KEPT_MAX", 2)
    with writer.transaction() as db:
        assert projects.membership(db, PROJECT) is not None
        for number in range(5):
            known = projects.membership(db, PROJECT)
            assert known is not None
            writer.kept.keep(f"p{number}", known)
            assert len(writer.kept._kept) <= 2


STEPS = st.lists(
    st.tuples(
        st.sampled_from(["own", "other"]),
        st.lists(st.sampled_from(["header", "claim", "release", "look"]), max_size=3),
        st.sampled_from(["COMMIT", "ROLLBACK"]),
    ),
    max_size=12,
)


@given(STEPS)
def test_what_is_known_is_always_what_is_stored(
    tmp_path_factory: pytest.TempPathFactory, steps: list[tuple[str, list[str], str]]
) -> None:
    place = tmp_path_factory.mktemp("kept") / "cacp.db"
    prepare(place)
    with closing(connect(place)) as db, closing(connect(place)) as other:
        writer = Writer(db)
        with writer.transaction():
            projects.insert(db, header(), [repo("a")])
        for number, (who, changes, end) in enumerate(steps):
            if who == "other":
                for change in changes:
                    _change(other, change, number)
                continue
            with writer.transaction(end):
                for change in changes:
                    _change(db, change, number)
                    assert writer.is_right()
                assert writer.is_right()


def _change(db: sqlite3.Connection, change: str, number: int) -> None:
    if change == "header":
        projects.update_header(db, header(name=f"n{number}"))
    elif change == "claim":
        projects.update_claim(db, PROJECT, "id-a", f"aid://x/a{number}@1.0.0", None, number + 5)
    elif change == "release":
        db.execute("UPDATE repos SET agent_id = NULL")
