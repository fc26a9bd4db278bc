"""Facts: their keys and how they travel (design §7, the table)."""

from dataclasses import FrozenInstanceError, replace
from hashlib import sha256
from typing import Any

import orjson
import pytest
from pydantic import TypeAdapter, ValidationError

from schemas.facts import (
    FEW_PARTIES,
    Fact,
    ImplementationFact,
    ResponseFact,
    RoundFact,
    VerificationFact,
    VersionFact,
    json_of,
    members_of,
)

ANY: TypeAdapter[Fact] = TypeAdapter(Fact)
D1 = "d1" * 32
PLACE: dict[str, Any] = {"version": 2, "digest": D1, "stamp": 7}
AUTHOR: dict[str, Any] = {"repo_id": "api", "agent_id": "aid://example.com/api@1.0.0"}
FACTS: list[tuple[Fact, str]] = [
    (
        VersionFact(**PLACE, **AUTHOR, content={"a": 1}, parties=("api",), policy="any"),
        f"2/{D1}/{sha256(b'api'.hex().encode()).hexdigest()}",
    ),
    (ResponseFact(**PLACE, **AUTHOR, action="agree"), f"2/{D1}/api"),
    (RoundFact(**PLACE, number=2), f"2/{D1}"),
    (ImplementationFact(**PLACE, **AUTHOR, round=1, status="complete"), f"2/{D1}/api/1"),
    (VerificationFact(**PLACE, **AUTHOR, round=1, result="partial"), f"2/{D1}/api/1/partial"),
]


@pytest.mark.parametrize(("fact", "key"), FACTS)
def test_the_key_is_that_of_the_table(fact: Fact, key: str) -> None:
    assert fact.key == key


@pytest.mark.parametrize("fact", [fact for fact, _ in FACTS])
def test_a_fact_survives_as_json_and_its_kind_tells_what_it_is(fact: Fact) -> None:
    back = ANY.validate_json(ANY.dump_json(fact))
    assert back == fact
    assert type(back) is type(fact)


@pytest.mark.parametrize("fact", [fact for fact, _ in FACTS])
def test_its_members_are_those_of_its_json(fact: Fact) -> None:
    assert orjson.loads(json_of(fact)) == orjson.loads(orjson.dumps(members_of(fact)))


VERSION = VersionFact(**PLACE, **AUTHOR, content={}, parties=("api", "web"), policy="any")
TERMS = [
    replace(VERSION, verification="receipt"),
    replace(VERSION, roles={"api": "provider", "web": "consumer"}),
    replace(VERSION, verification="receipt", roles={"api": "both", "web": "consumer"}),
]


def test_members_that_earlier_releases_lack_are_absent_where_they_say_nothing() -> None:
    """So that what they have signed keeps its signature, and what says no more reaches them."""
    assert {"verification", "roles"}.isdisjoint(members_of(VERSION))
    work = ImplementationFact(**PLACE, **AUTHOR, round=1, status="complete")
    assert "commit" not in members_of(work)
    assert members_of(replace(work, commit="a" * 40))["commit"] == "a" * 40


@pytest.mark.parametrize("fact", TERMS)
def test_a_version_with_other_terms_replaces_none(fact: VersionFact) -> None:
    assert ANY.validate_json(json_of(fact)) == fact
    assert len({fact.key, *(other.key for other in TERMS), VERSION.key}) == 4


def test_the_order_in_which_roles_are_named_makes_no_other_version() -> None:
    turned = replace(TERMS[1], roles={"web": "consumer", "api": "provider"})
    assert turned.key == TERMS[1].key


@pytest.mark.parametrize("count", [2, FEW_PARTIES, FEW_PARTIES + 1, 200])
def test_a_key_is_that_of_the_set_of_parties(count: int) -> None:
    parties = [f"repo-{number}" for number in range(count)]
    keys = {
        VersionFact(**PLACE, **AUTHOR, content={}, parties=tuple(listed), policy="any").key
        for listed in (parties, parties[::-1], parties + parties[:1], parties + parties)
    }
    assert len(keys) == 1
    others = VersionFact(**PLACE, **AUTHOR, content={}, parties=tuple(parties[1:]), policy="any")
    assert others.key not in keys


def test_a_fact_never_changes() -> None:
    with pytest.raises(FrozenInstanceError):
        FACTS[1][0].stamp = 8  # type: ignore[misc]


@pytest.mark.parametrize(
    ("sent", "where", "kind"),
    [
        ({"kind": "rumour"}, (), "union_tag_invalid"),
        ({}, (), "union_tag_not_found"),
        ({"kind": "round"}, ("round", "number"), "missing"),
        (
            {"kind": "response", **AUTHOR, "action": "shrug"},
            ("response", "action"),
            "literal_error",
        ),
    ],
)
def test_what_is_no_fact_is_refused_where_it_is_wrong(
    sent: dict[str, Any], where: tuple[str, ...], kind: str
) -> None:
    with pytest.raises(ValidationError) as refused:
        ANY.validate_python(PLACE | sent)
    (error,) = refused.value.errors()
    assert (error["loc"], error["type"]) == (where, kind)


@pytest.mark.parametrize(
    ("kind", "member", "value"),
    [
        ("response", "comment", "x" * 20_001),
        ("response", "agent_id", ""),
        ("response", "repo_id", "x" * 201),
        ("response", "digest", "x" * 1_000_000),
        ("implementation", "test_endpoint", "x" * 20_001),
        ("implementation", "notes", "x" * 20_001),
        ("implementation", "files", ["x"] * 1_001),
        ("implementation", "files", ["x" * 4_001]),
        ("verification", "notes", "x" * 20_001),
    ],
)
def test_a_fact_from_outside_keeps_the_limits_of_what_agents_write(
    kind: str, member: str, value: Any
) -> None:
    """Else it is shown to agents in results that are not of the published shape."""
    said: dict[str, dict[str, Any]] = {
        "response": {"action": "agree"},
        "implementation": {"round": 1, "status": "complete"},
    }
    whole = PLACE | AUTHOR | said.get(kind, {"round": 1, "result": "partial"}) | {"kind": kind}
    assert ANY.validate_python(whole)
    with pytest.raises(ValidationError) as refused:
        ANY.validate_python(whole | {member: value})
    assert member in refused.value.errors()[0]["loc"]
