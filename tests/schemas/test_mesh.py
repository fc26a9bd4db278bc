"""What mesh nodes say to each other (design §6, §7)."""

import pytest
from pydantic import ValidationError

from schemas.mesh import DigestParams, Hello, PullParams, SignedFact

INTRODUCTION = {
    "agentId": "aid://example.com/alpha@1.0.0",
    "endpoint": "http://alpha.example",
    "repoName": "alpha",
    "publicKey": "x",
    "nonce": "0" * 64,
}


def test_a_hello_says_who_and_which_secret() -> None:
    hello = Hello.model_validate({"introduction": INTRODUCTION, "secretId": "inv_1"})
    assert hello.introduction.repo_name == "alpha"


@pytest.mark.parametrize("wrong", [{"nonce": "xyz"}, {"nonce": ""}, {"agentId": ""}, {"more": 1}])
def test_an_introduction_is_checked(wrong: dict[str, object]) -> None:
    with pytest.raises(ValidationError):
        Hello.model_validate({"introduction": INTRODUCTION | wrong, "secretId": "inv_1"})


@pytest.mark.parametrize("prefixes", [[], ["abcd"], ["x"], [""] * 257])
def test_prefixes_are_up_to_three_hex_digits(prefixes: list[str]) -> None:
    with pytest.raises(ValidationError):
        DigestParams.model_validate({"source_agent": "a", "prefixes": prefixes})


def test_a_pull_names_kinds_that_are_synchronised() -> None:
    wanted = {"entity": "keys", "project_id": "p", "entity_id": "e"}
    with pytest.raises(ValidationError):
        PullParams.model_validate({"source_agent": "a", "entities": [wanted]})


def test_a_fact_comes_with_its_signature() -> None:
    fact = {"kind": "round", "version": 1, "digest": "ab" * 32, "stamp": 1, "number": 2}
    with pytest.raises(ValidationError):
        SignedFact.model_validate({"fact": fact})
    signed = {"fact": fact, "signature": {"node": "n", "value": "v"}}
    assert SignedFact.model_validate(signed).fact.kind == "round"
