"""Receipts of `cacp mock check`: a consumer's requests to a real mock, a real node."""

import json
import os
import time
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any
from uuid import uuid4

import httpx
import pytest

from tests.cli.proving import Bench
from tests.cli.run import cacp
from tests.cli.test_mock import mocking
from tests.proof.provider import CONTRACT
from tests.support.node import REPO, Node
from tests.support.team import FRONTEND, Team

Json = dict[str, Any]


class Consumer(Bench):
    """A consumer's checkout, whose tests call a mock that records them."""

    record: Path

    def called(self, *bodies: Json) -> None:
        """Record requests that make users."""
        words = (self.team.project, "--record", str(self.record))
        folder = self.record.parent / uuid4().hex
        folder.mkdir()
        with mocking(folder, *words, url=self.node.url) as (url, _):
            for body in bodies:
                httpx.post(f"{url}/users", json=body)

    def check(self, *words: str, repo: str = FRONTEND) -> Any:
        given = ["--repo", repo, "--key-file", str(self.key_file), *words]
        return cacp("mock", "check", str(self.record), self.team.project, *given, url=self.node.url)

    def rewrite(self, **members: Any) -> None:
        """Put members into each line of the recording."""
        lines = [json.loads(line) | members for line in self.record.read_text().splitlines()]
        self.record.write_text("".join(json.dumps(line) + "\n" for line in lines))


@pytest.fixture
def consumer(
    node: Node, frontend_key: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> Consumer:
    team = Team.on(node, frontend_key, verificationPolicy="receipt_both")
    bench = Consumer(team, tmp_path, monkeypatch)
    bench.record = tmp_path / "calls.jsonl"
    bench.built(content=CONTRACT)
    return bench


GOOD, BAD = {"email": "ana"}, {"mail": "ana"}


def test_a_recording_that_keeps_the_contract_proves_the_consumer(consumer: Consumer) -> None:
    before = datetime.now(UTC)
    consumer.called(GOOD, GOOD)
    done = consumer.check()
    assert done.exit_code == 0, done.output
    assert "the receipt is recorded, and proves the consumer's side" in done.stderr
    assert f"not proven yet: {REPO} as provider" in done.stderr
    [receipt] = consumer.receipts
    assert (receipt["side"], receipt["target"], receipt["cases"]) == ("consumer", "mock", 2)
    assert (receipt["tool"], receipt["command"]) == (
        "cacp mock check",
        "cacp mock check calls.jsonl",
    )
    first, last = (json.loads(line)["at"] for line in consumer.record.read_text().splitlines())
    started = datetime.fromisoformat(receipt["startedAt"])
    assert started == datetime.fromisoformat(first)
    assert before - timedelta(milliseconds=1) <= started
    span = datetime.fromisoformat(last) - started
    assert receipt["duration"] == span / timedelta(milliseconds=1)


def test_one_that_breaks_it_leaves_a_failure_that_stands(consumer: Consumer) -> None:
    consumer.called(GOOD, BAD)
    done = consumer.check("--json")
    assert done.exit_code == 1
    [made] = json.loads(done.stdout)["receipts"]
    assert (made["receipt"]["outcome"], made["proves"]) == ("unclassified", False)
    assert "not prove the consumer's side" in done.stderr
    assert consumer.status == "implemented"
    # The tests are mended, and recorded anew.
    consumer.record.unlink()
    consumer.called(GOOD)
    assert consumer.check().exit_code == 0
    assert [receipt["outcome"] for receipt in consumer.receipts] == ["passed"]


def failed(consumer: Consumer) -> None:
    """A failed verification, after which both declare the same commit complete again."""
    here = consumer.checkout.git("rev-parse", "HEAD")
    at = {"contractId": consumer.contract}
    consumer.team.backend("implementation/verify", **at, result="failure", notes="It is broken.")
    consumer.team.backend("implementation/complete", **at, files=["a"], commit=here)
    consumer.team.frontend("implementation/complete", **at, files=["b"], commit=here)


def test_a_recording_of_an_earlier_round_proves_nothing(consumer: Consumer) -> None:
    consumer.called(GOOD)
    failed(consumer)
    done = consumer.check()
    assert done.exit_code == 1
    assert "started before frontend-app declared its work complete in round 2" in done.stderr
    assert consumer.receipts == []
    # Nor does one to which exchanges of now were appended.
    consumer.called(GOOD)
    assert "started before" in consumer.check().stderr
    consumer.record.unlink()
    consumer.called(GOOD)
    assert consumer.check().exit_code == 0


def test_where_the_mock_asked_no_node_the_clocks_count(consumer: Consumer, tmp_path: Path) -> None:
    contract = tmp_path / "users.json"
    contract.write_text(json.dumps(CONTRACT))
    with mocking(tmp_path, "--file", str(contract), "--record", str(consumer.record)) as (url, _):
        httpx.post(f"{url}/users", json=GOOD)
    assert consumer.check().exit_code == 0
    failed(consumer)
    done = consumer.check()
    assert done.exit_code == 1
    assert "by this machine's clock, and frontend-app declared its work complete" in done.stderr


def test_a_recording_without_a_success_proves_nothing(consumer: Consumer) -> None:
    with mocking(
        consumer.record.parent, consumer.team.project, "--record", str(consumer.record),
        url=consumer.node.url,
    ) as (url, _):  # fmt: skip
        httpx.get(f"{url}/users/7", headers={"Prefer": "code=404"})
    done = consumer.check()
    assert done.exit_code == 4
    assert "no receipt is made: No recorded request to" in done.stderr
    assert consumer.receipts == []


def test_a_recording_of_before_the_commit_proves_nothing(consumer: Consumer) -> None:
    """The commit may be seconds old, so the node's tolerance of clocks would let it through."""
    consumer.called(GOOD)
    second = int(consumer.checkout.git("show", "-s", "--format=%ct"))
    consumer.rewrite(at=datetime.fromtimestamp(second - 1, UTC).isoformat())
    done = consumer.check()
    assert done.exit_code == 1
    assert "no receipt is made: its first request is of" in done.stderr
    assert "recording into a new file" in done.stderr
    assert consumer.receipts == []


def test_a_recording_of_before_the_completion_is_early(
    consumer: Consumer, monkeypatch: pytest.MonkeyPatch
) -> None:
    """An old commit, recorded when it was new, and declared complete today."""
    old = int(time.time()) - 86_400
    monkeypatch.setenv("GIT_COMMITTER_DATE", f"@{old} +0000")
    consumer.built(consumer.checkout.commit(code_txt="older"), content=CONTRACT)
    consumer.called(GOOD)
    consumer.rewrite(at=datetime.fromtimestamp(old + 60, UTC).isoformat())
    done = consumer.check("--json")
    made = json.loads(done.stdout)["receipts"]
    assert {each.get("reason") for each in made} == {None, "receipt_early"}
    assert consumer.receipts == []


def test_answers_of_an_earlier_version_prove_nothing(consumer: Consumer) -> None:
    consumer.called(GOOD)
    consumer.rewrite(contract={"digest": "f" * 64})
    done = consumer.check()
    assert done.exit_code == 1
    assert "the mock answered by other content than is agreed now" in done.stderr
    assert consumer.receipts == []


def test_only_a_consumer_is_proven_by_a_recording(consumer: Consumer) -> None:
    consumer.called(GOOD)
    done = consumer.check("--json", repo=REPO)
    assert done.exit_code == 1
    [made] = json.loads(done.stdout)["receipts"]
    assert made["status"] == "not_made"
    assert "the provider of the contract, and not the consumer" in made["problem"]
    assert consumer.receipts == []


def test_a_dirty_tree_or_another_commit_proves_nothing(consumer: Consumer) -> None:
    consumer.called(GOOD)
    consumer.checkout.write("left.txt", "x")
    assert "the working tree has changes" in consumer.check().stderr
    consumer.checkout.commit()
    done = consumer.check()
    assert (done.exit_code, "has declared commit" in done.stderr) == (1, True)
    assert consumer.receipts == []


def test_a_receipt_is_of_a_nodes_contract(consumer: Consumer, tmp_path: Path) -> None:
    given = ["mock", "check", os.devnull, "--file", os.devnull]
    done = cacp(*given, "--key-file", str(consumer.key_file))
    assert (done.exit_code, "leave out --file, or the runner's key" in done.stderr) == (2, True)
