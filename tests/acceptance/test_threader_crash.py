"""kill -9 at random moments: every resume ends as an undisturbed run does (§10, §12)."""

import os
import random
import signal
import subprocess
import time
from pathlib import Path
from typing import Any

import pytest

from schemas.run_state import RunState
from tests.threader.projects import PYTHON, Bench
from threader.process import kill_leftovers

CACP = "from cli.main import main; main()"

WORKER = r"""
prompt=$(cat)
t=$CACP_TASK_ID
n=${t#T}
body="good $t"
if [ $((n % 17)) = 5 ]; then case "$prompt" in *RULE*) ;; *) body="BAD $t" ;; esac; fi
if [ $((n % 23)) = 7 ]; then
  case "$prompt" in *"did not keep"*) ;; *) echo "no fence"; exit 0 ;; esac
fi
echo '<<<TASK_RESULT_V2>>>'
printf '{"contract_version":"2.0","task_id":"%s","status":"DONE","summary":"done","writes":[
 {"path":"out/%s.txt","op":"create","encoding":"utf8","content":"%s\\n"},
 {"path":"all.txt","op":"append","encoding":"utf8","content":"%s\\n"}]}\n' "$t" "$t" "$body" "$t"
echo '<<<END_TASK_RESULT_V2>>>'
"""

HEALER = r"""
cat > /dev/null
echo '<<<HEAL_DECISION_V2>>>'
echo '{"contract_version":"2.0","scope":"batch","decision":"RETRY","failure_class":"test_error",
 "root_cause":"no rule","patches":[{"target":"shared_context","operation":"append",
 "path":"shared.md","content":"RULE"}]}'
echo '<<<END_HEAL_DECISION_V2>>>'
"""


def make(root: Path, count: int, isolation: str = "none") -> Bench:
    tasks: list[str | dict[str, Any]] = [
        {
            "id": f"T{index}",
            "verify_profile": "tests",
            "depends_on": [f"T{index - 1}"] if index % 10 == 9 else [],
        }
        for index in range(count)
    ]
    bench = Bench(root, tasks, context_refs=["shared.md"], isolation=isolation)
    (root / "shared.md").write_text("Shared.\n")
    (root / "worker2.sh").write_text(WORKER)
    (root / "healer.sh").write_text(HEALER)
    bench.manifest["worker"] = script(root / "worker2.sh")
    bench.manifest["healer"] = script(root / "healer.sh")
    bench.manifest["policy"] = {"concurrency": 3}
    bench.profile("tests", ("test", "! grep -rqs BAD out"))
    if isolation == "worktree":
        (bench.workspace / "all.txt").write_text("")
        (bench.workspace / ".gitattributes").write_text("all.txt merge=union\n")
        for args in (["init", "-q"], ["add", "."], ["commit", "-qm", "start"]):
            identity = ["-c", "user.name=t", "-c", "user.email=t@localhost"]
            subprocess.run(["git", *identity, *args], cwd=bench.workspace, check=True)
    bench.save()
    return bench


def script(path: Path) -> dict[str, Any]:
    return {"adapter": "command", "command": ["/bin/sh", str(path)]}


def start(bench: Bench) -> "subprocess.Popen[bytes]":
    verb = "resume" if (bench.state_dir / "run.json").exists() else "run"
    return subprocess.Popen(
        [PYTHON, "-c", CACP, "thread", verb, str(bench.root / "manifest.json"), "--plain"],
        stdout=subprocess.PIPE, stderr=subprocess.STDOUT, cwd=Path(__file__).parents[2],
    )  # fmt: skip


def end_state(bench: Bench) -> dict[str, Any]:
    state = RunState.model_validate_json((bench.state_dir / "run.json").read_bytes())
    tree = bench.tree()
    return {
        "run": state.run_status,
        "tasks": {key: task.status for key, task in state.tasks.items()},
        "all": sorted(tree.pop("all.txt").split()),
        "tree": tree,
        "heals": len(state.healing_rounds),
        "shared": (bench.root / "shared.md").read_text(),
        "journals": [p.name for p in bench.state_dir.glob("backups/*/journal.json")],
        "left": kill_leftovers(str(bench.state_dir)),
    }


def run_with_kills(bench: Bench, kills: int, chance: random.Random, pace: float) -> int:
    """Run to the end, killing up to `kills` times; returns how often."""
    killed = 0
    while True:
        process = start(bench)
        if killed < kills:
            try:
                process.communicate(timeout=chance.uniform(0.3, 0.3 + pace))
            except subprocess.TimeoutExpired:
                os.kill(process.pid, signal.SIGKILL)
                killed += 1
                process.communicate()
                continue
        output, _ = process.communicate(timeout=300)
        assert process.returncode == 0, output.decode()[-2000:]
        return killed


@pytest.mark.parametrize("isolation", ["none", "worktree"])
def test_a_few_kills(tmp_path: Path, isolation: str) -> None:
    calm = make(tmp_path / "calm", 16, isolation)
    assert run_with_kills(calm, 0, random.Random(0), 0) == 0
    stormy = make(tmp_path / "stormy", 16, isolation)
    run_with_kills(stormy, 2, random.Random(7), 0.8)
    assert end_state(stormy) == end_state(calm)


@pytest.mark.soak
@pytest.mark.parametrize(("isolation", "count"), [("none", 200), ("worktree", 60)])
def test_fifty_kills(tmp_path: Path, isolation: str, count: int) -> None:
    chance = random.Random(20_260_321)
    calm = make(tmp_path / "calm", count, isolation)
    began = time.monotonic()
    run_with_kills(calm, 0, chance, 0)
    pace = (time.monotonic() - began) / 8
    expected = end_state(calm)
    assert expected["left"] == 0
    killed = 0
    for number in range(50):
        stormy = make(tmp_path / f"storm-{number}", count, isolation)
        killed += run_with_kills(stormy, min(8, 50 - killed), chance, pace)
        assert end_state(stormy) == expected, f"run {number}"
        if killed >= 50:
            break
    assert killed >= 50
