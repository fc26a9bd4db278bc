"""Commands of others, run again: real repositories, real commands."""

import sys
from pathlib import Path

import pytest

from proof.evidence import EvidenceRun, run_again
from proof.git_tree import GitTree
from schemas.handoff_evidence import HandoffCommandEvidence
from tests.proof.checkout import Checkout

TEST = f"{sys.executable} test.py"


@pytest.fixture
def checkout(tmp_path: Path) -> Checkout:
    return Checkout(tmp_path / "api")


def again(
    checkout: Checkout,
    commit: str,
    command: str = TEST,
    *,
    time_limit: float = 60,
    prepare: str = "",
) -> EvidenceRun:
    claimed = HandoffCommandEvidence(command=command, commit=commit, exit_code=0)
    tree = GitTree.at(checkout.folder)
    return run_again(tree, claimed, time_limit=time_limit, prepare=prepare.split())


def test_it_runs_at_its_commit_and_leaves_nothing(checkout: Checkout) -> None:
    right = checkout.commit(test_py="print('right')")
    wrong = checkout.commit(test_py="print('wrong\\x1b[2J'); raise SystemExit(3)")
    checkout.write("test.py", "raise SystemExit(4)")
    passed, failed = again(checkout, right), again(checkout, wrong)
    assert (passed.run.exit_code, passed.run.detail, passed.tail) == (0, None, "right")
    assert (failed.run.exit_code, failed.tail) == (3, "wrong")
    assert passed.run.output_digest != failed.run.output_digest
    assert len(checkout.git("worktree", "list").splitlines()) == 1
    assert checkout.git("status", "--porcelain") == "M test.py"


def test_it_sees_no_key_and_no_other_checkout(
    checkout: Checkout, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("CACP_KEY", "cacp_sk_secret")
    monkeypatch.setenv("CACP_RUNNER_KEY_FILE", "runner.json")
    monkeypatch.setenv("GIT_PREFIX", "elsewhere")
    monkeypatch.setenv("KEPT", "kept")
    script = (
        "import os; "
        "print(sorted(name for name in os.environ"
        " if name.startswith('CACP') or name in ('GIT_PREFIX', 'KEPT')))"
    )
    commit = checkout.commit(test_py=script)
    assert again(checkout, commit).tail == "['KEPT']"


def test_a_commit_that_is_not_here(checkout: Checkout) -> None:
    checkout.commit(test_py="")
    missing = again(checkout, "0" * 40)
    assert missing.run.exit_code is None
    assert missing.run.detail == (
        "commit 000000000000 is not in this repository: fetch it, or check in another"
    )


@pytest.mark.parametrize(
    ("command", "expected"),
    [
        ("/no/such/program", "No such file"),
        ("sh -c 'no-such-program-at-all'", "it ended with 127: a program is missing"),
    ],
)
def test_a_program_that_is_missing_has_not_failed(
    checkout: Checkout, command: str, expected: str
) -> None:
    ended = again(checkout, checkout.commit(test_py=""), command)
    assert ended.run.exit_code is None
    assert expected in str(ended.run.detail)


def test_it_is_run_without_a_shell(checkout: Checkout, tmp_path: Path) -> None:
    """What a shell would do with it is an argument of the program."""
    commit = checkout.commit(test_py="import sys; print(sys.argv[1:])")
    ended = again(checkout, commit, f"{TEST} $(touch {tmp_path}/ran) ; true")
    assert ended.tail == f"['$(touch', '{tmp_path}/ran)', ';', 'true']"
    assert not (tmp_path / "ran").exists()


def test_it_has_a_time_limit(checkout: Checkout) -> None:
    commit = checkout.commit(test_py="import time; time.sleep(600)")
    ended = again(checkout, commit, time_limit=0.5)
    assert (ended.run.exit_code, ended.run.detail) == (None, "it did not end within 0.5 s")


def test_it_may_be_made_ready(checkout: Checkout) -> None:
    made = "import pathlib; raise SystemExit(not pathlib.Path('made').exists())"
    commit = checkout.commit(test_py=made, make_py="open('made', 'w').close()", bad_py="1 / 0")
    assert again(checkout, commit).run.exit_code == 1
    assert again(checkout, commit, prepare=f"{sys.executable} make.py").run.exit_code == 0
    failed = again(checkout, commit, prepare=f"{sys.executable} bad.py")
    assert (failed.run.exit_code, failed.run.detail) == (None, "--prepare failed: it ended with 1")
    assert "ZeroDivisionError" in failed.tail


def test_much_output_is_kept_to_its_end(checkout: Checkout) -> None:
    commit = checkout.commit(test_py="for line in range(200_000): print(line)")
    ended = again(checkout, commit)
    assert ended.run.exit_code == 0
    assert ended.tail.splitlines() == [str(line) for line in range(199_980, 200_000)]
