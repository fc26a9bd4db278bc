"""Receipts of commands and of probes."""

from dataclasses import replace

import pytest

from peers.receipts import is_signed
from proof.command import EndedCommand
from proof.probe_outcome import OperationTally, ProbeFailure, ProbeOutcome
from proof.receipts import outcome_of, receipt_of_command, receipt_of_probe
from proof.runner_key import RunnerKeys
from tests.proof.test_subject import COMMIT, OTHER, SUBJECT, TREE

KEYS = RunnerKeys.new("aid://example.com/ci@1.0.0", "", "cacp_sk_live_x")
AT = "2026-03-01T10:00:00.000000+00:00"
PASSED = EndedCommand(0, "e" * 64, AT, 1_200)
FAILED = replace(PASSED, exit_code=1)
MISSING = replace(PASSED, exit_code=127)
KILLED = replace(PASSED, exit_code=137)
PROBE = ProbeOutcome(
    tool="probe",
    contract_digest=SUBJECT.digest,
    seed=7,
    tallies=(OperationTally("GET /profile", 90, 10, 90),),
    failures=(),
    unproven=(),
    started_at=AT,
    duration=900,
)


@pytest.mark.parametrize(
    ("run", "at_base", "outcome"),
    [
        (PASSED, None, "passed"),
        (FAILED, PASSED, "regression"),
        (FAILED, FAILED, "inherited_failure"),
        (FAILED, replace(FAILED, exit_code=2), "inherited_failure"),
        (FAILED, None, "unclassified"),
        (FAILED, MISSING, "unclassified"),
        (FAILED, KILLED, "unclassified"),
        (MISSING, None, "missing_capability"),
        (replace(MISSING, exit_code=126), None, "missing_capability"),
        (KILLED, None, "unclassified"),
    ],
)
def test_what_a_run_means(run: EndedCommand, at_base: EndedCommand | None, outcome: str) -> None:
    assert outcome_of(run, at_base) == outcome


def test_the_receipt_of_a_command() -> None:
    command = ["sh", "-c", "make 'it all'"]
    receipt = receipt_of_command(SUBJECT, TREE, KEYS, command, PASSED)
    assert is_signed(receipt)
    assert receipt.body() == {
        "contractId": SUBJECT.contract_id,
        "version": 2,
        "digest": SUBJECT.digest,
        "round": 3,
        "repo": "r1",
        "side": "provider",
        "commit": COMMIT,
        "tree": TREE.tree,
        "dirty": False,
        "tool": "verify",
        "command": """sh -c 'make '"'"'it all'"'"''""",
        "exitCode": 0,
        "outcome": "passed",
        "outputDigest": "e" * 64,
        "startedAt": AT,
        "duration": 1_200,
        "runner": KEYS.agent_id,
    }


def test_the_base_is_named_only_where_it_decided() -> None:
    failed = receipt_of_command(SUBJECT, TREE, KEYS, ["x"], FAILED, at_base=PASSED, base=OTHER)
    assert (failed.base, failed.outcome) == (OTHER, "regression")
    alone = receipt_of_command(SUBJECT, TREE, KEYS, ["x"], FAILED, base=OTHER)
    assert (alone.base, alone.outcome) == (None, "unclassified")


def test_a_tree_that_changed_is_dirty() -> None:
    changed = replace(TREE, changes=("a.py",))
    assert receipt_of_command(SUBJECT, changed, KEYS, ["x"], PASSED).dirty
    assert receipt_of_command(SUBJECT, TREE, KEYS, ["x"], PASSED, is_dirty=True).dirty


def test_the_receipt_of_a_probe() -> None:
    receipt = receipt_of_probe(SUBJECT, TREE, KEYS, PROBE, "cacp probe")
    assert is_signed(receipt)
    assert (receipt.tool, receipt.seed, receipt.cases, receipt.target) == ("probe", 7, 100, None)
    assert (receipt.outcome, receipt.exit_code, receipt.command) == ("passed", 0, "cacp probe")
    assert receipt.output_digest == PROBE.output_digest


@pytest.mark.parametrize(
    ("probe", "outcome", "code"),
    [
        (replace(PROBE, failures=(ProbeFailure("GET /", "status", "500"),)), "unclassified", 1),
        (replace(PROBE, unproven=("no host",)), "missing_capability", 4),
        (replace(PROBE, tallies=()), "missing_capability", 4),
    ],
)
def test_a_probe_that_proves_nothing(probe: ProbeOutcome, outcome: str, code: int) -> None:
    receipt = receipt_of_probe(SUBJECT, TREE, KEYS, probe)
    assert (receipt.outcome, receipt.exit_code) == (outcome, code)


def test_a_probe_during_which_the_commit_changed_is_dirty() -> None:
    assert receipt_of_probe(SUBJECT, TREE, KEYS, PROBE, is_dirty=True).dirty
    assert len(receipt_of_probe(SUBJECT, TREE, KEYS, PROBE, "x" * 30_000).command or "") == 20_000


def test_a_probe_of_a_mock_says_so_and_one_of_other_content_has_no_receipt() -> None:
    assert receipt_of_probe(SUBJECT, TREE, KEYS, replace(PROBE, target="mock")).target == "mock"
    with pytest.raises(ValueError, match="held against the content ffffffffffff"):
        receipt_of_probe(SUBJECT, TREE, KEYS, replace(PROBE, contract_digest="f" * 64))
