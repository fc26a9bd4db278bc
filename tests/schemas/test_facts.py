"""Facts: their keys and how they travel (design §6, the table)."""

from dataclasses import FrozenInstanceError
from typing import Any

import pytest
from pydantic import TypeAdapter, ValidationError

from schemas.facts import (
    Fact,
    ImplementationFact,
    ResponseFact,
    RoundFact,
    VerificationFact,
    VersionFact,
)

ANY: TypeAdapter[Fact] = TypeAdapter(Fact)
PLACE: dict[str, Any] = {"version": 2, "digest": "d1", "stamp": 7}
AUTHOR: dict[str, Any] = {"repo_id": "api", "agent_id": "aid://example.com/api@1.0.0"}
FACTS: list[tuple[Fact, str]] = [
    (
        VersionFact(**PLACE, **AUTHOR, content={"a": 1}, parties=("api",), policy="any"),
        "2/d1",
    ),
    (ResponseFact(**PLACE, **AUTHOR, action="agree"), "2/d1/api"),
    (RoundFact(**PLACE, number=2), "2/d1"),
    (ImplementationFact(**PLACE, **AUTHOR, round=1, status="complete"), "2/d1/api/1"),
    (VerificationFact(**PLACE, **AUTHOR, round=1, result="partial"), "2/d1/api/1/partial"),
]


@pytest.mark.parametrize(("fact", "key"), FACTS)
def test_the_key_is_that_of_the_table(fact: Fact, key: str) -> None:
    assert fact.key == key


@pytest.mark.parametrize("fact", [fact for fact, _ in FACTS])
def test_a_fact_survives_as_json_and_its_kind_tells_what_it_is(fact: Fact) -> None:
    back = ANY.validate_json(ANY.dump_json(fact))
    assert back == fact
    assert type(back) is type(fact)


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
