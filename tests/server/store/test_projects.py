"""Projects, their repos and who holds them."""

from server.domain.identifiers import repo_id_for
from server.store import context_packets, projects
from server.store.connection import Connection
from server.store.projects import ProjectHeader, RepoMember
from tests.server.store.conftest import PROJECT, repo


def test_a_header_is_a_register(db: Connection, project: ProjectHeader) -> None:
    assert projects.header(db, PROJECT) == project
    assert projects.header(db, "nothing") is None
    newer = project._replace(name="Login", status="complete", stamp=2_000)
    projects.update_header(db, newer)
    assert projects.header(db, PROJECT) == newer


def test_membership_names_the_repos_and_who_holds_them(
    db: Connection, project: ProjectHeader
) -> None:
    backend = repo_id_for(PROJECT, "backend-api")
    found = projects.membership(db, PROJECT)
    assert found == (
        "User Auth",
        "any",
        (RepoMember(backend, "backend-api", None, "backend"),),
        False,
        "word",
    )
    projects.update_claim(db, PROJECT, backend, "agent", "http://127.0.0.1:1", 3_000)
    found = projects.membership(db, PROJECT)
    assert found is not None
    assert found.members == (RepoMember(backend, "backend-api", "agent", "backend"),)
    assert projects.membership(db, "nothing") is None


def test_a_project_without_repos_has_no_members(db: Connection, project: ProjectHeader) -> None:
    projects.insert(db, project._replace(project_id="p2"), [])
    assert projects.membership(db, "p2") == ("User Auth", "any", (), False, "word")


def test_repos_come_in_the_order_they_were_added(db: Connection, project: ProjectHeader) -> None:
    projects.insert_repo(db, PROJECT, repo("zebra", stamp=1_500))
    projects.insert_repo(db, PROJECT, repo("ant", stamp=2_000))
    assert [one.name for one in projects.repos(db, PROJECT)] == ["backend-api", "zebra", "ant"]
    assert projects.repos(db, PROJECT)[1] == repo("zebra", stamp=1_500)


def test_projects_come_newest_first_and_of_one_time_by_their_ids(
    db: Connection, project: ProjectHeader
) -> None:
    for number, name in [(3_000, "b"), (3_000, "a"), (2_000, "c")]:
        projects.insert(db, project._replace(project_id=name, created_at=number), [])
    found = projects.headers_before(db, 2**63 - 1, "", 10)
    assert [one.project_id for one in found] == ["b", "a", "c", PROJECT]
    before = projects.headers_before(db, 3_000, "a", 10)
    assert [one.project_id for one in before] == ["c", PROJECT]
    assert len(projects.headers_before(db, 3_000, "b", 2)) == 2
    assert projects.count(db) == 4


def test_a_whole_project_was_updated_when_anything_in_it_was(
    db: Connection, project: ProjectHeader
) -> None:
    assert projects.whole(db, project)["updated_at"] == "1970-01-01T00:00:00.001000+00:00"
    projects.update_claim(db, PROJECT, repo_id_for(PROJECT, "backend-api"), "agent", None, 5_000)
    whole = projects.whole(db, project)
    assert whole["updated_at"] == "1970-01-01T00:00:00.005000+00:00"
    assert projects.summary(db, project)["updatedAt"] == whole["updated_at"]
    assert (whole["contracts"], whole["context_history"]) == ([], [])
    assert not context_packets.documents(db, PROJECT)


def test_ids_from_elsewhere_are_kept_as_aliases(db: Connection, project: ProjectHeader) -> None:
    """A repo is known by its id and by those of peers."""
    backend = repo_id_for(PROJECT, "backend-api")
    assert projects.resolve_alias(db, PROJECT, "theirs") is None
    projects.add_alias(db, PROJECT, "theirs", backend)
    projects.add_alias(db, PROJECT, "theirs", backend)
    assert projects.resolve_alias(db, PROJECT, "theirs") == backend
    assert projects.resolve_alias(db, "other", "theirs") is None


def test_a_repo_has_so_many_aliases_and_no_more(db: Connection, project: ProjectHeader) -> None:
    """A peer that gives it another id with each call fills nothing."""
    backend = repo_id_for(PROJECT, "backend-api")
    taken = [projects.add_alias(db, PROJECT, f"id {n}", backend) for n in range(150)]
    assert taken == [True] * projects.ALIASES_MAX + [False] * (150 - projects.ALIASES_MAX)
    assert projects.add_alias(db, PROJECT, "id 0", backend), "what is known stays"


def test_a_claim_that_came_later_is_kept(db: Connection, project: ProjectHeader) -> None:
    """Design §5: of two claims made apart the other becomes a conflict record."""
    backend = repo_id_for(PROJECT, "backend-api")
    for _ in range(2):
        projects.keep_lost_claim(db, PROJECT, backend, "late", None, 9_000)
    assert db.execute("SELECT agent_id, claimed_at FROM claim_conflicts").fetchall() == [
        ("late", 9_000)
    ]


def test_a_claim_that_is_renewed_is_later_though_the_clock_went_back(
    db: Connection, project: ProjectHeader
) -> None:
    backend = repo_id_for(PROJECT, "backend-api")
    for at in (9_000, 5_000):
        projects.update_claim(db, PROJECT, backend, "a", f"http://{at}", at)
    rows = db.execute("SELECT agent_endpoint, claimed_at, renewed_at FROM repos").fetchall()
    assert rows == [("http://5000", 9_000, 9_001)]


def test_of_some_ids_those_that_are_known(db: Connection, project: ProjectHeader) -> None:
    assert projects.known_of(db, [project.project_id, "other"]) == {project.project_id}
