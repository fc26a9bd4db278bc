"""A project of 1,000 contracts, a box of 100,000 messages and a mesh of 50 nodes: pages stay short
and keep their shape."""

from collections.abc import Iterator
from contextlib import closing

import pytest

from bench.fill import AGENT, Filler
from bench.mail import fill_box
from schemas.thread_runs import TASKS_MAX
from server.page.view import View
from tests.page.conftest import Visits
from tests.page.ground import RUN, STARTED, Ground
from tests.page.test_every_view import EVERY, HTML_MAX, fits_everywhere, opened
from tests.support.located import connect
from tests.support.mesh_member import TOKEN, MeshMember
from tests.support.node import Node

pytestmark = [pytest.mark.needs("chromium"), pytest.mark.soak, pytest.mark.sqlite]

CONTRACTS, LETTERS, NODES = 1_000, 100_000, 50


@pytest.fixture(scope="module")
def large(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Ground]:
    node = Node(
        tmp_path_factory.mktemp("large"), agent_id=AGENT, repo="backend-api", mesh_token=TOKEN
    )
    fill_box(node.db, LETTERS)
    with closing(connect(node.db)) as db:
        filler = Filler(db)
        db.execute("BEGIN IMMEDIATE")
        project = filler.project()
        filler.call("cacp/project/join", projectId=project, repoName="backend-api")
        contracts = [filler.contract(project) for _ in range(CONTRACTS)]
        tasks = [{"id": f"t{each}", "status": "DONE", "attempts": 1} for each in range(TASKS_MAX)]
        report = {"runId": RUN, "status": "RUNNING", "startedAt": STARTED, "tasks": tasks}
        filler.call("cacp/run/report", projectId=project, **report)
        ((thread,),) = db.execute("SELECT thread_id FROM messages LIMIT 1").fetchall()
        db.execute("COMMIT")
    params = {"project_id": project, "contract_id": contracts[0], "thread_id": thread}
    with node:
        for number in range(NODES - 1):
            MeshMember(node, f"node-{number}").register()
        yield Ground(node, {**params, "run_id": RUN})


@EVERY
def test_a_view_of_much_stays_short(view: View, large: Ground, visitor: Visits) -> None:
    page = opened(view, large, visitor)
    # The longest list is of a run's tasks, all that it reports.
    assert len(page.content()) < HTML_MAX
    assert page.locator("[data-item]").count() <= TASKS_MAX
    fits_everywhere(page)
