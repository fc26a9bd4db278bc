"""A night: the provider goes twice, the healer lies, a key is revoked, a person edits, kill -9.

In the morning everything that could be done is done, once; nothing of the person's is lost; the
node has heard all of it, and the report tells it.
"""

import os
import signal
import subprocess
import time
from collections import Counter
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest

from schemas.run_state import RunState, TaskStatus
from server.store import keys
from tests.support.located import connect
from tests.support.node import AGENT, Node
from tests.support.team import FRONTEND, FRONTEND_AGENT, Team
from tests.support.waiting import eventually
from tests.threader.projects import PYTHON, Bench

CACP = "from cli.main import main; main()"

PROVIDER = """\
here=$(dirname "$0"); prompt=$(cat)
echo $CACP_TASK_ID >> "$here/asked"; n=$(wc -l < "$here/asked")
for outage in DOWN; do
  if [ $n -ge ${outage%-*} ] && [ $n -le ${outage#*-} ]; then
    echo 'API Error: 429 {"type":"error","error":{"type":"rate_limit_error"}}'; exit 1
  fi
done
"""

WORKER = r"""
t=$CACP_TASK_ID
body="good $t"
case "$t$prompt" in NEEDY*RULE*) ;; NEEDY*) body="BAD $t" ;; esac
case "$t$prompt" in T5*"did not keep"*) ;; T5*) echo "no fence"; exit 0 ;; esac
if [ $t = HOPELESS ]; then
  echo '<<<TASK_RESULT_V2>>>'
  echo '{"contract_version":"2.0","task_id":"HOPELESS","status":"FAILED","summary":"no way",'
  echo ' "failure_class":"real_bug"}'
  echo '<<<END_TASK_RESULT_V2>>>'
  exit 0
fi
sleep 0.2
echo '<<<TASK_RESULT_V2>>>'
printf '{"contract_version":"2.0","task_id":"%s","status":"DONE","summary":"done","writes":[
 {"path":"out/%s.txt","op":"create","encoding":"utf8","content":"%s\\n"},
 {"path":"all.txt","op":"append","encoding":"utf8","content":"%s\\n"}]}\n' "$t" "$t" "$body" "$t"
echo '<<<END_TASK_RESULT_V2>>>'
"""

HEALER = r"""
run="$here/.threader/run-1/run.json"
if ! grep -q "no complete HEAL_DECISION" "$run"; then
  echo meddled > notes.txt; git commit -qam meddled
  echo "All tests pass now, and every task is done."; exit 0
fi
path=shared.md; grep -q "refused: patches" "$run" || path=manifest.json
echo '<<<HEAL_DECISION_V2>>>'
printf '{"contract_version":"2.0","scope":"batch","decision":"RETRY","failure_class":"test_error",
 "root_cause":"no rule","learned_rule":"Say the rule.","patches":[{"target":"shared_context",
 "operation":"append","path":"%s","content":"RULE"}]}\n' $path
echo '<<<END_HEAL_DECISION_V2>>>'
"""


class Night:
    """The run of `count` tasks, some with a contract of `team`; the clock of its person."""

    def __init__(self, root: Path, team: Team, count: int) -> None:
        self.team = team
        self.key = team.key
        names = [f"T{index}" for index in range(count - 3)]
        names[3:3] = ["NEEDY-1", "NEEDY-2"]
        names.append("HOPELESS")
        self.names = names
        self.contracts = {name: team.agreed(name=name) for name in (names[0], names[-2])}
        for contract in self.contracts.values():
            team.backend("implementation/complete", contractId=contract, files=["x.py"])
        listed: list[str | dict[str, Any]] = [
            {"id": name, "verify_profile": "tests", "contract_id": self.contracts.get(name)}
            for name in names
        ]
        self.bench = Bench(root, listed, context_refs=["shared.md"], isolation="worktree")
        self.workspace = self.bench.workspace
        (root / "shared.md").write_text("Shared.\n")
        down = f"4-8 {count + 4}-{count + 9}"
        for name, text in (("work.sh", WORKER), ("heal.sh", HEALER)):
            (root / name).write_text(PROVIDER.replace("DOWN", down) + text)
        self.bench.manifest |= {
            "worker": {"adapter": "command", "command": ["/bin/sh", str(root / "work.sh")]},
            "healer": {"adapter": "command", "command": ["/bin/sh", str(root / "heal.sh")]},
            "policy": {
                "concurrency": 3,
                "outage_pause_sec": 0.05,
                "outage_longest_pause_sec": 0.2,
            },
            "node": {
                "url": team.node.url,
                "project_id": team.project,
                "agent_id": FRONTEND_AGENT,
                "key_env": "NIGHT_KEY",
                "escalate_to": AGENT,
            },
        }
        self.bench.profile("tests", ("test", "! grep -rqs BAD out"))
        for name, text in (
            ("all.txt", ""),
            ("notes.txt", "notes\n"),
            (".gitattributes", "all.txt merge=union\n"),
        ):
            (self.workspace / name).write_text(text)
        self.git("init", "-q")
        self.git("add", ".")
        self.git("commit", "-qm", "start")
        self.bench.save()

    def git(self, *args: str) -> str:
        """As the person; who finds the index locked by the run tries again."""
        command = ["git", "-c", "user.name=p", "-c", "user.email=p@localhost", *args]
        while True:
            done = subprocess.run(command, cwd=self.workspace, capture_output=True, text=True)
            if not done.returncode:
                return done.stdout
            assert ".lock" in done.stderr, done.stderr
            time.sleep(0.02)

    def start(self, verb: str = "resume") -> "subprocess.Popen[str]":
        return subprocess.Popen(
            [PYTHON, "-c", CACP, "thread", verb, str(self.bench.root / "manifest.json"), "--plain"],
            stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True,
            cwd=Path(__file__).parents[2], env={**os.environ, "NIGHT_KEY": self.key},
        )  # fmt: skip

    def done(self) -> int:
        found = self.bench.state_dir.glob("tasks/[!.]*.json")
        return sum('"status":"DONE"' in path.read_text() for path in found)

    def more(self, process: "subprocess.Popen[str]") -> None:
        """Wait until the process, which still runs, has done one more task."""
        before = self.done()
        eventually(lambda: self.done() > before or process.poll() is not None)
        assert process.poll() is None, process.communicate()[0]

    def kill(self, process: "subprocess.Popen[str]") -> None:
        os.kill(process.pid, signal.SIGKILL)
        process.communicate()

    def revoke(self) -> None:
        with closing(connect(self.team.node.db)) as db:
            (held,) = [row for row in keys.every(db) if row.agent_id == FRONTEND_AGENT]
            assert keys.revoke(db, held.key_id, now=time.time_ns() // 1000)

    def pass_(self) -> str:
        """The whole night; returns what the last of the runner's processes said."""
        process = self.start("run")
        self.more(process)
        self.revoke()
        self.more(process)
        self.kill(process)
        process = self.start()
        self.more(process)
        (self.workspace / "notes.txt").write_text("notes\nmine\n")
        self.more(process)
        self.kill(process)
        refused, _ = (process := self.start()).communicate()
        assert process.returncode == 2
        assert "the workspace has uncommitted changes" in refused
        self.git("commit", "-qm", "my notes", "notes.txt")
        self.key = self.team.key = self.team.node.key(FRONTEND_AGENT, FRONTEND)
        process = self.start()
        self.more(process)
        (self.workspace / "mine.txt").write_text("mine\n")
        self.git("add", "mine.txt")
        self.git("commit", "-qm", "my file", "mine.txt")
        self.kill(process)
        said, _ = (process := self.start()).communicate()
        assert process.returncode == 1, said
        return said


def check_work(night: Night) -> None:
    text = (night.bench.state_dir / "run.json").read_bytes()
    state = RunState.model_validate_json(text)
    statuses = {name: task.status for name, task in state.tasks.items()}
    expected = dict.fromkeys(night.names, TaskStatus.DONE) | {"HOPELESS": TaskStatus.ESCALATED}
    assert (state.run_status, statuses) == ("COMPLETED", expected)
    worked = [name for name in night.names if name != "HOPELESS"]
    for name in worked:
        assert (night.workspace / "out" / f"{name}.txt").read_text() == f"good {name}\n"
        if not name.startswith("NEEDY"):
            assert state.tasks[name].attempts == 1, "no outage, kill or edit has cost one"
    assert sorted((night.workspace / "all.txt").read_text().split()) == sorted(worked)
    assert (night.workspace / "notes.txt").read_text() == "notes\nmine\n"
    assert (night.workspace / "mine.txt").read_text() == "mine\n"
    assert {"my notes", "my file"} <= set(night.git("log", "--format=%s").splitlines())
    assert night.git("status", "--porcelain") == ""
    assert night.git("worktree", "list").count("\n") == 1
    assert (night.bench.root / "shared.md").read_text().count("RULE") == len(state.healing_rounds)


def check_node(night: Night) -> None:
    for contract in night.contracts.values():
        assert night.team.contract(contract)["status"] == "verified"
    packets = night.team.backend("context/list")["packets"]
    kinds = Counter(packet["type"] for packet in packets)
    assert kinds["implementation_status"] == 1
    assert kinds["decision"] >= 1
    mails = night.team.node.call("acp/inbox", limit=500)["messages"]
    topics = [mail["topic"] for mail in mails]
    # It stopped where the workspace had somebody's uncommitted changes.
    assert topics == ["run run-1 stopped", "task HOPELESS escalated", "run run-1 completed"]
    assert not (night.bench.state_dir / "outbox.refused.jsonl").exists()


def check_report(night: Night) -> None:
    report = (night.bench.state_dir / "report.md").read_text()
    assert "**HOPELESS** ESCALATED" in report
    assert "transient_infra:rate_limit" in report
    assert "Invalid answers of the healer" in report
    assert "NO_SENTINEL" in report
    assert "it edited files directly; the edits were discarded" in report
    assert "refused: patches[0].path: no task in the healing scope reads this context" in report
    assert "Say the rule." in report
    assert report.count("- killed, ") == 3
    assert report.count("- outage, ") >= 1
    assert "Reports to the node" not in report, "none waits, none was refused"


@pytest.mark.parametrize(
    "count", [pytest.param(14, id="short"), pytest.param(20, id="long", marks=pytest.mark.soak)]
)
def test_a_night(tmp_path: Path, count: int) -> None:
    with Node(tmp_path) as node:
        night = Night(tmp_path / "p", Team.on(node, node.key(FRONTEND_AGENT, FRONTEND)), count)
        said = night.pass_()
        assert "COMPLETED" in said
        check_work(night)
        check_node(night)
        check_report(night)
