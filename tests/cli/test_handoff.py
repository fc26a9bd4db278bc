"""`cacp handoff`: real packages of a real node, in real checkouts."""

import json
import os
import pty
import subprocess
import sys
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path
from typing import Any

import orjson
import pytest

from cli.agreements import NOT_RUN
from cli.terminal import REFUSED, UNREACHABLE, USAGE
from tests.cli.run import ROOT, cacp, environment_of
from tests.proof.checkout import Checkout
from tests.support.in_process_node import package
from tests.support.located import connect
from tests.support.mail_agent import MailAgent, agent
from tests.support.node import Node, RpcError

PASSES = f"{sys.executable} test.py"
FAILS = f"{sys.executable} -c 'raise SystemExit(3)'"


@pytest.fixture(scope="module")
def strict(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Node]:
    """A node that asks for evidence."""
    folder = tmp_path_factory.mktemp("strict")
    with Node(folder, handoff_evidence="checked", unlimited_senders=True) as node:
        yield node


class Desk:
    """Ben's checkout, and what Ana hands over to Ben."""

    def __init__(self, node: Node, folder: Path) -> None:
        self.node = node
        self.ana, self.ben = agent(node, "ana"), agent(node, "ben")
        self.checkout = Checkout(folder / "api")
        self.commit = self.checkout.commit(test_py="print('tests pass')")
        self.handoff = ""

    def offered(self, *commands: str, status: str = "passing", **evidence: Any) -> str:
        runs = [{"command": each, "commit": self.commit, "exit_code": 0} for each in commands]
        given = evidence | ({"commands": runs} if runs else {})
        work_state = {"test_status": status} | ({"test_evidence": given} if given else {})
        whole = package(self.ana.address, work_state=work_state)
        offer = {"action": "initiate", "to": self.ben.id, "reason": "r", "package": whole}
        self.handoff = str(self.ana.call("handoff", **offer)["handoff"]["handoffId"])
        return self.handoff

    def run(self, *words: str, by: MailAgent | None = None, url: str = "") -> Any:
        key = (by or self.ben).key
        typed = ("handoff", words[0], self.handoff, *words[1:])
        return cacp(*typed, url=url or self.node.url, key=key)

    def check(self, *words: str, **how: Any) -> Any:
        return self.run("check", "--yes", *words, **how)

    @property
    def standing(self) -> str:
        shown = self.ben.call("handoff", action="get", handoff_id=self.handoff)
        return str(shown["evidence"]["standing"])

    def accept(self) -> str:
        """The status then, or the reason of the refusal."""
        try:
            taken = self.ben.call("handoff", action="accept", handoff_id=self.handoff)
        except RpcError as refused:
            return str(refused.reason)
        return str(taken["handoff"]["status"])


@pytest.fixture
def desk(strict: Node, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Desk:
    desk = Desk(strict, tmp_path)
    monkeypatch.chdir(desk.checkout.folder)
    return desk


def test_a_check_that_holds_lets_it_be_accepted(desk: Desk) -> None:
    desk.offered(PASSES)
    assert desk.accept() == "evidence_unchecked"
    done = desk.check()
    assert done.exit_code == 0, done.stderr
    assert done.stdout == f"{PASSES} at {desk.commit[:12]}: passed here\n"
    assert f"{desk.ana.address} says that tests pass, by these commands:" in done.stderr
    assert f"    at {desk.commit}\n" in done.stderr
    assert "cacp: running 1 of 1: " in done.stderr
    assert desk.standing == "checked"
    assert desk.accept() == "accepted"


def test_a_check_that_does_not_hold_is_recorded(desk: Desk) -> None:
    desk.offered(PASSES, FAILS)
    done = desk.check()
    assert done.exit_code == REFUSED
    assert "FAILED here, with 3" in done.stdout
    assert desk.standing == "failed"
    assert desk.accept() == "evidence_failed"


def test_what_a_failed_command_printed_is_shown_safely(desk: Desk) -> None:
    desk.commit = desk.checkout.commit(
        test_py="print('\\x1b[2Jbad \\u202enews'); raise SystemExit(1)"
    )
    desk.offered(PASSES)
    done = desk.check()
    assert done.stdout.endswith("\n  | bad news\n")


def test_a_commit_that_is_not_here_could_not_be_tried(desk: Desk) -> None:
    desk.commit = "0" * 40
    desk.offered(PASSES)
    done = desk.check()
    assert done.exit_code == NOT_RUN
    assert "could not be tried here: commit 000000000000 is not in this repository" in done.stdout
    assert "which this repository lacks" in done.stderr
    assert desk.standing == "claimed"
    assert desk.accept() == "evidence_unchecked"


def test_outside_of_a_checkout_nothing_is_run(
    desk: Desk, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    desk.offered(PASSES)
    monkeypatch.chdir(tmp_path)
    done = desk.check()
    assert done.exit_code == NOT_RUN
    assert "go into a checkout of the repository" in done.stderr
    assert desk.standing == "claimed"


def test_it_runs_from_the_top_and_leaves_the_working_tree_alone(
    desk: Desk, monkeypatch: pytest.MonkeyPatch
) -> None:
    desk.offered(PASSES)
    desk.checkout.write("test.py", "raise SystemExit(1)")
    desk.checkout.write("inside/file", "")
    monkeypatch.chdir(desk.checkout.folder / "inside")
    assert desk.check().exit_code == 0
    assert desk.checkout.git("status", "--porcelain").splitlines() == ["M test.py", "?? inside/"]


def test_nothing_is_run_unasked(desk: Desk, tmp_path: Path) -> None:
    mark = tmp_path / "ran"
    desk.offered(f"touch {mark}")
    done = desk.run("check")
    assert done.exit_code == USAGE
    assert "another agent wrote them: give --yes where nobody can be asked" in done.stderr
    for answer, status, ran in ((b"n\n", REFUSED, False), (b"y\n", 0, True)):
        assert on_terminal(desk, answer) == status
        assert mark.exists() == ran


def on_terminal(desk: Desk, answer: bytes) -> int:
    """The exit status of a check where somebody answers."""
    controller, terminal = pty.openpty()
    words = [sys.executable, "-m", "cli.main", "handoff", "check", desk.handoff]
    environment = environment_of(url=desk.node.url, key=desk.ben.key) | {"PYTHONPATH": str(ROOT)}
    with subprocess.Popen(
        words,
        env=environment,
        stdin=terminal,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
    ) as running:
        os.write(controller, answer)
        errors = running.communicate(timeout=60)[1].decode()
    os.close(controller)
    os.close(terminal)
    assert "Run them on this machine, with your rights?" in errors
    return running.returncode


def test_in_json(desk: Desk) -> None:
    runs = {"command": PASSES, "commit": desk.commit, "exit_code": 0, "output_digest": "b" * 64}
    desk.offered(commands=[runs])
    done = desk.check("--json")
    assert done.exit_code == 0
    assert json.loads(done.stdout) == {
        "handoffId": desk.handoff,
        "recorded": True,
        "commands": [
            {
                "command": PASSES,
                "commit": desk.commit,
                "outcome": "held",
                "exitCode": 0,
                "sameOutput": False,
            }
        ],
        "receipts": [],
    }
    shown = json.loads(desk.run("show", "--json").stdout)
    assert shown["evidence"]["standing"] == "checked"


def test_a_receipt_is_looked_up_at_the_node(desk: Desk) -> None:
    desk.offered(receipts=[{"contract_id": "c", "signature": "A" * 86 + "=="}])
    done = desk.check()
    assert done.exit_code == NOT_RUN
    assert done.stdout == (
        "receipt of c: not known to this node (this node does not know the contract)\n"
    )
    assert "PROVES NOTHING" not in desk.run("show").stdout


def test_word_can_not_be_checked_and_who_claims_nothing_needs_no_check(desk: Desk) -> None:
    desk.offered()
    done = desk.check()
    assert done.exit_code == NOT_RUN
    assert "has no evidence: it is its sender's word" in done.stderr
    shown = desk.run("show")
    assert "tests pass: word of its sender, without evidence" in shown.stdout
    assert "It can't be accepted yet" in shown.stdout
    desk.ben.call("handoff", action="reject", handoff_id=desk.handoff, code="other", detail="d")
    desk.offered(status="untested")
    done = desk.check()
    assert (done.exit_code, done.stdout) == (
        0,
        "The package does not say that tests pass: there is nothing to check.\n",
    )
    assert "tests: untested" in desk.run("show").stdout
    assert desk.accept() == "accepted"


def test_its_sender_can_not_check_for_its_receiver(desk: Desk) -> None:
    desk.offered(PASSES)
    done = desk.check(by=desk.ana)
    assert done.exit_code == REFUSED
    assert "passed here" in done.stdout
    assert "the check is not recorded: Only its receiver" in done.stderr
    assert desk.standing == "claimed"


def test_after_the_acceptance_it_runs_and_records_nothing(desk: Desk) -> None:
    desk.offered(PASSES)
    desk.check()
    assert desk.accept() == "accepted"
    done = desk.check("--json")
    assert (done.exit_code, json.loads(done.stdout)["recorded"]) == (0, False)


def test_a_package_that_was_edited_after_it_was_sent_is_not_run(desk: Desk, tmp_path: Path) -> None:
    mark = tmp_path / "ran"
    desk.offered(PASSES)
    with closing(connect(desk.node.db)) as db:
        db.execute("BEGIN IMMEDIATE")
        db.execute(
            "UPDATE handoffs SET package_json = replace(package_json, ?, ?) WHERE id = ?",
            (orjson.dumps(PASSES).decode(), orjson.dumps(f"touch {mark}").decode(), desk.handoff),
        )
        db.execute("COMMIT")
    done = desk.check()
    assert done.exit_code == REFUSED
    assert "nothing was run: the package was changed after it was sent" in done.stderr
    assert not mark.exists()


def test_wrong_usage_and_no_node(desk: Desk) -> None:
    desk.offered(PASSES)
    assert desk.check("--prepare", "echo 'unclosed").exit_code == USAGE
    assert desk.check("--time-limit", "0").exit_code == USAGE
    assert desk.check(url="http://127.0.0.1:9").exit_code == UNREACHABLE
    desk.handoff = "01a200d3-c0e1-7539-b1a1-fddaebe9d751"
    done = desk.check()
    assert done.exit_code == REFUSED
    assert "There is no handoff" in done.stderr


def test_a_command_that_does_not_end_was_not_tried(desk: Desk) -> None:
    desk.offered("sleep 600")
    done = desk.check("--time-limit", "0.5")
    assert done.exit_code == NOT_RUN
    assert "could not be tried here: it did not end within 0.5 s" in done.stdout
