"""Refusals: a message for people, reason and data for programs."""

import pytest

from server.domain import errors
from server.domain.errors import Conflict, NotFound, Refusal

ALL = Refusal.__subclasses__()


def test_a_refusal_says_why_to_people_and_to_programs() -> None:
    refusal = NotFound("No project p1", projectId="p1")
    assert str(refusal) == refusal.message == "No project p1"
    assert refusal.data == {"reason": "not_found", "projectId": "p1"}


def test_a_refusal_without_a_class_of_its_own_has_a_reason() -> None:
    assert Refusal("No").data == {"reason": "refused"}


def test_a_reason_may_be_more_precise() -> None:
    assert Conflict("Held", reason="repo_held").data == {"reason": "repo_held"}


@pytest.mark.parametrize("kind", ALL, ids=lambda kind: kind.__name__)
def test_the_tree_at_the_top_of_the_file_names_every_refusal(kind: type[Refusal]) -> None:
    assert f"├── {kind.__name__} " in str(errors.__doc__).replace("└", "├")


def test_reasons_tell_refusals_apart() -> None:
    assert len({kind.reason for kind in ALL}) == len(ALL)
