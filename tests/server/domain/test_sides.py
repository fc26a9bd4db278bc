"""Who provides a contract, from the repos' roles."""

import doctest

import pytest
from hypothesis import given
from hypothesis import strategies as st

from schemas.contract import ContractType
from server.domain import sides
from server.domain.sides import provider_of

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
