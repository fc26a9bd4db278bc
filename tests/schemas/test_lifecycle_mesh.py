"""What mesh nodes say of a project's lifecycle and of released claims."""

from typing import Any

import pytest
from pydantic import ValidationError

from schemas.lifecycle_mesh import ProjectStateSyncParams

SIGNATURE = {"node": "n", "value": "v"}
REGISTER = {"state": "archived", "name": "n", "by": "a", "stamp": 1, "signature": SIGNATURE}
RELEASE = {"repo_id": "r", "agent_id": "a", "by": "b", "released_at": 1, "signature": SIGNATURE}


def params(**state: Any) -> dict[str, Any]:
    return {"source_agent": "a", "state": {"project_id": "p"} | state, "unknown": 1}


def test_either_may_be_absent() -> None:
    taken = ProjectStateSyncParams.model_validate(params(lifecycle=REGISTER))
    assert (taken.project_id, taken.state.releases) == ("p", [])
    assert ProjectStateSyncParams.model_validate(params(releases=[RELEASE])).state.lifecycle is None


@pytest.mark.parametrize(
    "wrong",
    [
        {"lifecycle": REGISTER | {"state": "gone"}},
        {"lifecycle": REGISTER | {"signature": None}},
        {"releases": [RELEASE | {"released_at": -1}]},
        {"releases": [RELEASE | {"why": "?"}]},
    ],
)
def test_what_is_wrong_is_refused(wrong: dict[str, Any]) -> None:
    with pytest.raises(ValidationError):
        ProjectStateSyncParams.model_validate(params(**wrong))
