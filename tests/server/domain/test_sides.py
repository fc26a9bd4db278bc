"""Who provides a contract, from the repos' roles."""

import doctest

import pytest
from hypothesis import given
from hypothesis import strategies as st

from schemas.contract import ContractType
from schemas.verification import PartyRole
from server.domain import sides
from server.domain.errors import InvalidInput
from server.domain.sides import completed, provider_of, provides, roles_of

ROLES = {
    "api": "backend",
    "pay": "backend",
    "web": "frontend",
    "ios": "Mobile",
    "lib": "shared",
    "ops": "infra",
    "odd": "payments team",
}


def test_the_examples_hold() -> None:
    assert doctest.testmod(sides).failed == 0


@pytest.mark.parametrize(
    ("type", "parties", "author", "provider"),
    [
        ("api_endpoint", ["web", "ios", "api"], "web", "api"),
        ("api_endpoint", ["lib", "api"], "lib", "api"),
        ("data_model", ["api", "web", "lib"], "api", "lib"),
        ("data_model", ["api", "web"], "web", "api"),
        ("config_spec", ["api", "ops"], "api", "ops"),
        ("event_schema", ["api", "pay", "web"], "pay", "pay"),
        ("event_schema", ["api", "pay", "web"], "web", "api"),
        ("rpc_interface", ["web", "odd"], "web", "odd"),
        ("custom", ["web", "ios"], "ios", "ios"),
        ("custom", ["unknown", "web"], "unknown", "web"),
        ("custom", ["web"], "api", "web"),
    ],
)
def test_the_provider_follows_from_the_roles(
    type: ContractType, parties: list[str], author: str, provider: str
) -> None:
    assert provider_of(type, parties, ROLES, author) == provider


@given(st.permutations(["api", "web", "ios", "lib"]), st.sampled_from(["web", "lib", "nobody"]))
def test_the_order_of_parties_decides_only_among_equals(parties: list[str], author: str) -> None:
    assert provider_of("api_endpoint", parties, ROLES, author) == "api"


def test_what_the_version_says_counts_more_than_the_repos_roles() -> None:
    parties = ["api", "web", "ios"]
    by_default = roles_of("api_endpoint", parties, None, ROLES, "web")
    assert by_default == {"api": "provider", "web": "consumer", "ios": "consumer"}
    frozen = roles_of("api_endpoint", parties, {"web": "provider", "ios": "consumer"}, ROLES, "web")
    assert frozen == {"api": "both", "web": "provider", "ios": "consumer"}


@pytest.mark.parametrize(
    ("named", "roles"),
    [
        ({"api": "provider"}, ["provider", "consumer", "consumer"]),
        ({"web": "both"}, ["consumer", "both", "consumer"]),
        ({"web": "consumer"}, ["provider", "consumer", "consumer"]),
        ({"api": "consumer", "web": "consumer"}, ["consumer", "consumer", "provider"]),
    ],
)
def test_the_rest_of_the_roles_follow_from_those_that_are_named(
    named: dict[str, PartyRole], roles: list[PartyRole]
) -> None:
    parties = ["api", "web", "ios"]
    taken = completed("api_endpoint", parties, named, ROLES, "web")
    assert taken == dict(zip(parties, roles, strict=True))


def test_somebody_must_provide_and_only_parties_have_roles() -> None:
    with pytest.raises(InvalidInput, match="only consumes"):
        completed("custom", ["api"], {"api": "consumer"}, ROLES, "api")
    with pytest.raises(InvalidInput, match="web is no party"):
        completed("custom", ["api"], {"web": "provider"}, ROLES, "api")


ROLE = st.sampled_from(["provider", "consumer", "both"])


@given(st.dictionaries(st.sampled_from(["api", "web", "ios"]), ROLE), st.sampled_from(["api", "x"]))
def test_completed_roles_keep_what_was_named_and_provide(
    named: dict[str, PartyRole], author: str
) -> None:
    try:
        roles = completed("custom", ["api", "web", "ios"], named, ROLES, author)
    except InvalidInput:
        assert set(named.values()) == {"consumer"}
        assert len(named) == 3
    else:
        assert roles.items() >= named.items()
        assert provides(roles.values())
