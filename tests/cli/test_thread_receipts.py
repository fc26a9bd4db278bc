"""`cacp thread receipts`: real runs that merge into real repositories, on a real node."""

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from typer.testing import Result

from tests.cli.run import ROOT
from tests.cli.threader import invoke
from tests.proof.provider import CONTRACT
from tests.support.node import AGENT, REPO, Node, free_port
from tests.support.runner import COMMIT, Runner
from tests.support.team import Team
from tests.threader.projects import Bench, result_block, write
from threader.drive import drive

Json = dict[str, Any]
TEST = ("test", 'test "$(cat user.txt)" = right')


class Workshop:
    """A run with a contract to implement, and a runner's keys beside it."""

    def __init__(
        self, team: Team, folder: Path, *, isolation: str = "worktree", **contract: Any
    ) -> None:
        self.team = team
        self.contract = team.agreed(name="Built by a run", **contract)
        team.frontend("implementation/complete", contractId=self.contract, commit=COMMIT)
        task = {"id": "A", "contract_id": self.contract, "verify_profile": "tested"}
        self.bench = Bench(folder / "p", [task, "B"], isolation=isolation)
        self.bench.profile("tested", TEST)
        self.bench.manifest["node"] = {
            "url": team.node.url,
            "project_id": team.project,
            "agent_id": AGENT,
        }
        self.bench.answer("A", result_block("A", writes=[write("user.txt", "right")]))
        self.bench.answer("B", result_block("B", writes=[write("other.txt", "more")]))
        self.git("init", "-q", "-b", "main")
        self.git("commit", "-q", "--allow-empty", "-m", "start")
        self.key_file = folder / "runner.json"
        self.key_file.write_text(Runner.on(team.node, repo=REPO).keys.text())
        self.key_file.chmod(0o600)

    def git(self, *words: str) -> str:
        identity = ["-c", "user.name=t", "-c", "user.email=t@localhost"]
        return subprocess.run(
            ["git", *identity, *words],
            cwd=self.bench.workspace,
            check=True,
            capture_output=True,
            text=True,
        ).stdout.strip()

    def run(self) -> None:
        code, _ = drive(self.bench.open(), plain=True, compat=None, as_json=False)
        assert code == 0

    def receipts(self, *words: str) -> Result:
        key_file = str(self.key_file)
        manifest = self.bench.root / "manifest.json"
        return invoke("receipts", manifest, "--key-file", key_file, *words)

    @property
    def status(self) -> str:
        return str(self.team.contract(self.contract)["status"])


@pytest.fixture
def proven(node: Node, frontend_key: str, monkeypatch: pytest.MonkeyPatch) -> Team:
    monkeypatch.delenv("CACP_KEY", raising=False)
    return Team.on(node, frontend_key, verificationPolicy="receipt")


def test_what_a_run_has_merged_is_proven_by_a_runner(proven: Team, tmp_path: Path) -> None:
    """The run's own word verifies nothing: its workers could have said it."""
    shop = Workshop(proven, tmp_path)
    shop.run()
    assert shop.status == "implemented"
    merge = shop.git("log", "--merges", "--format=%H", "--grep", "Merge task A")
    works = {work["agent_id"]: work for work in proven.contract(shop.contract)["implementations"]}
    assert works[AGENT]["commit"] == merge
    done = shop.receipts("--json")
    assert done.exit_code == 0, done.stderr
    [made] = json.loads(done.stdout)
    assert (made["task"], made["outcome"], made["proves"]) == ("A", "passed", True)
    assert shop.status == "verified"
    [listed] = proven.backend("receipt/list", contractId=shop.contract)["receipts"]
    assert (listed["receipt"]["tool"], listed["receipt"]["commit"]) == ("thread", merge)
    assert 'test "$(cat user.txt)" = right' in listed["receipt"]["command"]
    assert shop.git("worktree", "list").count("\n") == 0
    assert shop.git("status", "--porcelain") == ""


def test_a_probe_of_a_profile_is_of_the_tasks_contract(proven: Team, tmp_path: Path) -> None:
    """It starts the provider that the task wrote; the receipt is of the same probe again."""
    shop = Workshop(proven, tmp_path, content=CONTRACT)
    port = free_port()
    serve = f'PYTHONPATH={ROOT} exec {sys.executable} -m tests.proof.provider "$(cat port.txt)"'
    probe = {"base_url": f"http://127.0.0.1:{port}/honest", "serve": serve, "cases": 5}
    shop.bench.profiles["tested"] = {"steps": [{"name": "users", "probe": probe}]}
    shop.bench.answer("A", result_block("A", writes=[write("port.txt", str(port))]))
    shop.run()
    done = shop.receipts("--json")
    assert done.exit_code == 0, done.stderr
    assert shop.status == "verified"
    [listed] = proven.backend("receipt/list", contractId=shop.contract)["receipts"]
    assert "/honest --cases 5 --seed 0 --serve" in listed["receipt"]["command"]
    assert shop.git("status", "--porcelain") == ""


def test_a_probe_that_fails_fails_the_task(proven: Team, tmp_path: Path) -> None:
    shop = Workshop(proven, tmp_path, content=CONTRACT)
    url = f"http://127.0.0.1:{free_port()}"
    probe = {"base_url": url, "serve": "echo no such module; exit 1"}
    shop.bench.profiles["tested"] = {"steps": [{"name": "users", "probe": probe}]}
    shop.bench.manifest["healer"] = None
    run = shop.bench.open()
    drive(run, plain=True, compat=None, as_json=False)
    log = "".join(path.read_text() for path in shop.bench.state_dir.rglob("*verify*"))
    assert "  | no such module" in log
    assert "=== users: exit code 4" in log


def test_what_fails_as_a_runner_sees_it_proves_nothing(proven: Team, tmp_path: Path) -> None:
    """Such as a test that passes only beside what a worker has left behind."""
    shop = Workshop(proven, tmp_path)
    left = tmp_path / "left behind"
    shop.bench.profile("tested", ("test", f"test -e '{left}'"))
    left.touch()
    shop.run()
    left.unlink()
    done = shop.receipts()
    assert done.exit_code == 1
    assert "does not prove the provider's side" in done.stderr
    assert shop.status == "implemented"
    [listed] = proven.backend("receipt/list", contractId=shop.contract)["receipts"]
    assert listed["receipt"]["outcome"] == "inherited_failure"


def test_where_a_word_verifies_no_commit_is_named(team: Team, tmp_path: Path) -> None:
    """A node of an earlier release would not take it."""
    shop = Workshop(team, tmp_path)
    shop.run()
    assert shop.status == "verified"
    works = {work["agent_id"]: work for work in team.contract(shop.contract)["implementations"]}
    assert "commit" not in works[AGENT]


def test_without_a_commit_or_steps_nothing_is_run(proven: Team, tmp_path: Path) -> None:
    shop = Workshop(proven, tmp_path, isolation="none")
    shop.run()
    done = shop.receipts("--json")
    assert done.exit_code == 1
    [made] = json.loads(done.stdout)
    assert (made["status"], "in no commit" in made["problem"]) == ("not_run", True)
    assert "task A: nothing was run: its writes are in no commit" in done.stderr


def test_a_profile_without_steps_proves_nothing(proven: Team, tmp_path: Path) -> None:
    shop = Workshop(proven, tmp_path)
    shop.bench.profile("tested")
    shop.run()
    done = shop.receipts()
    assert (done.exit_code, "has no steps, and would prove nothing" in done.stderr) == (1, True)
    assert shop.status == "implemented"


def test_a_run_that_is_not_reported_yet_is_not_verified(proven: Team, tmp_path: Path) -> None:
    shop = Workshop(proven, tmp_path)
    shop.bench.manifest["node"]["project_id"] = "another"
    shop.run()
    shop.bench.manifest["node"]["project_id"] = proven.project
    shop.bench.save()
    done = shop.receipts()
    assert done.exit_code == 1
    assert "has not declared its work on Built by a run complete" in done.stderr


def test_a_manifest_without_a_node_has_nothing_to_prove(proven: Team, tmp_path: Path) -> None:
    shop = Workshop(proven, tmp_path)
    shop.run()
    del shop.bench.manifest["node"]
    shop.bench.save()
    done = shop.receipts()
    assert (done.exit_code, "the manifest names no node" in done.stderr) == (2, True)
