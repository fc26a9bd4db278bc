"""Params and results of the methods about a project's lifecycle."""

import pytest
from pydantic import ValidationError

from schemas.lifecycle import LifecycleParams, LifecycleResult, ReassignRepoParams


def test_a_result_has_counts_only_for_a_deletion() -> None:
    shown = {"projectId": "p", "name": "n", "status": "deleted", "by": "a", "at": "2026-02-21"}
    assert LifecycleResult.model_validate(shown).removed is None
    removed = {"contracts": 1, "packets": 0, "files": 0, "bytes": 0}
    result = LifecycleResult.model_validate(shown | {"removed": removed})
    assert result.removed is not None
    assert result.removed.contracts == 1


@pytest.mark.parametrize("wrong", [{}, {"projectId": ""}, {"projectId": "p", "force": True}])
def test_a_project_is_named_and_nothing_else(wrong: dict[str, object]) -> None:
    with pytest.raises(ValidationError):
        LifecycleParams.model_validate(wrong)


def test_a_repo_is_given_to_somebody() -> None:
    with pytest.raises(ValidationError, match="agentId"):
        ReassignRepoParams.model_validate({"projectId": "p", "repoName": "r"})
