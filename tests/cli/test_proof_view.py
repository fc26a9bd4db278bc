"""How the receipts of a contract look in a terminal."""

from typing import Any

from rich.console import Console

from cli.proof_view import proof_lines

Json = dict[str, Any]
NAMES = {"r1": "backend-api"}


def drawn(proof: Json | None) -> str:
    console = Console(width=200, record=True)
    for line in proof_lines(proof, NAMES):
        console.print(line)
    return console.export_text()


def proof(*receipts: Json, policy: str = "receipt", **more: Any) -> Json:
    return {"verificationPolicy": policy, "receipts": list(receipts), "unproven": []} | more


def listed(**more: Any) -> Json:
    ran = {
        "repo": "r1",
        "side": "provider",
        "command": "make test",
        "tool": "verify",
        "commit": "a" * 40,
        "runner": "aid://example.com/ci@1.0.0",
        "outcome": "passed",
    }
    at = "2026-03-01T10:00:00.000000+00:00"
    return {"receipt": ran, "recordedAt": at, "proves": True} | more


def test_nothing_is_told_where_a_word_verifies_and_there_is_no_receipt() -> None:
    assert drawn(None) == drawn(proof(policy="word")) == ""


def test_each_receipt_says_what_it_proves_and_by_whom() -> None:
    text = drawn(proof(listed()))
    assert "Verified by a runner's receipt for each provider." in text
    assert "backend-api as provider: passed  make test at aaaaaaaaaaaa" in text
    assert "by runner aid://example.com/ci@1.0.0" in text
    assert "proves nothing" not in text


def test_one_that_proves_nothing_says_why() -> None:
    text = drawn(proof(listed(proves=False, problem="it is of round 1"), policy="word"))
    assert "passed, proves nothing" in text
    assert ": it is of round 1" in text


def test_what_lacks_a_receipt_is_told() -> None:
    lacking = [{"repoId": "r1", "side": "provider"}, {"repoId": "r2", "side": "consumer"}]
    text = drawn(proof(unproven=lacking))
    assert "backend-api as provider: no receipt proves it" in text
    assert "r2 as consumer: no receipt proves it" in text


def test_a_failure_that_stands_against_a_side_is_told_with_what_ends_it() -> None:
    failure = {"command": "make\ntest", "commit": "a" * 40, "runner": "aid://example.com/ci@1.0.0"}
    text = drawn(proof(unproven=[{"repoId": "r1", "side": "provider", "failure": failure}]))
    assert "a failure stands against it: make test at aaaaaaaaaaaa, by runner" in text
    assert "run the same again until it passes, or declare another commit complete" in text


def test_what_comes_from_outside_keeps_its_line() -> None:
    ran = listed()["receipt"] | {"command": "true\n\x1b[2Jfalse", "runner": "a\nb"}
    assert drawn(proof(listed(receipt=ran))).count("\n") == 2
