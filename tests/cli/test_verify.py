"""`cacp verify`: real commands in real checkouts, against a real node."""

import json
import sys
from pathlib import Path

import pytest

from schemas.receipt import ProofReceipt
from tests.cli.proving import NOWHERE, TEST, Bench
from tests.cli.run import cacp
from tests.support.node import REPO, Node
from tests.support.runner import Runner
from tests.support.team import FRONTEND, Team


@pytest.fixture
def bench(node: Node, frontend_key: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Bench:
    team = Team.on(node, frontend_key, verificationPolicy="receipt")
    return Bench(team, tmp_path, monkeypatch)


def test_a_command_that_passes_verifies_the_contract(bench: Bench) -> None:
    bench.built()
    done = bench.verify(command="print('tests pass'); print('é')")
    assert done.exit_code == 0, done.stderr
    assert done.stdout == "tests pass\né\n"
    assert "the receipt is recorded, and proves the provider's side" in done.stderr
    assert "The contract is verified" in done.stderr
    assert bench.status == "verified"
    [receipt] = bench.receipts
    assert (receipt["commit"], receipt["dirty"]) == (bench.first, False)
    assert (receipt["tool"], receipt["outcome"], receipt["exitCode"]) == ("verify", "passed", 0)
    assert "tests pass" in receipt["command"]
    assert bench.checkout.git("status", "--porcelain") == "", "it leaves nothing in the tree"


def test_by_name_in_json_with_a_copy(bench: Bench, tmp_path: Path) -> None:
    bench.built()
    bench.contract = bench.name
    out = tmp_path / "receipt.json"
    done = bench.verify("--json", "--out", str(out), command="print('out')")
    assert done.exit_code == 0, done.stderr
    answer = json.loads(done.stdout)
    assert (answer["status"], answer["proves"]) == ("recorded", True)
    assert answer["contractStatus"] == "verified"
    assert "out" in done.stderr
    kept = json.loads(out.read_text())
    assert kept["receipt"] == answer["receipt"]
    assert kept["projectId"] == bench.team.project


def test_a_failure_that_the_base_has_not_is_a_regression(bench: Bench) -> None:
    """At the base commit of the branch, which main still has, the same command passes."""
    bench.checkout.git("checkout", "-q", "-b", "feature")
    bench.checkout.commit(code_txt="broken")
    bench.built()
    done = bench.verify()
    assert done.exit_code == 1
    [receipt] = bench.receipts
    assert (receipt["outcome"], receipt["base"]) == ("regression", bench.first)
    assert bench.status == "implemented"
    assert "does not prove the provider's side" in done.stderr
    assert f"not proven yet: {REPO} as provider" in done.stderr
    assert len(bench.checkout.git("worktree", "list").splitlines()) == 1


def test_a_failure_of_before_is_inherited(bench: Bench) -> None:
    base = bench.checkout.commit(code_txt="broken")
    bench.checkout.commit(other_txt="x")
    bench.built()
    assert bench.verify().exit_code == 1
    [receipt] = bench.receipts
    assert (receipt["outcome"], receipt["base"]) == ("inherited_failure", base)


def test_the_base_may_be_named_and_made_ready(bench: Bench) -> None:
    bench.checkout.commit(code_txt="broken")
    bench.checkout.commit(other_txt="x")
    bench.built()
    makes_it = f"{sys.executable} -c \"open('code.txt', 'w').write('right')\""
    assert bench.verify("--prepare", makes_it).exit_code == 1
    assert bench.receipts[-1]["outcome"] == "regression"
    done = bench.verify("--prepare", "false", command=f"{TEST}  # again")
    assert "--prepare failed there, with 1" in done.stderr
    assert bench.receipts[-1]["outcome"] == "unclassified"
    named = bench.verify("--base", bench.first, command=f"{TEST}  # named")
    assert named.exit_code == 1
    assert (bench.receipts[-1]["outcome"], bench.receipts[-1]["base"]) == (
        "regression",
        bench.first,
    )
    nowhere = bench.verify("--base", "nowhere", command=f"{TEST}  # nowhere")
    assert nowhere.exit_code == 2
    assert "--base: this repository has no branch or commit nowhere" in nowhere.stderr
    assert bench.receipts[-1]["base"] == bench.first


def test_the_exit_status_is_the_commands(bench: Bench) -> None:
    bench.built()
    assert bench.verify(command="raise SystemExit(7)").exit_code == 7


def test_a_command_that_is_not_there_is_a_missing_capability(bench: Bench) -> None:
    contract = bench.built()
    options = ["--contract", contract, "--repo", REPO, "--key-file", str(bench.key_file)]
    done = cacp("verify", *options, "--", "no-such-program-here", url=bench.node.url)
    assert done.exit_code == 127
    assert "the command can't be run here: no-such-program-here" in done.stderr
    assert [receipt["outcome"] for receipt in bench.receipts] == ["missing_capability"]
    assert bench.status == "implemented"


def test_a_commit_while_it_runs_makes_the_receipt_worthless(bench: Bench) -> None:
    bench.built()
    moves = (
        "import subprocess; subprocess.run(['git', '-c', 'user.name=a', '-c', 'user.email=a@b', "
        "'commit', '-q', '--allow-empty', '-m', 'x'], check=True)"
    )
    done = bench.verify(command=moves)
    assert done.exit_code == 0
    assert "no receipt is recorded. The receipt proves nothing: the working tree" in done.stderr
    assert bench.receipts == []


def test_a_file_that_the_command_changes_makes_the_receipt_worthless(bench: Bench) -> None:
    bench.built()
    changes = "open('code.txt', 'a').write('# more'); open('made.txt', 'w').write('x')"
    done = bench.verify(command=changes)
    assert done.exit_code == 0
    told = " ".join(done.stderr.split())
    assert "while it ran, files of the commit were changed: code.txt" in told
    assert "no receipt is recorded" in told
    assert bench.receipts == []


def test_a_file_that_the_command_adds_is_its_own_affair(bench: Bench) -> None:
    bench.built()
    assert bench.verify(command="open('coverage.xml', 'w').write('x')").exit_code == 0
    assert bench.status == "verified"


# --- what is not run ----------------------------------------------------------------------------


def nothing_run(bench: Bench, *words: str, **how: str) -> str:
    done = bench.verify(*words, command="print('ran')", **how)
    assert done.exit_code == 1
    assert done.stdout == ""
    assert bench.receipts == []
    text = " ".join(done.stderr.split())
    assert text.startswith("cacp: nothing was run: ")
    return text


def test_a_dirty_tree_is_not_run(bench: Bench) -> None:
    bench.built()
    bench.checkout.write("left.txt", "x")
    assert "the working tree has changes" in nothing_run(bench)


def test_a_change_that_git_is_told_to_pass_over_is_not_run(bench: Bench) -> None:
    bench.built()
    bench.checkout.git("update-index", "--assume-unchanged", "code.txt")
    bench.checkout.write("code.txt", "other")
    text = nothing_run(bench)
    assert "(code.txt): commit, stash or ignore them. Flags of the index" in text


def test_another_commit_than_the_declared_one_is_not_run(bench: Bench) -> None:
    bench.built("e" * 40)
    text = nothing_run(bench)
    assert "has declared commit eeeeeeeeeeee complete, and this is" in text


def test_what_is_not_complete_is_not_run(bench: Bench) -> None:
    bench.contract = bench.team.agreed(name="Unbuilt")
    assert "has not declared its work on Unbuilt complete" in nothing_run(bench)
    bench.team.backend("implementation/complete", contractId=bench.contract)
    assert "has declared no commit complete" in nothing_run(bench)


def test_whose_side_it_is_must_be_clear(bench: Bench) -> None:
    bench.built()
    assert "the repo is not a party" in nothing_run(bench, repo="nobody")
    text = nothing_run(bench, "--side", "consumer")
    assert "the repo is the provider of the contract, and not the consumer" in text
    options = ["--contract", bench.contract, "--key-file", str(bench.key_file)]
    done = cacp("verify", *options, "--", "true", url=bench.node.url)
    assert "say with --repo whose work it is" in done.stderr


def test_outside_of_a_checkout_nothing_is_run(
    bench: Bench, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    bench.built()
    monkeypatch.chdir(tmp_path)
    assert "not a git repository" in nothing_run(bench)


def test_the_runners_keys_are_needed(bench: Bench) -> None:
    bench.built()
    done = cacp("verify", "--contract", bench.contract, "--", "true", url=bench.node.url)
    assert (done.exit_code, "CACP_RUNNER_KEY_FILE" in done.stderr) == (2, True)
    bench.key_file.chmod(0o644)
    done = bench.verify()
    assert (done.exit_code, "open to other users" in done.stderr) == (1, True)
    bench.key_file.chmod(0o600)
    named = cacp("verify", "--key-file", str(bench.key_file), url=bench.node.url)
    assert (named.exit_code, "name the contract and the command" in named.stderr) == (2, True)


def test_a_runner_of_another_repo_is_refused(bench: Bench) -> None:
    bench.built()
    other = Runner.on(bench.node, repo=FRONTEND)
    bench.key_file.write_text(other.keys.text())
    done = bench.verify(command="print('ran')")
    assert (done.exit_code, done.stdout) == (0, "ran\n")
    assert "no receipt is recorded. The receipt proves nothing: its runner runs for" in (
        done.stderr
    )
    answer = json.loads(bench.verify("--json").stdout)
    assert (answer["status"], answer["reason"]) == ("refused", "receipt_runner_repo")


# --- without the node ---------------------------------------------------------------------------


def test_a_receipt_that_can_not_be_sent_is_kept_and_sent_later(
    bench: Bench, monkeypatch: pytest.MonkeyPatch
) -> None:
    bench.built()
    unasked = bench.verify(url=NOWHERE)
    assert unasked.exit_code == 3
    assert "nothing was run" in unasked.stderr
    assert "it was never asked from here" in unasked.stderr
    ask_once(bench, monkeypatch)
    done = bench.verify("--json", url=NOWHERE)
    assert done.exit_code == 0, done.stderr
    answer = json.loads(done.stdout)
    assert answer["status"] == "kept"
    assert bench.checkout.git("status", "--porcelain") == ""
    assert bench.receipts == []
    sent = cacp(
        "verify", "--key-file", str(bench.key_file), "--send", answer["file"], url=bench.node.url
    )
    assert sent.exit_code == 0, sent.stderr
    assert "proves the provider's side. The contract is verified" in sent.stderr
    [receipt] = bench.receipts
    assert ProofReceipt.model_validate(receipt).wire() == answer["receipt"]


def ask_once(bench: Bench, monkeypatch: pytest.MonkeyPatch) -> None:
    """Have the node answer once for the address where it will not be any more."""
    bench.checkout.write("left.txt", "x")
    with monkeypatch.context() as patch:
        bench.moved(patch)
        assert "the working tree has changes" in nothing_run(bench, url=NOWHERE)
    (bench.checkout.folder / "left.txt").unlink()


def test_how_to_send_it_is_told(bench: Bench, monkeypatch: pytest.MonkeyPatch) -> None:
    bench.built()
    ask_once(bench, monkeypatch)
    done = bench.verify(url=NOWHERE)
    text = " ".join(done.stderr.split())
    assert "taking the contract as it was when the node was asked last" in text
    assert "send it with `cacp verify --key-file FILE --send" in text


def test_what_is_sent_must_be_a_receipt(bench: Bench, tmp_path: Path) -> None:
    bench.built()
    sends = ["verify", "--key-file", str(bench.key_file), "--send"]
    missing = cacp(*sends, str(tmp_path / "nothing"), url=bench.node.url)
    assert (missing.exit_code, "can't be read" in missing.stderr) == (1, True)
    other = tmp_path / "other.json"
    for text in ("x", "[]", "{}", '{"projectId": "p", "receipt": {}}'):
        other.write_text(text)
        done = cacp(*sends, str(other), url=bench.node.url)
        assert (done.exit_code, "holds no receipt" in done.stderr) == (1, True), text
    done = bench.verify("--out", str(other), command="print()")
    kept = json.loads(other.read_text())
    kept["receipt"]["outcome"] = "regression"
    other.write_text(json.dumps(kept))
    edited = cacp(*sends, str(other), url=bench.node.url)
    assert (edited.exit_code, "proves nothing" in edited.stderr) == (1, True)
    away = cacp(*sends, str(other), url=NOWHERE)
    assert (away.exit_code, "stays as it is" in away.stderr) == (3, True)
