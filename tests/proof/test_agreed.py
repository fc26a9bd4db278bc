from typing import Any

from contracts.model import Located
from proof.agreed import AgreedContract, examples_beside, unsound_examples


def document(content: dict[str, Any]) -> dict[str, Any]:
    response = {"description": "", "content": {"application/json": content}}
    return {"openapi": "3.1.0", "paths": {"/a": {"get": {"responses": {"200": response}}}}}


def test_a_contract_has_its_endpoints_and_its_digest() -> None:
    contract = AgreedContract("Get\x1b[31m a", document({"schema": {}}), version=3)
    assert [check.key for check in contract.operations] == ["GET /a"]
    assert len(contract.digest) == 64
    assert contract.title == "Get a (version 3)"
    assert contract.doubts() == []


def test_what_could_not_be_read_is_said() -> None:
    contract = AgreedContract("A", {"method": "GET", "path": "/a", "response": {"a": "words"}})
    (doubt,) = contract.doubts()
    assert doubt.startswith('response/a: "words" names no type')


def test_examples_stand_beside_a_schema() -> None:
    content = {
        "schema": {"type": "integer"},
        "example": 1,
        "examples": {
            "two": {"value": 2},
            "none": {"externalValue": "http://x"},
            "bad": {"value": "x"},
        },
    }
    contract = AgreedContract("A", document(content))
    (check,) = contract.operations
    schema = check.responses["200"].bodies["application/json"].located
    assert examples_beside(contract.interface, schema) == {"example": 1, "two": 2, "bad": "x"}
    (line,) = unsound_examples(contract)
    assert line == (
        "the example bad at paths//a/get/responses/200/content/application/json doesn't fit"
    )


def test_elsewhere_there_are_no_examples() -> None:
    contract = AgreedContract("A", {"response": {"example": "string"}, "path": "/a"})
    for path in ((), ("response",), ("schema",), ("no", "schema"), ("path", 0, "schema")):
        assert examples_beside(contract.interface, Located({}, path)) == {}
