"""The evidence of a package: what is taken, and what hostile packages get."""

from typing import Any

import orjson
import pytest
from jsonschema import Draft202012Validator  # type: ignore[import-untyped]
from pydantic import ValidationError

from schemas.handoff import ACPHandoffPackage, HandoffDraft
from schemas.handoff_evidence import STANDINGS, HandoffCheckParams, HandoffTestEvidence
from schemas.publish import schema_text
from tests.support.in_process_node import package

COMMIT = "a" * 40
RUN: dict[str, Any] = {"command": "make test", "commit": COMMIT, "exit_code": 0}
RECEIPT = {"contract_id": "c", "signature": "A" * 86 + "=="}


def draft(evidence: Any, status: str | None = "passing") -> dict[str, Any]:
    return package(work_state={"test_status": status, "test_evidence": evidence})


def problem(evidence: Any, status: str | None = "passing") -> str:
    """Where the draft is wrong, and how."""
    with pytest.raises(ValidationError) as refused:
        HandoffDraft.model_validate(draft(evidence, status))
    first = refused.value.errors()[0]
    return f"{'.'.join(map(str, first['loc']))}: {first['msg']}"


@pytest.mark.parametrize(
    "evidence",
    [
        {"commands": [RUN]},
        {"receipts": [RECEIPT]},
        {"commands": [RUN | {"output_digest": "b" * 64}] * 20, "receipts": [RECEIPT] * 20},
        {"commands": [RUN | {"commit": "0" * 64, "command": "sh -c 'make a && make b'"}]},
    ],
)
def test_evidence_that_is_taken(evidence: Any) -> None:
    taken = HandoffDraft.model_validate(draft(evidence))
    shown = taken.model_dump(mode="json", exclude_unset=True, exclude_none=True)
    assert shown["work_state"]["test_evidence"] == evidence


@pytest.mark.parametrize(
    ("change", "where"),
    [
        ({"commit": "main"}, "commit"),
        ({"commit": "a" * 39}, "commit"),
        ({"commit": "A" * 40}, "commit"),
        ({"commit": "--upload-pack=touch /tmp/x"}, "commit"),
        ({"commit": COMMIT + "\n"}, "commit"),
        ({"commit": f"{COMMIT}^{{commit}}"}, "commit"),
        ({"command": ""}, "command"),
        ({"command": "  "}, "command"),
        ({"command": "''"}, "command"),
        ({"command": "make\ntest"}, "command"),
        ({"command": "make\ttest"}, "command"),
        ({"command": "make \x1b[2K\rtest"}, "command"),
        ({"command": "make \u202etest"}, "command"),
        ({"command": "make\u200b test"}, "command"),
        ({"command": "make\x00test"}, "command"),
        ({"command": "echo 'unclosed"}, "command"),
        ({"command": "x" * 2_001}, "command"),
        ({"command": "x" * 10_000_000}, "command"),
        ({"command": ["make"]}, "command"),
        ({"exit_code": -1}, "exit_code"),
        ({"exit_code": 256}, "exit_code"),
        ({"exit_code": 2**70}, "exit_code"),
        ({"exit_code": 0.0}, "exit_code"),
        ({"exit_code": True}, "exit_code"),
        ({"exit_code": "0"}, "exit_code"),
        ({"output_digest": "b" * 63}, "output_digest"),
        ({"exitCode": 0}, "exitCode"),
    ],
)
def test_a_command_that_is_none(change: Any, where: str) -> None:
    place = problem({"commands": [RUN, RUN | change]}).partition(": ")[0]
    assert place == f"work_state.test_evidence.commands.1.{where}"


@pytest.mark.parametrize(
    ("evidence", "status", "expected"),
    [
        ({"commands": [RUN, RUN | {"exit_code": 2}]}, "passing", "commands.1.exit_code: is 2, so"),
        ({"commands": [RUN]}, "failing", "is for test_status 'passing', and it is failing"),
        ({"commands": [RUN]}, "untested", "is for test_status 'passing', and it is untested"),
        ({"receipts": [RECEIPT]}, None, "is for test_status 'passing', and it is not given"),
        ({}, "passing", "names no command and no receipt"),
        ({"commands": []}, "passing", "at least 1 item"),
        ({"commands": [RUN] * 21}, "passing", "at most 20 items"),
        ({"receipts": [RECEIPT] * 21}, "passing", "at most 20 items"),
        ({"receipts": [RECEIPT | {"signature": "x"}]}, "passing", "receipts.0.signature"),
        ({"receipts": [RECEIPT], "more": 1}, "passing", "more: Extra inputs"),
        ([RUN], "passing", "test_evidence: Input should be"),
    ],
)
def test_evidence_that_contradicts_or_says_nothing(
    evidence: Any, status: str | None, expected: str
) -> None:
    assert expected in problem(evidence, status)


@pytest.mark.parametrize("status", ["passing", "failing", "untested", None])
def test_packages_of_before_stay_valid(status: str | None) -> None:
    work_state = {} if status is None else {"test_status": status}
    assert HandoffDraft.model_validate(package(work_state=work_state))


def test_the_published_schema_takes_what_the_model_takes() -> None:
    whole = draft({"commands": [RUN], "receipts": [RECEIPT]}) | {
        "protocol": "acp",
        "version": "1.0.0",
        "handoff_id": "01a200d3-c0e1-7539-b1a1-fddaebe9d751",
        "thread_id": "t",
        "verification": {"schema_version": "1.0.0", "package_hash": "0" * 64},
    }
    ACPHandoffPackage.model_validate(whole)
    published = orjson.loads(schema_text("acp.handoff-package.v1.json"))
    assert Draft202012Validator(published).is_valid(whole)
    whole["work_state"]["test_evidence"]["commands"][0]["commit"] = "main"
    assert not Draft202012Validator(published).is_valid(whole)


def test_a_check_names_at_least_one_command() -> None:
    given = {"handoff_id": "01a200d3-c0e1-7539-b1a1-fddaebe9d751", "package_hash": "0" * 64}
    assert HandoffCheckParams.model_validate(given | {"commands": [{}]})
    wrong: Any
    for wrong in ([], [{"exit_code": 256}], [{"detail": ""}], [{}] * 21):
        with pytest.raises(ValidationError):
            HandoffCheckParams.model_validate(given | {"commands": wrong})


def test_every_standing_is_told() -> None:
    assert set(STANDINGS) == {"word", "claimed", "failed", "checked", "proven"}
    assert HandoffTestEvidence.model_validate({"receipts": [RECEIPT]}).commands is None
