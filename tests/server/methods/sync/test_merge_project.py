"""What a repo is, each node of a mesh takes from who may say it, in any order (design §7)."""

from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path
from typing import Any
from uuid import uuid4

import pytest

from server.domain.identifiers import repo_id_for
from tests.support.mesh import TOKEN, Mesh, equal, holds, join
from tests.support.mesh import project as founded
from tests.support.mesh_member import ALPHA, SOME_TIME, MeshMember, pulled
from tests.support.node import Node
from tests.support.waiting import eventually

BACK = SOME_TIME - 1_000_000
"""A stamp before all others."""


def what(node: Node, project: str, name: str) -> Any:
    rows = node.query(
        "SELECT role, stamp FROM repos WHERE project_id = ? AND name = ?", project, name
    )
    return rows[0] if rows else None


def tell(by: MeshMember, project: str, *repos: dict[str, Any]) -> Any:
    """Tell of repos, and of nothing else."""
    return by.project(project, stamp=SOME_TIME, repos=list(repos))


def overruled(node: Node, by: MeshMember) -> float:
    line = f'cacp_peer_overruled_total{{peer="{by.agent}"}} '
    found = [one for one in node.get("/metrics").text.splitlines() if one.startswith(line)]
    return float(found[0].removeprefix(line)) if found else 0.0


def founded_by_alpha(alpha: Node) -> str:
    repos = [{"name": name, "role": "service", "language": "go"} for name in ("alpha", "beta")]
    made = alpha.call("cacp/project/create", name="P", objective="o", repos=repos)
    return str(made["projectId"])


def test_nobody_rewrites_what_the_founder_says(alpha: Node, beta: MeshMember) -> None:
    """Neither signed nor unsigned, dated back, nor as the holder of that very repo."""
    project = founded_by_alpha(alpha)
    before, count = what(alpha, project, "beta"), overruled(alpha, beta)
    for name in ("beta", "alpha"):
        for more in ({}, {"signature": None}):
            said = beta.repo(project, BACK, name, role="rewritten", **more)
            answer = tell(beta, project, said)
            assert "lower authority" in answer["reason"]
            assert what(alpha, project, name)[0] == "service"
    tell(beta, project, beta.repo(project, BACK, role="rewritten"))
    assert alpha.query("SELECT agent_id FROM repos WHERE repo_id = ?", beta_repo(project)) == [
        (beta.agent,)
    ]
    assert what(alpha, project, "beta") == before
    eventually(lambda: overruled(alpha, beta) == count + 5)
    assert "refused_from_peer" in alpha.log


def beta_repo(project: str) -> str:
    return repo_id_for(project, "beta")


def test_who_holds_a_repo_says_what_it_is(alpha: Node, beta: MeshMember, gamma: MeshMember) -> None:
    """Where the founder has said nothing: before others, whatever stamp they give theirs."""
    project = str(uuid4())
    tell(gamma, project, gamma.repo(project, BACK), gamma.repo(project, BACK, "beta", role="guess"))
    assert what(alpha, project, "beta")[0] == "guess"
    tell(beta, project, beta.repo(project, SOME_TIME, role="truth"))
    assert what(alpha, project, "beta") == ("truth", SOME_TIME)
    tell(gamma, project, gamma.repo(project, BACK - 9, "beta", role="guess"))
    assert what(alpha, project, "beta") == ("truth", SOME_TIME)
    tell(beta, project, beta.repo(project, SOME_TIME + 1, role="later"))
    assert what(alpha, project, "beta") == ("truth", SOME_TIME), "of one's own words the earlier"


def test_to_claim_a_repo_in_vain_gains_nothing(
    alpha: Node, beta: MeshMember, gamma: MeshMember
) -> None:
    """Nor does a signature of the holder's on what another has changed."""
    project = str(uuid4())
    held = beta.repo(project, SOME_TIME)
    tell(beta, project, held)
    later = gamma.claim(project, SOME_TIME + 1, "beta")
    said = gamma.repo(project, BACK, "beta", role="rewritten", claims=[later])
    tell(gamma, project, said)
    tell(gamma, project, held | {"role": "rewritten"})
    assert what(alpha, project, "beta") == ("service", SOME_TIME)
    lost = alpha.query("SELECT agent_id FROM claim_conflicts WHERE project_id = ?", project)
    assert lost == [(gamma.agent,)]


def test_who_joins_a_repo_stands_by_what_it_is(
    alpha: Node, beta: MeshMember, gamma: MeshMember
) -> None:
    """After that even a member's word, dated back, changes nothing."""
    project = str(uuid4())
    tell(beta, project, beta.repo(project, SOME_TIME), beta.repo(project, SOME_TIME, "alpha"))
    [(kept,)] = signatures(alpha, project)
    assert beta.agent in kept
    alpha.call("cacp/project/join", projectId=project, repoName="alpha")
    [(kept,)] = signatures(alpha, project)
    assert kept is None
    role, stamp = what(alpha, project, "alpha")
    assert (role, stamp > SOME_TIME) == ("service", True)
    registers = pulled(gamma, "project", project, project)["registers"]
    [mine] = [one for one in registers["repos"] if one["name"] == "alpha"]
    assert mine["signature"]["node"] == ALPHA
    tell(beta, project, beta.repo(project, BACK, "alpha", role="rewritten"))
    assert what(alpha, project, "alpha") == (role, stamp)
    alpha.call("cacp/project/join", projectId=project, repoName="alpha")
    assert what(alpha, project, "alpha") == (role, stamp), "it says so once"


def signatures(node: Node, project: str) -> Any:
    return node.query(
        "SELECT signature FROM repos WHERE project_id = ? AND name = 'alpha'", project
    )


def test_what_is_signed_by_another_than_it_says_is_refused(
    alpha: Node, beta: MeshMember, gamma: MeshMember
) -> None:
    project = str(uuid4())
    tell(gamma, project, gamma.repo(project, SOME_TIME))
    forged = beta.repo(project, BACK, "gamma", role="rewritten")
    forged["signature"] |= {"node": gamma.agent}
    assert "does not match the key of" in tell(beta, project, forged)["reason"]
    unknown = beta.repo(project, BACK, "new") | {"role": "another"}
    tell(beta, project, unknown)
    assert (what(alpha, project, "gamma")[0], what(alpha, project, "new")) == ("service", None)


def test_two_things_with_one_stamp_are_evidence(tmp_path: Path) -> None:
    with Node(tmp_path, repo="alpha", agent_id=ALPHA, mesh_token=TOKEN) as alpha:
        beta = MeshMember(alpha, "beta").register()
        project = str(uuid4())
        for role in ("one", "another"):
            tell(beta, project, beta.repo(project, SOME_TIME, role=role))
        found = alpha.query("SELECT kind, place, key FROM equivocations")
        assert found == [("repo", project, beta_repo(project))]
        assert alpha.get("/health").json()["reason"] == "equivocation"


@pytest.fixture
def pair(tmp_path: Path) -> Iterator[tuple[Node, Node]]:
    with ExitStack() as stack:
        meshed = Mesh(tmp_path, stack)
        alpha = meshed.add("alpha")
        yield alpha, meshed.add("beta", alpha)


def test_what_is_rewritten_at_one_node_is_so_at_none(pair: tuple[Node, Node]) -> None:
    """A member that knows the token tells beta alone: of alpha's project, and of a repo of beta's
    own."""
    alpha, beta = pair
    project = founded(alpha)
    join(beta, project, "beta")
    added = {"name": "tools", "role": "service", "language": "go"}
    beta.call("cacp/project/addRepo", projectId=project, repo=added)
    eventually(lambda: equal(alpha, beta) and what(alpha, project, "tools"))
    join(alpha, project, "tools")
    eventually(lambda: equal(alpha, beta) and what(beta, project, "tools")[1] > SOME_TIME)
    mallory = MeshMember(beta, "mallory").register()
    for name in ("alpha", "beta", "gamma", "tools"):
        tell(mallory, project, mallory.repo(project, BACK, name, role="rewritten"))
    tell(mallory, project, mallory.repo(project, BACK))
    for name in ("alpha", "beta", "gamma", "tools"):
        tell(mallory, project, mallory.repo(project, BACK - 1, name, role="rewritten"))
    eventually(lambda: equal(alpha, beta) and what(alpha, project, "mallory"))
    for node in pair:
        assert {what(node, project, name)[0] for name in ("alpha", "beta", "tools")} == {"service"}
        assert holds(node, project)
    eventually(lambda: overruled(beta, mallory) >= 8)


def test_the_claims_of_a_message_count_for_all_that_it_says(
    alpha: Node, beta: MeshMember, gamma: MeshMember
) -> None:
    """Also for a repo that stands before them: nodes that hear it in pieces come to the same."""
    project = str(uuid4())
    tell(gamma, project, gamma.repo(project, SOME_TIME), gamma.repo(project, BACK, "x", role="old"))
    earlier = beta.repo(project, BACK - 1, "x", role="new")
    tell(beta, project, earlier, beta.repo(project, SOME_TIME))
    assert what(alpha, project, "x") == ("new", BACK - 1)


def test_a_repo_that_is_named_twice_in_a_message_counts_once(alpha: Node, beta: MeshMember) -> None:
    project = str(uuid4())
    first, second = (beta.repo(project, SOME_TIME, role=role) for role in ("one", "two"))
    tell(beta, project, first, second)
    assert what(alpha, project, "beta") == ("one", SOME_TIME)
