"""Claims on disk (design §5)."""

import sqlite3

from server.domain.identifiers import repo_id_for
from server.domain.registers import RepoClaim
from server.store import claims, projects
from server.store.projects import ProjectHeader
from tests.server.store.conftest import PROJECT

REPO = repo_id_for(PROJECT, "backend-api")
FIRST = RepoClaim("aid://x/a@1", "http://a", 1, 1)
SECOND = RepoClaim("aid://x/b@1", None, 2, 2, '{"node":"n"}')


def test_the_first_holds_and_the_others_are_kept(
    db: sqlite3.Connection, project: ProjectHeader
) -> None:
    assert claims.holder(db, PROJECT, REPO) is None
    claims.settle(db, PROJECT, REPO, [SECOND])
    claims.settle(db, PROJECT, REPO, [FIRST, SECOND])
    assert claims.holder(db, PROJECT, REPO) == FIRST
    assert claims.every(db, PROJECT, REPO) == [FIRST, SECOND]
    assert claims.claimed_by(db, PROJECT, REPO, "aid://x/b@2"), "in any of its versions"
    assert not claims.claimed_by(db, PROJECT, REPO, "aid://x/c@1")


def test_joining_again_keeps_when_it_was_claimed(
    db: sqlite3.Connection, project: ProjectHeader
) -> None:
    projects.update_claim(db, PROJECT, REPO, "aid://x/a@1", None, 5)
    projects.update_claim(db, PROJECT, REPO, "aid://x/a@1", "http://new", 9)
    assert claims.holder(db, PROJECT, REPO) == RepoClaim("aid://x/a@1", "http://new", 5, 9)
