"""cacp/project/* (CACP 2.0, Project Methods)."""

from datetime import datetime
from pathlib import Path
from typing import Any
from uuid import UUID, uuid5

import pytest

from tests.server.methods.refusals import refused
from tests.support.node import AGENT, REPO, Node, RpcError
from tests.support.team import FRONTEND, FRONTEND_AGENT, REPOS, Team


def create(node: Node, **params: Any) -> Any:
    given = {"name": "User Auth Feature", "objective": "OAuth 2.0 login", "repos": REPOS} | params
    return node.call("cacp/project/create", **given)


def is_utc_time(text: str) -> bool:
    """ISO 8601 UTC with exactly six digits of fraction."""
    fraction = text.partition(".")[2]
    return datetime.fromisoformat(text).utcoffset() is not None and fraction[6:] == "+00:00"


# --- cacp/project/create ------------------------------------------------------------------------


def test_create(node: Node) -> None:
    """CACP 2.0, cacp/project/create."""
    made = create(node)
    assert made == {"projectId": made["projectId"], "status": "created", "repoCount": 2}
    assert UUID(made["projectId"])


def test_create_claims_the_repo_of_the_callers_own_name(node: Node) -> None:
    """Design §5: project/create claims the repo whose name is the caller's own."""
    project = node.call("cacp/project/get", projectId=create(node)["projectId"])
    assert {repo["name"]: repo.get("agent_id") for repo in project["repos"]} == {
        REPO: AGENT,
        FRONTEND: None,
    }


def test_create_without_repos(node: Node) -> None:
    assert create(node, repos=[])["repoCount"] == 0
    assert node.call("cacp/project/create", name="n", objective="")["repoCount"] == 0


def test_create_refuses_a_repo_named_twice(node: Node) -> None:
    with refused(-32602, "invalid_params", path="repos"):
        create(node, repos=[REPOS[0], REPOS[0]])


@pytest.mark.parametrize(
    "wrong",
    [
        {"name": ""},
        {"name": "x" * 201},
        {"name": None},
        {"objective": 5},
        {"objective": "x" * 20_001},
        {"repos": [{"name": "a"}]},
        {"repos": [REPOS[0] | {"branch": "main"}]},
        {"repos": "backend"},
        {"agreementPolicy": "most"},
        {"repos": [REPOS[0] | {"name": f"r{n}"} for n in range(1001)]},
    ],
)
def test_create_refuses_bad_params(node: Node, wrong: dict[str, Any]) -> None:
    with refused(-32602, "invalid_params"):
        create(node, **wrong)


# --- cacp/project/join --------------------------------------------------------------------------


def test_join(node: Node, frontend_key: str) -> None:
    """CACP 2.0, cacp/project/join."""
    project = create(node)["projectId"]
    joined = node.call(
        "cacp/project/join",
        key=frontend_key,
        projectId=project,
        repoName=FRONTEND,
        agentEndpoint="http://127.0.0.1:8081",
    )
    assert joined == {
        "repoId": str(uuid5(UUID(project), FRONTEND)),
        "status": "joined",
        "projectName": "User Auth Feature",
    }
    held = Team(node, frontend_key, project).repo(FRONTEND)
    assert held["agent_id"] == FRONTEND_AGENT
    assert held["agent_endpoint"] == "http://127.0.0.1:8081"


def test_join_again_renews_the_endpoint(team: Team) -> None:
    for endpoint in ("http://127.0.0.1:1", "http://127.0.0.1:2"):
        team.frontend("project/join", repoName=FRONTEND, agentEndpoint=endpoint)
    assert team.repo(FRONTEND)["agent_endpoint"] == "http://127.0.0.1:2"


def test_join_again_without_an_endpoint_keeps_it(team: Team) -> None:
    """Null means absent."""
    team.frontend("project/join", repoName=FRONTEND, agentEndpoint="http://127.0.0.1:1")
    for said in ({}, {"agentEndpoint": None}):
        team.frontend("project/join", repoName=FRONTEND, **said)
        assert team.repo(FRONTEND)["agent_endpoint"] == "http://127.0.0.1:1"


def test_join_of_a_repo_that_another_holds_is_a_conflict(team: Team) -> None:
    """Design §5: joining a repo that another agent holds is -32004."""
    key = team.node.key("aid://example.com/rival@1.0.0", FRONTEND)
    with refused(-32004, "repo_taken", heldBy=FRONTEND_AGENT):
        team.node.call("cacp/project/join", key=key, projectId=team.project, repoName=FRONTEND)


def test_a_key_joins_only_the_repo_that_it_was_made_for(team: Team) -> None:
    team.backend("project/addRepo", repo={"name": "free", "role": "r", "language": "l"})
    with refused(-32003, "other_repo", repo=FRONTEND):
        team.frontend("project/join", repoName="free")


def test_join_of_a_repo_that_is_not_there(team: Team) -> None:
    with refused(-32602, "not_found", kind="repo"):
        team.backend("project/join", repoName="mobile-app")
    with pytest.raises(RpcError, match=r"no repo mobile-app: it has .*frontend-app"):
        team.backend("project/join", repoName="mobile-app")


def test_join_refuses_an_endpoint_that_the_node_must_not_call(team: Team) -> None:
    """Design §6: metadata addresses are always refused."""
    with refused(-32003, "refused_address"):
        team.frontend(
            "project/join", repoName=FRONTEND, agentEndpoint="http://169.254.169.254/latest"
        )


# --- cacp/project/get ---------------------------------------------------------------------------


def test_get_is_the_full_project(team: Team) -> None:
    """CACP 2.0, Project and RepoContext."""
    contract = team.proposed()
    packet = team.frontend("context/askQuestion", question="JWT?")["packetId"]
    project = team.backend("project/get")
    header = {
        "project_id": team.project,
        "name": "User Auth",
        "objective": "Login",
        "status": "planning",
    }
    assert project | header == project
    repo = {
        "repo_id": str(uuid5(UUID(team.project), REPO)),
        "name": REPO,
        "role": "backend",
        "language": "python",
        "agent_id": AGENT,
    }
    assert team.repo(REPO) | repo == team.repo(REPO)
    assert [one["contract_id"] for one in project["contracts"]] == [contract]
    assert project["contracts"][0]["history"] == []
    assert [one["packet_id"] for one in project["context_history"]] == [packet]
    assert is_utc_time(project["created_at"])
    assert is_utc_time(project["updated_at"])
    assert project["updated_at"] == project["context_history"][0]["timestamp"]


def test_only_context_methods_add_context(team: Team) -> None:
    """Design §5: only context methods add context packets."""
    contract = team.implemented()
    team.backend("implementation/verify", contractId=contract, result="success")
    assert team.backend("project/get")["context_history"] == []


# --- cacp/project/list --------------------------------------------------------------------------


def pages(node: Node, **params: Any) -> list[list[Any]]:
    found = []
    while True:
        page = node.call("cacp/project/list", **params)
        found.append(page["projects"])
        if "nextCursor" not in page:
            return found
        params["cursor"] = page["nextCursor"]


def test_list_holds_full_projects(team: Team) -> None:
    """CACP 2.0, cacp/project/list."""
    whole = team.backend("project/get")
    assert whole in [one for page in pages(team.node) for one in page]


def test_list_goes_page_by_page_and_misses_none(node: Node) -> None:
    mine = {create(node)["projectId"] for _ in range(5)}
    found = pages(node, limit=2)
    assert {len(page) for page in found[:-1]} == {2}
    ids = [project["project_id"] for page in found for project in page]
    assert len(ids) == len(set(ids))
    assert mine <= set(ids)


def test_list_has_the_newest_first_and_holds_its_place_while_projects_are_added(
    node: Node,
) -> None:
    mine = [create(node)["projectId"] for _ in range(4)]
    first = node.call("cacp/project/list", limit=2)
    assert [one["project_id"] for one in first["projects"]] == [mine[3], mine[2]]
    create(node)
    second = node.call("cacp/project/list", limit=2, cursor=first["nextCursor"])
    assert [one["project_id"] for one in second["projects"]] == [mine[1], mine[0]]


def test_a_list_is_of_all_projects_or_says_in_words_that_there_are_more(tmp_path: Path) -> None:
    """CACP 2.0, cacp/project/list: list all projects. Who knows the text only knows no cursor."""
    with Node(tmp_path) as node:
        mine = [create(node)["projectId"] for _ in range(60)]
        found = node.call("cacp/project/list")
        assert [one["project_id"] for one in found["projects"]] == mine[::-1]
        assert found.keys() == {"projects", "total"}
        short = node.call("cacp/project/list", summary=True)
        assert (len(short["projects"]), short["total"]) == (50, 60)
        assert short["more"] == (
            "These are 50 of 60 projects, the newest first. Older ones follow: call "
            f"cacp/project/list with cursor {short['nextCursor']}"
        )


def test_list_in_short(team: Team) -> None:
    team.proposed()
    found = [one for page in pages(team.node, summary=True) for one in page]
    whole = team.backend("project/get")
    assert {
        "projectId": team.project,
        "name": "User Auth",
        "status": "planning",
        "repoCount": 2,
        "contractCount": 1,
        "verifiedCount": 0,
        "waitingCount": 1,
        "createdAt": whole["created_at"],
        "updatedAt": whole["updated_at"],
    } in found


@pytest.mark.parametrize("cursor", ["x", "1", "1.", ".a", "-1.a", "1" * 20 + ".a", "٣.a"])
def test_list_refuses_a_cursor_that_it_did_not_give(node: Node, cursor: str) -> None:
    with refused(-32602, "invalid_params", path="cursor"):
        node.call("cacp/project/list", cursor=cursor)


# --- what deployed clients call besides (design §5) ---------------------------------------------


def test_update_status(team: Team) -> None:
    for status in ("implementing", "integrating", "complete", "planning"):
        answer = team.backend("project/updateStatus", status=status)
        assert answer == {"projectId": team.project, "status": status}
        assert team.backend("project/get")["status"] == status
    with refused(-32602, "invalid_params"):
        team.backend("project/updateStatus", status="done")


def test_add_repo(team: Team) -> None:
    repo = {
        "name": "mobile-app",
        "role": "mobile",
        "language": "swift",
        "relevantPaths": ["App/"],
        "url": "https://git.example.com/mobile",
    }
    added = team.backend("project/addRepo", repo=repo)
    assert added == {"repoId": str(uuid5(UUID(team.project), "mobile-app")), "status": "added"}
    assert team.repo("mobile-app") == {
        "repo_id": added["repoId"],
        "name": "mobile-app",
        "role": "mobile",
        "language": "swift",
        "relevant_paths": ["App/"],
        "url": "https://git.example.com/mobile",
    }
    with refused(-32004, "repo_exists"):
        team.backend("project/addRepo", repo=repo)


def test_add_repo_never_makes_a_claim(team: Team) -> None:
    made = team.node.call("cacp/project/create", name="n", objective="o")
    team.node.call("cacp/project/addRepo", projectId=made["projectId"], repo=REPOS[0])
    project = team.node.call("cacp/project/get", projectId=made["projectId"])
    assert "agent_id" not in project["repos"][0]


# --- who may change a project -------------------------------------------------------------------


def test_who_holds_no_repo_of_a_project_changes_nothing_of_it(node: Node, team: Team) -> None:
    """Else an outsider could add its repo, join it, and be a party of whatever comes next."""
    key = node.key("aid://example.com/outsider@1.0.0", "outsider")
    repo = {"name": "outsider", "role": "shared", "language": "go"}
    with refused(-32003, "not_a_member"):
        node.call("cacp/project/addRepo", key=key, projectId=team.project, repo=repo)
    with refused(-32003, "not_a_member"):
        node.call("cacp/project/updateStatus", key=key, projectId=team.project, status="complete")


def test_a_key_acts_for_its_own_repo_only(node: Node, team: Team) -> None:
    """Design §6: an agent that holds a repo by one key does not act for it with another's."""
    key = node.key("aid://example.com/frontend@1.0.0", "unrelated")
    with refused(-32003, "not_a_member"):
        node.call(
            "cacp/contract/propose",
            key=key,
            projectId=team.project,
            type="custom",
            name="x",
            content={},
        )


# --- cacp/project/updateVerificationPolicy --------------------------------------------------------


def policy_of(team: Team) -> str:
    whole = team.backend("project/get")
    outline = team.backend("project/get", summary=True)
    board = team.backend("project/board")
    assert {outline["verificationPolicy"], board["verificationPolicy"]} == {
        whole.get("verification_policy", "word")
    }
    return str(outline["verificationPolicy"])


def test_the_verification_policy_is_set_at_first_and_later(node: Node, frontend_key: str) -> None:
    team = Team.on(node, frontend_key, verificationPolicy="independent")
    assert policy_of(team) == "independent"
    changed = team.backend(
        "project/updateVerificationPolicy", verificationPolicy="independent_both"
    )
    assert changed == {"projectId": team.project, "verificationPolicy": "independent_both"}
    assert policy_of(team) == "independent_both"


def test_an_agent_may_not_ask_for_less_proof(team: Team, node: Node) -> None:
    """Else it could verify by its word what a person wants proven."""
    team.backend("project/updateVerificationPolicy", verificationPolicy="receipt")
    with refused(-32003, "weaker_policy"):
        team.backend("project/updateVerificationPolicy", verificationPolicy="word")
    with refused(-32003, "not_project_owner"):
        team.frontend("project/updateVerificationPolicy", verificationPolicy="independent")
    params = {"projectId": team.project, "verificationPolicy": "word"}
    node.call("cacp/project/updateVerificationPolicy", key=node.operator, **params)
    assert policy_of(team) == "word"
    ann = node.key("aid://example.com/ann@1.0.0", "", human=True)
    for policy in ("receipt_both", "receipt"):
        wanted = params | {"verificationPolicy": policy}
        node.call("cacp/project/updateVerificationPolicy", key=ann, **wanted)
        assert policy_of(team) == policy
