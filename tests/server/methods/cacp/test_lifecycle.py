"""cacp/project/archive, unarchive and delete: who may, what it refuses, and what it removes."""

import base64
from typing import Any
from uuid import UUID

import orjson
import pytest
from uuid_utils import uuid7

from server.auth.authenticator import Caller
from server.domain.errors import Conflict, Forbidden, NotFound, Refusal
from server.domain.identifiers import founded_by, is_founder, repo_id_for
from server.methods import METHODS
from server.store import digests, projects
from tests.support.in_process_node import ANA, BEN, DORA, InProcessNode
from tests.support.node import AGENT, check_result


def call(desk: InProcessNode, method: str, agent: str = AGENT, **params: Any) -> Any:
    """A call by an agent of repo `r`, or by the operator."""
    found = METHODS[method]
    checked = found.params.model_validate(params, by_alias=True)
    caller = Caller(agent, "r", "verified", "key", operator=agent == AGENT)
    result = orjson.loads(orjson.dumps(desk.answered(found, caller, checked)))
    check_result(method, result)
    return result


def refusal(desk: InProcessNode, kind: type[Refusal], method: str, *by: str, **params: Any) -> Any:
    with pytest.raises(kind) as error:
        call(desk, method, *by, **params)
    return error.value


@pytest.fixture
def project(desk: InProcessNode) -> str:
    """Of Ana, who holds repo `r`, with something of each kind."""
    repo = {"name": "r", "role": "service", "language": "go"}
    made = call(desk, "cacp/project/create", ANA, name="Shop", objective="o", repos=[repo])
    at = {"projectId": made["projectId"]}
    given = {"type": "api_endpoint", "name": "Get", "content": {}}
    contract = call(desk, "cacp/contract/propose", ANA, **at, **given)["contractId"]
    packet = {"type": "decision", "content": {}, "relatedContracts": [contract]}
    call(desk, "cacp/context/share", ANA, **at, **packet)
    call(desk, "cacp/file/request", ANA, **at, description="d")
    file = {"name": "n", "content": base64.b64encode(b"twelve bytes").decode()}
    call(desk, "cacp/file/share", ANA, **at, file=file)
    return str(at["projectId"])


def listed(desk: InProcessNode, **params: Any) -> tuple[list[str], int]:
    page = call(desk, "cacp/project/list", ANA, summary=True, **params)
    return [entry["projectId"] for entry in page["projects"]], page["total"]


def test_an_archived_project_is_out_of_lists_and_can_only_be_read(
    desk: InProcessNode, project: str
) -> None:
    at = {"projectId": project}
    archived = call(desk, "cacp/project/archive", ANA, **at)
    assert (archived["name"], archived["status"], archived["by"]) == ("Shop", "archived", ANA)
    assert listed(desk) == ([], 0)
    assert listed(desk, includeArchived=True) == ([project], 1)
    whole = call(desk, "cacp/project/get", ANA, **at)
    assert (whole["archived_by"], len(whole["contracts"])) == (ANA, 1)
    outline = call(desk, "cacp/project/get", ANA, **at, summary=True)
    assert outline["archivedAt"] == archived["at"]
    wrong = refusal(desk, Conflict, "cacp/context/share", ANA, **at, type="decision", content={})
    assert wrong.data["reason"] == "project_archived"
    assert f"cacp project unarchive {project}" in wrong.message
    assert f"archived by {ANA} at {archived['at']}" in wrong.message
    for method in ("join", "addRepo", "updateStatus"):
        repo = {"name": "q", "role": "s", "language": "go"}
        more: dict[str, Any] = {"join": {"repoName": "r"}, "addRepo": {"repo": repo}}
        params = at | more.get(method, {"status": "complete"})
        refusal(desk, Conflict, f"cacp/project/{method}", ANA, **params)
    assert call(desk, "cacp/project/archive", ANA, **at) == archived, "once is enough"
    again = call(desk, "cacp/project/unarchive", ANA, **at)
    assert (again["status"], again["at"] > archived["at"]) == ("active", True)
    assert listed(desk) == ([project], 1)
    call(desk, "cacp/context/share", ANA, **at, type="decision", content={})


def test_what_was_never_archived_is_active(desk: InProcessNode, project: str) -> None:
    assert call(desk, "cacp/project/unarchive", ANA, projectId=project)["status"] == "active"
    assert desk.rows("SELECT * FROM project_lifecycle") == []


def test_a_deleted_project_leaves_nothing_but_who_deleted_it(
    desk: InProcessNode, project: str
) -> None:
    before = len(desk.rows("SELECT * FROM facts"))
    deleted = call(desk, "cacp/project/delete", ANA, projectId=project)
    counts = {"contracts": 1, "packets": 1, "files": 1, "bytes": 12}
    assert (deleted["status"], deleted["removed"], before) == ("deleted", counts, 1)
    tables = "projects repos claim_conflicts contracts facts packets packet_contracts files"
    for table in f"{tables} file_contents file_requests repo_aliases".split():
        assert desk.rows(f"SELECT * FROM {table}") == [], table
    assert listed(desk, includeArchived=True) == ([], 0)
    wrong = refusal(desk, NotFound, "cacp/project/get", ANA, projectId=project)
    assert wrong.data == {
        "reason": "project_deleted",
        "kind": "deleted_project",
        "projectId": project,
        "name": "Shop",
        "deletedBy": ANA,
        "deletedAt": deleted["at"],
    }
    assert wrong.message == f"Project Shop ({project}) was deleted by {ANA} at {deleted['at']}"
    for method, more in (
        ("contract/list", {}),
        ("contract/get", {"contractId": "c"}),
        ("contract/timeline", {"contractId": "c"}),
        ("project/join", {"repoName": "r"}),
        ("project/archive", {}),
        ("file/list", {}),
    ):
        params = {"projectId": project} | more
        data = refusal(desk, NotFound, f"cacp/{method}", ANA, **params).data
        assert data["reason"] == "project_deleted", method
    del deleted["removed"]
    assert call(desk, "cacp/project/delete", ANA, projectId=project) == deleted, "nothing more"


def test_nothing_waits_in_an_archived_or_deleted_project(desk: InProcessNode, project: str) -> None:
    """Nothing could close it."""
    asked = {"question": "Why?", "options": ["a"]}
    repo = {"name": "q", "role": "s", "language": "go"}
    call(desk, "cacp/project/addRepo", ANA, projectId=project, repo=repo)
    desk.run(
        lambda ctx: projects.update_claim(
            ctx.db, project, repo_id_for(project, "q"), DORA, None, ctx.stamp
        )
    )
    call(desk, "cacp/context/askQuestion", ANA, projectId=project, **asked)

    def waiting() -> int:
        """What waits for Dora, who holds the other repo."""
        found = METHODS["cacp/attention/list"]
        caller = Caller(DORA, "q", "verified", "key")
        params = found.params.model_validate({"kinds": ["answer"]})
        total: int = desk.run(lambda ctx: found.run(ctx, params), caller)["total"]
        return total

    assert waiting() == 1
    call(desk, "cacp/project/archive", ANA, projectId=project)
    assert waiting() == 0
    call(desk, "cacp/project/unarchive", ANA, projectId=project)
    assert waiting() == 1
    call(desk, "cacp/project/delete", ANA, projectId=project)
    assert waiting() == 0
    assert desk.rows("SELECT * FROM attention_openings") == []


def test_digests_of_what_is_deleted_are_gone(desk: InProcessNode, project: str) -> None:
    """Counted before or not, so that nodes agree."""
    other = call(desk, "cacp/project/create", ANA, name="Other", objective="o")["projectId"]
    desk.run(lambda ctx: digests.catch_up(ctx.db))
    call(desk, "cacp/project/delete", ANA, projectId=project)
    desk.run(lambda ctx: digests.catch_up(ctx.db))
    left = desk.rows("SELECT DISTINCT entity, project_id FROM digests ORDER BY project_id")
    assert left == [("project", id) for id in sorted((project, other))]
    expected = desk.rows("SELECT digest FROM digests")
    root = 0
    for (leaf,) in expected:
        root ^= int(leaf, 16)
    assert desk.run(lambda ctx: digests.held(ctx.db).digest) == f"{root:032x}"


def test_only_its_creator_and_the_operator_may(desk: InProcessNode, project: str) -> None:
    for method in ("archive", "unarchive", "delete"):
        wrong = refusal(desk, Forbidden, f"cacp/project/{method}", BEN, projectId=project)
        assert (wrong.data["reason"], wrong.data["createdBy"]) == ("not_project_owner", ANA)
        assert f"can't {method} project Shop: only" in wrong.message
    assert call(desk, "cacp/project/archive", projectId=project)["by"] == AGENT
    assert call(desk, "cacp/project/delete", projectId=project)["by"] == AGENT
    unknown = refusal(desk, NotFound, "cacp/project/delete", projectId="nothing")
    assert unknown.data["kind"] == "project"


def test_another_nodes_project_is_deleted_there_only(desk: InProcessNode, project: str) -> None:
    """Other nodes would not believe it. It can be archived where an agent takes part."""
    theirs = founded_by(BEN, UUID(bytes=uuid7().bytes))
    assert is_founder(theirs, BEN)

    def tell(ctx: Any) -> None:
        header = projects.ProjectHeader(theirs, "Theirs", "o", "planning", "any", 1, 1)
        projects.insert(ctx.db, header, [])

    desk.run(tell)
    wrong = refusal(desk, Forbidden, "cacp/project/delete", projectId=theirs)
    assert (wrong.data["reason"], wrong.data["node"]) == ("not_founder", BEN)
    assert "cacp/project/archive" in wrong.message
    wrong = refusal(desk, Forbidden, "cacp/project/archive", projectId=theirs)
    assert wrong.data["reason"] == "no_standing"
