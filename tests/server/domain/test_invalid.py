"""What a model finds wrong, as a refusal."""

from typing import Any

import pytest
from pydantic import ValidationError

from schemas.acp import ACPParams
from schemas.acp_calls import ChannelsParams, SendParams
from schemas.handoff import HandoffParams
from schemas.sync import ContractSyncParams, ProjectSyncParams
from schemas.teamspace import TeamParams
from server.domain.errors import InvalidInput
from server.domain.invalid import invalid_input


def refusal(given: object, **how: Any) -> InvalidInput:
    with pytest.raises(ValidationError) as error:
        SendParams.model_validate(given)
    return invalid_input(error.value, **how)


GOOD = {"to": ["a"], "type": "knowledge.push", "payload": {"summary": "s"}}


def test_every_place_is_named_and_no_value() -> None:
    found = refusal({**GOOD, "to": [], "other": "secret"}, within="params")
    assert found.data["reason"] == "invalid_params"
    assert {one["path"] for one in found.data["errors"]} == {"params.to", "params.other"}
    assert "secret" not in found.message


def test_what_an_object_takes_is_named_to_who_gives_something_else() -> None:
    assert refusal({**GOOD, "text": "t"}, model=SendParams).message.startswith(
        "text is not a param of this method. It takes to (required), type (required), "
        "payload (required), protocol, "
    )
    reference = {"value": "v", "who": "me"}
    message = refusal({**GOOD, "context": {"external_refs": [reference]}}, model=SendParams).message
    assert message.endswith(
        "context.external_refs.0 takes type (required), value (required), description, version"
    )
    assert "takes" not in refusal({**GOOD, "to": 1}, model=SendParams).message


def test_what_an_empty_method_takes() -> None:
    with pytest.raises(ValidationError) as error:
        ChannelsParams.model_validate({"a": 1})
    message = invalid_input(error.value, model=ChannelsParams).message
    assert message == "a is not a param of this method. It takes no params"


def test_the_errors_of_our_own_models_are_the_reason() -> None:
    """acp-canonical §12.2: typed error codes."""
    assert refusal({**GOOD, "from": "me"}).data["reason"] == "sender_supplied"
    assert refusal({**GOOD, "type": "task.offer"}).data["reason"] == "type_reserved"
    assert refusal({**GOOD, "version": "2.0.0"}).data["reason"] == "unsupported_version"


def test_a_caller_may_name_the_reason() -> None:
    assert refusal({**GOOD, "to": 1}, reason="schema_invalid").data["reason"] == "schema_invalid"


@pytest.mark.parametrize(
    ("params", "given", "problem"),
    [
        (HandoffParams, {"action": "get", "handoff_id": "x"}, "should be a UUIDv7 in lower case"),
        (TeamParams, {"action": "get", "team": "../x"}, "should be 1 to 64 lower-case letters"),
    ],
)
def test_a_pattern_is_told_in_words(
    params: type[ACPParams], given: dict[str, str], problem: str
) -> None:
    with pytest.raises(ValidationError) as error:
        params.model_validate(given)
    assert invalid_input(error.value).data["errors"][0]["problem"].startswith(problem)


def test_what_is_wrong_in_many_ways_is_named_at_the_first() -> None:
    """A register may have thousands of claims, each with thousands of members that are none."""
    claim = {"signature": {str(number): number for number in range(50)}}
    repo = {"claims": [claim] * 50}
    given = {"registers": {"repos": [repo] * 50}, "project": {}, "facts": [claim] * 50}
    for params in (ProjectSyncParams, ContractSyncParams):
        with pytest.raises(ValidationError) as error:
            params.model_validate(given)
        assert error.value.error_count() < 100
    found = invalid_input(error.value).data["errors"]
    assert len(found) <= 20


def test_an_error_of_the_whole_params_is_a_sentence() -> None:
    with pytest.raises(ValidationError) as error:
        HandoffParams.model_validate({"action": "accept"})
    assert invalid_input(error.value).message == "handoff_id is required for action 'accept'"


def test_a_digest_is_described_in_words() -> None:
    given = {"action": "accept", "handoff_id": "x", "package_hash": "ABC"}
    with pytest.raises(ValidationError) as error:
        HandoffParams.model_validate(given)
    assert "package_hash should be 64 lower-case hex digits" in invalid_input(error.value).message
