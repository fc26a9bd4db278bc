"""Ids that follow from what they name (design §5, Repos)."""

from uuid import UUID, uuid5

from hypothesis import given
from hypothesis import strategies as st

from server.domain.identifiers import repo_id_for

PROJECT = "f0ebc7e6-3b58-4d02-abb1-b63e1e0ba7ac"


def test_a_repos_id_is_uuid5_of_project_and_name() -> None:
    """Design §5: so that a repo added on two nodes is one."""
    assert repo_id_for(PROJECT, "backend-api") == str(uuid5(UUID(PROJECT), "backend-api"))
    assert repo_id_for(PROJECT.upper(), "backend-api") == repo_id_for(PROJECT, "backend-api")


@given(st.text(), st.text(), st.text())
def test_any_project_id_of_another_make_will_do(project: str, one: str, other: str) -> None:
    assert UUID(repo_id_for(project, one)).version == 5
    assert (repo_id_for(project, one) == repo_id_for(project, other)) == (one == other)
