"""Receipts of `cacp probe`: real providers, real checkouts, a real node."""

import json
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.cli.proving import NOWHERE, Bench
from tests.cli.run import ROOT, cacp
from tests.proof.provider import CONTRACT, running
from tests.support.node import REPO, Node, free_port
from tests.support.team import FRONTEND, Team

Json = dict[str, Any]
EVENT = {"orderId": "string", "total": "number"}
ORDER = 'echo \'{"orderId": "7", "total": 3}\''


@pytest.fixture(scope="module")
def provider() -> Iterator[str]:
    with running() as address:
        yield address


@pytest.fixture
def bench(node: Node, frontend_key: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Bench:
    team = Team.on(node, frontend_key, verificationPolicy="receipt")
    return Bench(team, tmp_path, monkeypatch)


def probe(bench: Bench, *words: str, url: str = "", repo: str = REPO) -> Any:
    given = ["--repo", repo, "--key-file", str(bench.key_file), "--cases", "20", "--seed", "3"]
    return cacp("probe", bench.contract, *given, *words, url=url or bench.node.url)


def test_a_probe_that_passes_proves_the_provider(bench: Bench, provider: str) -> None:
    bench.built(content=CONTRACT)
    done = probe(bench, "--base-url", f"{provider}/honest")
    assert done.exit_code == 0, done.stderr
    assert "passed, 120 cases" in done.stdout
    assert "the receipt is recorded, and proves the provider's side" in done.stderr
    assert bench.status == "verified"
    [receipt] = bench.receipts
    assert (receipt["commit"], receipt["side"]) == (bench.first, "provider")
    assert (receipt["tool"], receipt["cases"], receipt["seed"]) == ("cacp probe", 120, 3)
    assert "target" not in receipt
    assert receipt["command"].endswith(f"--base-url {provider}/honest --cases 20 --seed 3")
    assert bench.checkout.git("status", "--porcelain") == "", "it leaves nothing in the tree"


def test_a_probe_that_fails_stands_until_its_cases_pass(
    bench: Bench, provider: str, tmp_path: Path
) -> None:
    bench.built(content=CONTRACT)
    out = tmp_path / "receipt.json"
    done = probe(bench, "--base-url", f"{provider}/wrong_type", "--json", "--out", str(out))
    assert done.exit_code == 1, done.stderr
    answer = json.loads(done.stdout)
    assert answer["result"] == "failed"
    assert (answer["repo"], answer["recorded"]["proves"]) == (REPO, False)
    assert json.loads(out.read_text()) == {
        "projectId": bench.team.project,
        "receipt": answer["receipt"],
    }
    [receipt] = bench.receipts
    assert (receipt["outcome"], receipt["exitCode"]) == ("unclassified", 1)
    other = probe(bench, "--base-url", f"{provider}/honest")
    assert (other.exit_code, bench.status) == (0, "implemented")


def test_no_secret_gets_into_the_receipt(bench: Bench, provider: str) -> None:
    bench.built(content=CONTRACT)
    secret = ["--header", "Authorization: Bearer s3cret", "--header", "X-Team:s3cret"]
    secret += ["--value", "id=s3cret9", "--before", "echo 'X-Api-Key: s3cret'"]
    probe(bench, "--base-url", f"{provider}/honest", *secret)
    [receipt] = bench.receipts
    assert "s3cret" not in json.dumps(receipt)
    assert (
        "--header 'Authorization: [hidden]' --header 'X-Team: [hidden]' --value 'id=[hidden]' "
        "--before '[hidden]'"
    ) in receipt["command"]


@pytest.mark.parametrize("breaks", ["dirty", "commit", "side"])
def test_what_would_prove_nothing_is_told_before_anything_is_sent(
    bench: Bench, tmp_path: Path, breaks: str
) -> None:
    bench.built("e" * 40 if breaks == "commit" else None, content=CONTRACT)
    if breaks == "dirty":
        bench.checkout.write("left.txt", "x")
    ran = tmp_path / "ran"
    words = ["--base-url", NOWHERE, "--before", f"touch {ran}", "--serve", f"touch {ran}"]
    done = probe(bench, *words, repo=FRONTEND if breaks == "side" else REPO)
    assert (done.exit_code, done.stdout, ran.exists()) == (1, "", False)
    assert "nothing was run: " in done.stderr
    assert bench.receipts == []


@pytest.mark.parametrize(
    ("words", "why"),
    [
        (["--base-url", "http://h", "--allow-mock"], "a probe of a mock proves nothing"),
        (["--base-url", "http://h", "--side", "consumer"], "only a --command can be a consumer's"),
        (["--base-url", "http://h", "--cases", "19"], "a receipt is of at least 20 --cases"),
        (["--samples", ".", "--serve", "true"], "--serve starts what answers at --base-url"),
    ],
)
def test_receipts_that_can_not_be_are_wrong_usage(bench: Bench, words: list[str], why: str) -> None:
    bench.built(content=CONTRACT)
    done = probe(bench, *words)
    assert (done.exit_code, why in done.stderr) == (2, True)


def test_a_receipt_is_of_a_nodes_contract_by_a_runner(bench: Bench, tmp_path: Path) -> None:
    file = tmp_path / "users.json"
    file.write_text(json.dumps(CONTRACT))
    given = ["--file", str(file), "--base-url", "http://h"]
    keyed = cacp("probe", *given, runner_key_file=str(bench.key_file))
    assert (keyed.exit_code, "leave out --file, or the runner's key" in keyed.stderr) == (2, True)
    keyless = cacp("probe", *given, "--out", "r.json", runner_key_file="")
    assert (keyless.exit_code, "which a runner's --key-file makes" in keyless.stderr) == (2, True)


def test_samples_and_commands_prove_whose_they_are(bench: Bench) -> None:
    bench.built(content=EVENT, type="event_schema")
    done = probe(bench, "--command", ORDER)
    assert done.exit_code == 0, done.output
    assert bench.status == "verified"
    done = probe(bench, "--command", "cat", "--side", "consumer", repo=FRONTEND)
    assert done.exit_code == 0, done.output
    sides = {receipt["side"]: receipt["command"] for receipt in bench.receipts}
    assert sides["consumer"].endswith("--command cat --side consumer --cases 20 --seed 3")


def test_samples_are_of_the_commit(bench: Bench, tmp_path: Path) -> None:
    away = tmp_path / "away"
    away.mkdir()
    (away / "a.json").write_text('{"orderId": "7", "total": 3}')
    bench.built(content=EVENT, type="event_schema")
    done = probe(bench, "--samples", str(away))
    assert (done.exit_code, bench.receipts) == (1, [])
    assert "nothing was run: " in done.stderr
    assert "is in no commit of this checkout" in done.stderr


def test_a_commit_while_it_runs_makes_the_receipt_worthless(bench: Bench) -> None:
    bench.built(content=EVENT, type="event_schema")
    identity = "git -c user.name=a -c user.email=a@b"
    moves = f"{identity} commit -q --allow-empty -m x; {ORDER}"
    done = probe(bench, "--command", moves)
    assert "no receipt is recorded. The receipt proves nothing: the working tree" in done.stderr
    assert bench.receipts == []


def test_without_the_node_the_receipt_is_kept(
    bench: Bench, provider: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    bench.built(content=CONTRACT)
    words = ["--base-url", f"{provider}/honest", "--json"]
    unasked = probe(bench, *words, url=NOWHERE)
    assert (unasked.exit_code, "never asked from here" in unasked.stderr) == (3, True)
    with monkeypatch.context() as patch:
        bench.moved(patch)
        # It is asked, and the base URL ends the command.
        assert probe(bench, "--base-url", "no url", url=NOWHERE).exit_code == 2
    [content] = (bench.checkout.folder / ".git" / "cacp").glob("content-*.json")
    text = content.read_text()
    for edited in ("{", "{}", text.replace("minLength", "maxLength")):
        content.write_text(edited)
        assert probe(bench, *words, url=NOWHERE).exit_code == 1, edited
    content.write_text(text)
    done = probe(bench, *words, url=NOWHERE)
    assert done.exit_code == 0, done.stderr
    kept = json.loads(done.stdout)["recorded"]
    assert kept["status"] == "kept"
    sends = ["verify", "--key-file", str(bench.key_file), "--send", kept["file"]]
    assert cacp(*sends, url=bench.node.url).exit_code == 0
    assert bench.status == "verified"


# --- a provider that is started -----------------------------------------------------------------


def serve(port: int) -> str:
    return f"PYTHONPATH={ROOT} exec {sys.executable} -m tests.proof.provider {port}"


def test_the_provider_of_the_checkout_is_started_and_ended(bench: Bench) -> None:
    bench.built(content=CONTRACT)
    port = free_port()
    url = f"http://127.0.0.1:{port}/honest"
    done = probe(bench, "--base-url", url, "--serve", serve(port))
    assert done.exit_code == 0, done.output
    assert bench.status == "verified"
    assert "--serve " in bench.receipts[0]["command"]
    again = probe(bench, "--base-url", url)
    assert "nothing answers there" in again.stdout, "it was ended"


def test_what_a_provider_printed_is_shown_when_it_fails(bench: Bench) -> None:
    bench.built(content=CONTRACT)
    port = free_port()
    url = f"http://127.0.0.1:{port}"
    done = probe(bench, "--base-url", url, "--serve", "echo 'no module named api'; exit 1")
    assert (done.exit_code, done.stdout) == (4, "")
    assert "  | no module named api" in done.stderr
    assert "--serve: it ended with status 1 before it answered" in done.stderr
    crashes = f"echo starting; {serve(port)}"
    done = probe(bench, "--base-url", f"{url}/exits", "--serve", crashes)
    assert done.exit_code == 1, done.output
    assert "✗ POST /users: provider gone" in done.stdout
    assert "  | starting" in done.stderr
    assert [receipt["outcome"] for receipt in bench.receipts] == ["unclassified"]


def test_what_answers_already_is_refused(bench: Bench, provider: str) -> None:
    bench.built(content=CONTRACT)
    done = probe(bench, "--base-url", f"{provider}/honest", "--serve", "sleep 60")
    assert done.exit_code == 4
    assert f"something answers at {provider} already" in done.stderr
    assert bench.receipts == []
