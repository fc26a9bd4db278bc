import json
from typing import Any

import pytest

from cli.pull_lock import PullLock, digest_of, lock_of, lock_text

DIGEST = "a" * 64
LOCK: dict[str, Any] = {
    "lockVersion": 1,
    "project": {"id": "01", "name": "Coupons \u202e"},
    "repo": "web-app",
    "types": ["python"],
    "contracts": [
        {
            "id": "02",
            "name": "Get profile",
            "version": 2,
            "digest": DIGEST,
            "dialect": "endpoint",
            "files": {".cacp/contracts/get-profile.json": DIGEST},
            "types": {"python": {"generator": "g@1", "input": DIGEST}},
        }
    ],
}


def test_a_lock_is_written_as_it_is_read() -> None:
    lock = lock_of(json.dumps(LOCK))
    text = lock_text(lock)
    assert json.loads(text) == LOCK
    assert text.isascii()
    assert lock_text(lock_of(text)) == text
    assert lock.known() == {".cacp/contracts/get-profile.json": {DIGEST}}


def test_what_files_were_before_an_interrupted_pull_is_known() -> None:
    before = {".cacp/contracts/a.json": ["b" * 64], ".cacp/contracts/get-profile.json": ["c" * 64]}
    lock = lock_of(json.dumps(LOCK | {"before": before}))
    assert lock.known() == {
        ".cacp/contracts/a.json": {"b" * 64},
        ".cacp/contracts/get-profile.json": {DIGEST, "c" * 64},
    }


@pytest.mark.parametrize(
    "path",
    [
        "/etc/passwd",
        "README.md",
        ".cacp/contracts.lock",
        ".cacp/contracts/../../README.md",
        ".cacp/contracts/..",
        ".cacp/contracts//a.json",
        ".cacp/contracts/a\n.json",
        ".cacp/contracts/a.json\n",
        ".cacp/contracts/" + "a" * 300,
        ".cacp/python/other/a.py",
        ".cacp/typescript/.git/hooks",
    ],
)
def test_a_lock_names_no_files_but_those_of_a_pull(path: str) -> None:
    contract = LOCK["contracts"][0] | {"files": {path: DIGEST}}
    for value in (LOCK | {"contracts": [contract]}, LOCK | {"before": {path: [DIGEST]}}):
        with pytest.raises(ValueError, match=r"should match pattern|at most"):
            lock_of(json.dumps(value))


@pytest.mark.parametrize(
    ("text", "why"),
    [
        ("<<<<<<< HEAD\n{}", "it is not JSON; of a merge conflict in it, take either side"),
        ("[]", "it: Input should be a valid dictionary"),
        ("{}", "lockVersion: Field required"),
        (json.dumps(LOCK | {"lockVersion": 2}), "lockVersion: Input should be 1"),
        (json.dumps(LOCK | {"more": 1}), "more: Extra inputs are not permitted"),
        ("[" * 100_000, "it is not JSON"),
    ],
)
def test_what_is_no_lock_is_refused(text: str, why: str) -> None:
    with pytest.raises(ValueError, match=why):
        lock_of(text)


def test_line_ends_count_alike() -> None:
    assert digest_of("a\r\nb\n") == digest_of("a\nb\n") != digest_of("a\nb")
    assert PullLock.model_validate(LOCK).files() == {".cacp/contracts/get-profile.json": DIGEST}
