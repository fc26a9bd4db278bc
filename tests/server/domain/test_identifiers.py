"""Ids that follow from what they name."""

from uuid import UUID, uuid5

from hypothesis import given
from hypothesis import strategies as st
from uuid_utils import uuid7

from server.domain.identifiers import begun_by, is_beginner, names_beginner, repo_id_for

PROJECT = "f0ebc7e6-3b58-4d02-abb1-b63e1e0ba7ac"


def test_a_repos_id_is_uuid5_of_project_and_name() -> None:
    """Design §5: so that a repo added on two nodes is one."""
    assert repo_id_for(PROJECT, "backend-api") == str(uuid5(UUID(PROJECT), "backend-api"))
    assert repo_id_for(PROJECT.upper(), "backend-api") == repo_id_for(PROJECT, "backend-api")


@given(st.text(), st.text(), st.text())
def test_any_project_id_of_another_make_will_do(project: str, one: str, other: str) -> None:
    assert UUID(repo_id_for(project, one)).version == 5
    assert (repo_id_for(project, one) == repo_id_for(project, other)) == (one == other)


NODE = "aid://example.com/api@1.0.0"


def test_a_contracts_id_says_which_node_began_it_and_in_which_project() -> None:
    fresh = UUID(bytes=uuid7().bytes)
    made = begun_by(NODE, PROJECT, fresh)
    assert made[:14] == str(fresh)[:14], "in the order of time"
    assert names_beginner(made)
    assert is_beginner(made, PROJECT, NODE)
    assert is_beginner(made, PROJECT, "aid://example.com/api@2.0.0"), "whatever its version"
    assert not is_beginner(made, PROJECT, "aid://example.com/web@1.0.0")
    assert not is_beginner(made, "another", NODE)


def test_other_ids_name_nobody() -> None:
    for other in (str(uuid7()), "contract-1", ""):
        assert not names_beginner(other)
        assert not is_beginner(other, PROJECT, NODE)


@given(st.uuids(), st.sampled_from("0123456789abcdef"), st.sampled_from("0123456789abcdef"))
def test_an_id_names_its_beginner_as_a_uuid_of_version_8(
    some: UUID, version: str, variant: str
) -> None:
    text = str(some)
    text = f"{text[:14]}{version}{text[15:19]}{variant}{text[20:]}"
    assert names_beginner(text) == (UUID(text).version == 8)


def test_an_id_in_another_form_names_nobody() -> None:
    """A foreign peer may call its contracts by hashes: one of 64 reads as a UUIDv8."""
    made = begun_by(NODE, PROJECT, UUID(bytes=uuid7().bytes))
    for other in (made.replace("-", ""), made.upper(), f"{{{made}}}", f"urn:uuid:{made}"):
        assert other == made or not names_beginner(other)
    assert not names_beginner("0" * 12 + "8" + "0" * 3 + "8" + "0" * 15)
