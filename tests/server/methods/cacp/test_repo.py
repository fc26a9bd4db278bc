"""cacp/repo/release and reassign: a repo whose agent is gone gets another."""

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from uuid import uuid4

import orjson
import pytest

from schemas.mesh import Signature
from server.auth.authenticator import Caller
from server.domain.errors import Conflict, Forbidden, NotFound, Refusal
from server.domain.identifiers import repo_id_for
from server.domain.registers import RepoClaim
from server.methods import METHODS
from server.store import claims, keys, projects
from tests.support.fresh_store import content_of
from tests.support.in_process_node import ANA, BEN, CLEO, DORA, InProcessNode
from tests.support.node import AGENT, check_result


@dataclass(frozen=True)
class Desk:
    node: InProcessNode
    project: str

    def call(self, method: str, agent: str = AGENT, repo: str = "api", **params: Any) -> Any:
        """A call about the project by an agent of a repo, or by the operator."""
        found = METHODS[method]
        given = {"projectId": self.project} | params
        checked = found.params.model_validate(given, by_alias=True)
        caller = Caller(agent, repo, "verified", "key", operator=agent == AGENT)
        result = self.node.run(lambda ctx: found.run(ctx, checked), caller, method)
        answer = orjson.loads(orjson.dumps(result))
        check_result(method, answer)
        return answer

    def refused(self, kind: type[Refusal], method: str, *by: str, **params: Any) -> Refusal:
        before = content_of(self.node.db)
        with pytest.raises(kind) as error:
            self.call(method, *by, **params)
        assert content_of(self.node.db) == before
        return error.value

    def holder(self, name: str = "api") -> str | None:
        repos = self.call("cacp/project/get")["repos"]
        return next(repo.get("agent_id") for repo in repos if repo["name"] == name)  # type: ignore[no-any-return]

    def claimed_elsewhere(self, agent: str, project: str, at: int) -> None:
        """A claim that another node signed, of its agent on `api`."""
        kept = Signature(node="aid://example.com/other", value="x").model_dump_json()
        repo_id = repo_id_for(project, "api")

        def tell(ctx: Any) -> None:
            known = claims.every(ctx.db, project, repo_id)
            claims.settle(ctx.db, project, repo_id, [*known, RepoClaim(agent, None, at, at, kept)])

        self.node.run(tell)


@pytest.fixture
def desk(tmp_path: Path) -> Iterator[Desk]:
    """Ana made a project and holds `api`; Ben and Cleo have keys for it too."""
    with InProcessNode(tmp_path) as node:
        for agent in (ANA, BEN, CLEO):
            keys.add(node.db, keys.new_key(), agent_id=agent, repo="api", now=1)
        repos = [{"name": name, "role": "s", "language": "go"} for name in ("api", "web")]
        desk = Desk(node, "")
        params = {"name": "Shop", "objective": "o", "repos": repos}
        found = METHODS["cacp/project/create"]
        checked = found.params.model_validate(params, by_alias=True)
        caller = Caller(ANA, "api", "verified", "key")
        made = node.run(lambda ctx: found.run(ctx, checked), caller, "cacp/project/create")
        yield Desk(desk.node, made["projectId"])


def test_who_was_released_writes_no_more_until_it_joins_again(desk: Desk) -> None:
    released = desk.call("cacp/repo/release", repoName="api")
    assert released == {
        "repoId": repo_id_for(desk.project, "api"),
        "repoName": "api",
        "status": "released",
        "formerAgentId": ANA,
    }
    assert desk.holder() is None
    share: dict[str, Any] = {"type": "decision", "content": {}}
    wrong = desk.refused(Forbidden, "cacp/context/share", ANA, **share)
    assert wrong.data["reason"] == "repo_released"
    assert f"Repo api was released from you by {AGENT} at " in wrong.message
    assert "cacp/project/join" in wrong.message
    assert desk.refused(Conflict, "cacp/repo/release", repoName="api").data["reason"] == "not_held"
    desk.call("cacp/project/join", ANA, repoName="api")
    assert desk.holder() == ANA
    assert desk.node.rows("SELECT * FROM claim_conflicts") == []
    desk.call("cacp/context/share", ANA, **share)


def test_an_agent_may_leave_and_another_one_takes_its_place(desk: Desk) -> None:
    desk.call("cacp/repo/release", ANA, repoName="api")
    desk.call("cacp/project/join", BEN, repoName="api")
    assert desk.holder() == BEN
    wrong = desk.refused(Forbidden, "cacp/context/share", ANA, type="decision", content={})
    assert f"{BEN} holds it now" in wrong.message
    taken = desk.refused(Conflict, "cacp/project/join", ANA, repoName="api")
    assert taken.data["reason"] == "repo_taken"


def test_a_repo_is_given_to_another_agent_at_once(desk: Desk) -> None:
    given = desk.call("cacp/repo/reassign", repoName="api", agentId=BEN)
    assert (given["status"], given["agentId"], given["formerAgentId"]) == ("reassigned", BEN, ANA)
    assert desk.holder() == BEN
    desk.call("cacp/context/share", BEN, type="decision", content={})
    again = desk.call("cacp/repo/reassign", repoName="api", agentId=BEN)
    assert "formerAgentId" not in again, "it holds it already"
    back = desk.call("cacp/repo/reassign", repoName="api", agentId=ANA)
    assert (back["formerAgentId"], desk.holder()) == (BEN, ANA)
    free = desk.call("cacp/repo/reassign", repoName="web", agentId=AGENT)
    assert ("formerAgentId" in free, desk.holder("web")) == (False, AGENT)


def test_who_gets_it_needs_a_key_for_it_here(desk: Desk) -> None:
    wrong = desk.refused(NotFound, "cacp/repo/reassign", repoName="api", agentId=DORA)
    assert wrong.data["repos"] == ["r"]
    assert f"`cacp keys create {DORA} --repo api`" in wrong.message
    wrong = desk.refused(NotFound, "cacp/repo/reassign", repoName="nothing", agentId=BEN)
    assert wrong.data["repos"] == ["api", "web"]


def test_only_its_agent_the_projects_creator_and_the_operator_may(desk: Desk) -> None:
    for method, more in (("release", {}), ("reassign", {"agentId": BEN})):
        params = {"repoName": "api"} | more
        wrong = desk.refused(Forbidden, f"cacp/repo/{method}", BEN, **params)
        assert wrong.data["reason"] == "not_project_owner"
    desk.call("cacp/repo/reassign", repoName="api", agentId=BEN)
    assert desk.call("cacp/repo/release", ANA, repoName="api")["formerAgentId"] == BEN


def test_a_claim_of_another_node_ends_there_or_where_the_project_was_made(desk: Desk) -> None:
    """Other nodes would not believe it of any third one."""
    desk.call("cacp/repo/release", ANA, repoName="api")
    desk.claimed_elsewhere(DORA, desk.project, desk.node.now + 1)
    assert desk.holder() == DORA
    desk.call("cacp/repo/release", repoName="api")
    assert desk.holder() is None
    theirs = str(uuid4())

    def tell(ctx: Any) -> None:
        header = projects.ProjectHeader(theirs, "Theirs", "o", "planning", "any", 1, 1)
        repo_id = repo_id_for(theirs, "api")
        projects.insert(ctx.db, header, [projects.Repo(repo_id, "api", "s", "go", "[]", None, 1)])

    desk.node.run(tell)
    elsewhere = Desk(desk.node, theirs)
    elsewhere.claimed_elsewhere(DORA, theirs, 5)
    for method, more in (("release", {}), ("reassign", {"agentId": BEN})):
        params = {"repoName": "api"} | more
        wrong = elsewhere.refused(Forbidden, f"cacp/repo/{method}", **params)
        assert wrong.data["reason"] == "held_elsewhere"
        assert wrong.data["node"] == "aid://example.com/other"


def test_a_claim_made_in_vain_holds_once_the_other_is_released(desk: Desk) -> None:
    desk.claimed_elsewhere(DORA, desk.project, desk.node.now + 1)
    assert desk.holder() == ANA
    assert desk.call("cacp/repo/release", repoName="api")["agentId"] == DORA
    desk.call("cacp/repo/reassign", repoName="api", agentId=BEN)
    assert desk.holder() == BEN
    assert len(desk.node.rows("SELECT * FROM claim_releases")) == 2
