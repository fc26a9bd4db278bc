"""cacp/run/report, list and get."""

from functools import partial
from pathlib import Path
from typing import Any

import pytest

from server.auth.authenticator import Caller
from server.domain.errors import Conflict, Forbidden, NotFound
from server.methods import METHODS
from server.methods.base import Context, Method
from tests.support.in_process_node import ANA, BEN, InProcessNode

START = "2026-01-01T00:00:00Z"
TASK = {"id": "api", "status": "FAILED", "attempts": 2, "problem": "build failed"}


@pytest.fixture
def desk(tmp_path: Path) -> Any:
    with InProcessNode(tmp_path) as desk:
        yield desk


@pytest.fixture
def project(desk: InProcessNode) -> str:
    repos = [{"name": "r", "role": "backend", "language": "py"}]
    made = desk.call("cacp/project/create", ANA, name="shop", objective="o", repos=repos)
    desk.call("cacp/project/join", ANA, projectId=made["projectId"], repoName="r")
    return str(made["projectId"])


def report(desk: InProcessNode, project: str, run: str = "nightly", **more: Any) -> None:
    given = {"status": "RUNNING", "startedAt": START, "counts": {"FAILED": 1}} | more
    desk.call("cacp/run/report", ANA, projectId=project, runId=run, **given)


def test_a_run_is_shown_as_it_reported_last(desk: InProcessNode, project: str) -> None:
    report(desk, project)
    window = {"number": 1, "attempt": 1, "size": 1, "done": 0, "failureRate": 1, "verdict": "v"}
    windows = [window | {"at": "2026-01-01T01:00:00+01:00"}]
    report(desk, project, status="ABORTED", reason="no budget", tasks=[TASK], windows=windows)
    run = desk.call("cacp/run/get", BEN, projectId=project, runId="nightly")
    assert (run["status"], run["reason"], run["tasks"]) == ("ABORTED", "no budget", [TASK])
    assert run["agentId"] == ANA
    assert run["windows"][0]["at"] == run["startedAt"] == "2026-01-01T00:00:00.000000+00:00"
    listed = desk.call("cacp/run/list", BEN)["runs"]
    assert [entry["status"] for entry in listed] == ["ABORTED"]
    assert listed[0]["counts"] == {"FAILED": 1}


def test_only_who_holds_a_repo_reports(desk: InProcessNode, project: str) -> None:
    with pytest.raises(Forbidden, match="You hold no repo"):
        desk.call(
            *("cacp/run/report", BEN),
            projectId=project,
            runId="r",
            status="RUNNING",
            startedAt=START,
        )
    assert desk.call("cacp/run/list", ANA)["runs"] == []


def test_a_run_that_never_reported_is_not_found(desk: InProcessNode, project: str) -> None:
    with pytest.raises(NotFound, match="its manifest names this node"):
        desk.call("cacp/run/get", ANA, projectId=project, runId="other")


def test_an_id_that_two_agents_use_needs_the_agent(desk: InProcessNode, project: str) -> None:
    desk.call(
        "cacp/project/addRepo",
        ANA,
        projectId=project,
        repo={"name": "w", "role": "x", "language": "y"},
    )
    method = METHODS["cacp/project/join"]
    params = method.params.model_validate({"projectId": project, "repoName": "w"}, by_alias=True)
    ben = Caller(BEN, "w", "verified", "key")
    desk.run(lambda ctx: method.run(ctx, params), ben, method.name)
    report(desk, project)
    method = METHODS["cacp/run/report"]
    given = {"projectId": project, "runId": "nightly", "status": "COMPLETED", "startedAt": START}
    params = method.params.model_validate(given, by_alias=True)
    desk.run(lambda ctx: method.run(ctx, params), ben, method.name)
    with pytest.raises(Conflict) as ambiguous:
        desk.call("cacp/run/get", ANA, projectId=project, runId="nightly")
    assert ambiguous.value.data["agentIds"] == [BEN, ANA]
    run = desk.call("cacp/run/get", ANA, projectId=project, runId="nightly", agentId=BEN)
    assert run["status"] == "COMPLETED"


def test_the_list_goes_on_where_a_page_ends(desk: InProcessNode, project: str) -> None:
    for number in range(5):
        report(desk, project, f"run-{number}")
    first = desk.call("cacp/run/list", ANA, limit=2, projectId=project)
    rest = desk.call("cacp/run/list", ANA, limit=9, cursor=first["nextCursor"])
    names = [run["runId"] for run in first["runs"] + rest["runs"]]
    assert names == [f"run-{number}" for number in reversed(range(5))]


def test_a_key_for_one_project_sees_its_runs_only(desk: InProcessNode, project: str) -> None:
    report(desk, project)
    method = METHODS["cacp/run/list"]
    for only, count in ((project, 1), ("another", 0)):
        caller = Caller(ANA, "r", "verified", "key", projects=frozenset({only}))
        listed = desk.run(partial(_all, method), caller, method.name)
        assert len(listed["runs"]) == count


def _all(method: Method, ctx: Context) -> Any:
    return method.run(ctx, method.params())
