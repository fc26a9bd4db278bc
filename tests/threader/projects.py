"""Real projects on disk, with a worker that reads its answers from files."""

import json
import sys
import time
from pathlib import Path
from typing import Any

from schemas.run_state import RunState
from threader.events import RunEvent
from threader.load import load_project
from threader.orchestrator import Orchestrator
from threader.session import start_run

WORKER = """\
#!/bin/sh
# Says what answers/<task>.<call> holds, or answers/<task> from then on.
here=$(dirname "$0")
name=${CACP_TASK_ID#@}
n=$(($(cat "$here/calls/$name" 2>/dev/null || echo 0) + 1))
echo $n > "$here/calls/$name"
file="$here/answers/$name.$n"
[ -f "$file" ] || file="$here/answers/$name"
if [ -f "$file.sh" ]; then . "$file.sh"; fi
[ -f "$file" ] && cat "$file"
exit 0
"""


def result_block(task_id: str, **fields: Any) -> str:
    body = {
        "contract_version": "2.0",
        "task_id": task_id,
        "status": "DONE",
        "summary": f"{task_id} did it",
        **fields,
    }
    return f"<<<TASK_RESULT_V2>>>\n{json.dumps(body)}\n<<<END_TASK_RESULT_V2>>>\n"


def write(path: str, content: str, op: str = "create", **fields: Any) -> dict[str, Any]:
    return {"path": path, "op": op, "encoding": "utf8", "content": content, **fields}


def heal_block(**fields: Any) -> str:
    body = {
        "contract_version": "2.0",
        "scope": "batch",
        "decision": "RETRY",
        "failure_class": "prompt_gap",
        "root_cause": "the prompt omits a rule",
        "patches": [],
        **fields,
    }
    return f"<<<HEAL_DECISION_V2>>>\n{json.dumps(body)}\n<<<END_HEAL_DECISION_V2>>>\n"


class Bench:
    """A manifest with its folders below `root`; change `manifest` and `profiles` before `save`."""

    def __init__(self, root: Path, tasks: list[str | dict[str, Any]], **fields: Any) -> None:
        self.root = root
        self.workspace = root / "work"
        for name in ("work", "prompts", "answers", "calls"):
            (root / name).mkdir(parents=True)
        (root / "worker.sh").write_text(WORKER)
        self.profiles: dict[str, Any] = {"none": {"steps": []}}
        listed = []
        for task in tasks:
            given = {"id": task} if isinstance(task, str) else task
            listed.append(
                {
                    "prompt_ref": f"prompts/{given['id']}.md",
                    "depends_on": [],
                    "timeout_sec": 20,
                    "verify_profile": "none",
                    **given,
                }
            )
            (root / "prompts" / f"{given['id']}.md").write_text(f"Do {given['id']}.\n")
            self.answer(given["id"], result_block(given["id"]))
        script = {"adapter": "command", "command": ["/bin/sh", str(root / "worker.sh")]}
        self.manifest: dict[str, Any] = {
            "manifest_version": "2.0",
            "run_id": "run-1",
            "workspace": "work",
            "tasks": listed,
            "worker": script,
            "healer": script,
            **fields,
        }

    def answer(self, task_id: str, *outputs: str) -> None:
        """What the worker says: one output per call, the last one from then on."""
        for index, text in enumerate(outputs[:-1], 1):
            (self.root / "answers" / f"{task_id}.{index}").write_text(text)
        (self.root / "answers" / task_id).write_text(outputs[-1])

    def script(self, task_id: str, text: str) -> None:
        """Shell that runs before the answer is given."""
        (self.root / "answers" / f"{task_id}.sh").write_text(text)

    def profile(self, name: str, *steps: tuple[str, str], **fields: Any) -> None:
        listed = [{"name": step, "cmd": cmd, "timeout_sec": 20} for step, cmd in steps]
        self.profiles[name] = {"steps": listed, **fields}

    def save(self) -> Path:
        path = self.root / "manifest.json"
        path.write_text(json.dumps(self.manifest))
        (self.root / "verify_profiles.json").write_text(json.dumps({"profiles": self.profiles}))
        return path

    def open(self) -> Orchestrator:
        return start_run(load_project(self.save()))

    async def run(self) -> RunState:
        return await self.open().go()

    @property
    def state_dir(self) -> Path:
        return self.root / ".threader" / "run-1"

    def calls(self, task_id: str) -> int:
        path = self.root / "calls" / task_id
        return int(path.read_text()) if path.exists() else 0

    def tree(self) -> dict[str, str]:
        """The workspace's files and their text."""
        return {
            path.relative_to(self.workspace).as_posix(): path.read_text()
            for path in sorted(self.workspace.rglob("*"))
            if path.is_file() and ".git/" not in path.as_posix()
        }


def events_of(run: Orchestrator) -> list[RunEvent]:
    events: list[RunEvent] = []
    run.listeners.append(lambda event, _: events.append(event))
    return events


PYTHON = sys.executable


def is_alive(pid: int) -> bool:
    """Whether a process still runs after a moment; one that is dead and not reaped does not."""
    for _ in range(100):
        try:
            stat = Path(f"/proc/{pid}/stat").read_text()
        except FileNotFoundError:
            return False
        if stat.rpartition(")")[2].split()[0] == "Z":
            return False
        time.sleep(0.01)
    return True
