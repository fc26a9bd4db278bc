"""Projects and their methods (CACP 2.0, Project; Project Methods)."""

from typing import Any

import pytest

from schemas.project import (
    CreateProjectParams,
    JoinProjectParams,
    ListProjectsParams,
    Project,
    UpdateProjectStatusParams,
)
from tests.schemas.refusals import refusal, without

CREATION: dict[str, Any] = {
    "name": "User Auth Feature",
    "objective": "Implement OAuth 2.0 login across frontend and backend",
    "repos": [
        {"name": "backend-api", "role": "backend", "language": "python"},
        {"name": "frontend-app", "role": "frontend", "language": "typescript"},
    ],
}


def test_the_specs_examples_are_accepted() -> None:
    params = CreateProjectParams.model_validate(CREATION)
    assert [repo.name for repo in params.repos] == ["backend-api", "frontend-app"]
    assert params.agreement_policy == "any"
    join = {
        "projectId": "f0ebc7e6",
        "repoName": "frontend-app",
        "agentEndpoint": "http://frontend-agent:8081",
    }
    assert JoinProjectParams.model_validate(join).repo_name == "frontend-app"
    assert ListProjectsParams.model_validate({}).summary is False


def test_a_whole_project_is_snake_case() -> None:
    project = Project.model_validate(
        {
            "project_id": "f0ebc7e6",
            "name": "User Auth Feature",
            "objective": "",
            "status": "planning",
            "repos": [
                {"repo_id": "r1", "name": "backend-api", "role": "backend", "language": "python"}
            ],
            "contracts": [],
            "context_history": [],
            "created_at": "2026-02-21T09:30:00",
            "updated_at": "2026-02-21T09:30:00",
        }
    )
    assert project.repos[0].agent_id is None
    assert project.agreement_policy == "any"


def test_clients_describe_their_repos_further() -> None:
    repo = CREATION["repos"][0] | {"relevantPaths": ["src/"], "url": "https://example.com/r.git"}
    params = CreateProjectParams.model_validate(CREATION | {"repos": [repo]})
    assert params.repos[0].relevant_paths == ["src/"]


@pytest.mark.parametrize(
    ("sent", "where", "message"),
    [
        (without(CREATION, "objective"), "objective", "Field required"),
        (CREATION | {"repos": [{"name": "x"}] * 1_001}, "repos", "List should have at most 1000"),
        (
            CREATION | {"repos": [without(CREATION["repos"][0], "role")]},
            "repos.0.role",
            "Field required",
        ),
        (CREATION | {"agreementPolicy": "most"}, "agreementPolicy", "Input should be 'any' or"),
        (CREATION | {"agreement_policy": "all"}, "agreement_policy", "Extra inputs are not"),
    ],
)
def test_a_creation_is_refused_where_it_is_wrong(
    sent: dict[str, Any], where: str, message: str
) -> None:
    place, said = refusal(CreateProjectParams, sent)
    assert place == where
    assert said.startswith(message)


def test_a_status_is_one_of_four() -> None:
    assert refusal(UpdateProjectStatusParams, {"projectId": "p", "status": "done"}) == (
        "status",
        "Input should be 'planning', 'implementing', 'integrating' or 'complete'",
    )


@pytest.mark.parametrize("limit", [0, 501])
def test_a_page_of_projects_is_1_to_500(limit: int) -> None:
    assert refusal(ListProjectsParams, {"limit": limit})[0] == "limit"
