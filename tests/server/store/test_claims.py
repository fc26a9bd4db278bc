"""Claims on disk (design §5)."""

from itertools import permutations

from server.domain.identifiers import repo_id_for
from server.domain.registers import ClaimRelease, RepoClaim
from server.store import claims, projects
from server.store.connection import Connection
from server.store.projects import ProjectHeader
from tests.server.store.conftest import PROJECT

REPO = repo_id_for(PROJECT, "backend-api")
FIRST = RepoClaim("aid://x/a@1", "http://a", 1, 1)
SECOND = RepoClaim("aid://x/b@1", None, 2, 2, '{"node":"n"}')


def test_the_first_holds_and_the_others_are_kept(db: Connection, project: ProjectHeader) -> None:
    assert claims.holder(db, PROJECT, REPO) is None
    claims.settle(db, PROJECT, REPO, [SECOND])
    claims.settle(db, PROJECT, REPO, [FIRST, SECOND])
    assert claims.holder(db, PROJECT, REPO) == FIRST
    assert claims.every(db, PROJECT, REPO) == [FIRST, SECOND]
    assert claims.claimed_by(db, PROJECT, REPO, "aid://x/b@2"), "in any of its versions"
    assert not claims.claimed_by(db, PROJECT, REPO, "aid://x/c@1")


def test_joining_again_keeps_when_it_was_claimed(db: Connection, project: ProjectHeader) -> None:
    projects.update_claim(db, PROJECT, REPO, "aid://x/a@1", None, 5)
    projects.update_claim(db, PROJECT, REPO, "aid://x/a@1", "http://new", 9)
    assert claims.holder(db, PROJECT, REPO) == RepoClaim("aid://x/a@1", "http://new", 5, 9)


def test_whoever_may_end_a_claim_is_the_same_in_any_order(
    db: Connection, project: ProjectHeader
) -> None:
    """An agent's claim is renewed through another node, while the first node releases it."""
    first = RepoClaim("aid://x/a@1", None, 1, 1, '{"node":"aid://x/n@1"}')
    renewed = RepoClaim("aid://x/a@1", None, 2, 3, '{"node":"aid://x/m@1"}')
    release = ClaimRelease("aid://x/a", "op", 5, '{"node":"aid://x/n@1"}')

    def claim(one: RepoClaim) -> None:
        claims.settle(db, PROJECT, REPO, [*claims.every(db, PROJECT, REPO), one])

    def outcome(steps: tuple[object, ...]) -> object:
        db.execute("BEGIN IMMEDIATE")
        for step in steps:
            if isinstance(step, RepoClaim):
                claim(step)
            else:
                claims.state_release(db, PROJECT, REPO, "aid://x/n@1", release)
        ended = claims.holder(db, PROJECT, REPO), claims.releases(db, PROJECT, REPO)
        db.execute("ROLLBACK")
        return ended

    outcomes = [outcome(steps) for steps in permutations((first, renewed, release))]
    assert outcomes == [(renewed, {})] * 6
    claim(first)
    claims.state_release(db, PROJECT, REPO, "aid://x/n@1", release)
    assert claims.holder(db, PROJECT, REPO) is None
