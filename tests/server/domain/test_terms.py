"""What a version freezes of its project, and which receipts it asks for."""

from dataclasses import replace
from itertools import product
from typing import Any, get_args

import pytest
from hypothesis import given
from hypothesis import strategies as st

from schemas.facts import VersionFact
from schemas.verification import PartyRole, VerificationPolicy
from server.domain.terms import (
    ProjectTerms,
    VersionTerms,
    demands,
    sides_to_prove,
    terms_of,
    weakens,
)

POLICIES: tuple[VerificationPolicy, ...] = get_args(VerificationPolicy)
REPO_ROLES = {"api": "backend", "web": "frontend"}
PARTIES = ("api", "web")
DEFAULT: dict[str, PartyRole] = {"api": "provider", "web": "consumer"}
TURNED: dict[str, PartyRole] = {"api": "consumer", "web": "provider"}
VERSION = VersionFact(
    version=1,
    digest="0" * 64,
    stamp=1,
    content={},
    repo_id="api",
    agent_id="aid://example.com/api",
    parties=PARTIES,
    policy="any",
)


def terms(policy: VerificationPolicy, **given: Any) -> VersionTerms:
    project = ProjectTerms(policy, REPO_ROLES)
    named, before = given.get("named"), given.get("before")
    return terms_of(project, "api_endpoint", PARTIES, named, first_author="web", before=before)


def test_a_version_that_is_verified_by_word_freezes_roles_only_where_they_are_named() -> None:
    assert terms("word") == (None, None, DEFAULT)
    assert terms("word", named={"web": "provider"}) == (None, TURNED, TURNED)


def test_a_version_that_asks_for_receipts_freezes_whose() -> None:
    """The roles of repos may change, and other nodes may not know them yet."""
    assert terms("receipt") == ("receipt", DEFAULT, DEFAULT)


def test_roles_stay_until_others_are_named() -> None:
    before = replace(VERSION, roles=TURNED)
    assert terms("word", before=before).frozen == TURNED
    assert terms("word", before=before, named={"api": "provider"}).frozen == DEFAULT
    assert terms("word", before=VERSION).frozen is None


WEAKER = {
    "word": set(),
    "receipt": {"word"},
    "receipt_both": {"word", "receipt"},
    "independent": {"word", "receipt"},
    "independent_both": {"word", "receipt", "receipt_both", "independent"},
}


@pytest.mark.parametrize(("before", "after"), list(product(POLICIES, POLICIES)))
def test_a_policy_is_weaker_that_lacks_a_demand(
    before: VerificationPolicy, after: VerificationPolicy
) -> None:
    incomparable = {before, after} == {"receipt_both", "independent"}
    assert weakens(before, after) == (after in WEAKER[before] or incomparable)


@pytest.mark.parametrize(
    ("policy", "asked"),
    [
        (None, set()),
        ("receipt", {("api", "provider")}),
        ("receipt_both", {("api", "provider"), ("web", "consumer")}),
        ("independent", {("api", "provider")}),
        ("independent_both", {("api", "provider"), ("web", "consumer")}),
    ],
)
def test_receipts_are_asked_of_each_side_of_the_policy(
    policy: VerificationPolicy | None, asked: set[tuple[str, str]]
) -> None:
    assert sides_to_prove([replace(VERSION, verification=policy, roles=DEFAULT)]) == asked


def test_one_that_is_both_proves_both_sides() -> None:
    both = replace(VERSION, verification="receipt_both", roles={"api": "both", "web": "consumer"})
    assert sides_to_prove([both]) == {
        ("api", "provider"),
        ("api", "consumer"),
        ("web", "consumer"),
    }


@pytest.mark.parametrize("roles", [None, {}, {"api": "consumer", "web": "consumer"}])
def test_no_version_is_proven_by_nothing(roles: Any) -> None:
    """As a node that cheats may sign one: without roles every party provides."""
    asked = sides_to_prove([replace(VERSION, verification="receipt", roles=roles)])
    assert asked == {("api", "provider"), ("web", "provider")}


VERSIONS = st.lists(
    st.builds(
        lambda policy, roles: replace(VERSION, verification=policy, roles=roles),
        st.none() | st.sampled_from(POLICIES),
        st.none() | st.just(DEFAULT) | st.just(TURNED),
    ),
    min_size=1,
    max_size=4,
)


@given(VERSIONS, VERSIONS)
def test_a_version_with_other_terms_takes_no_demand_away(
    versions: list[VersionFact], more: list[VersionFact]
) -> None:
    assert sides_to_prove(versions) <= sides_to_prove(versions + more)
    assert sides_to_prove(versions + more) == sides_to_prove(more + versions)


def test_word_demands_nothing() -> None:
    assert demands(None) == demands("word") == frozenset()
    assert demands("independent_both") == {"receipt", "both", "independent"}
