"""The README's start shows real calls and real answers: run them, compare (design: README)."""

import os
import re
import subprocess
import sys
from pathlib import Path

from tests.support.node import Node

ROOT = Path(__file__).parents[1]
UUID = re.compile(r"[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}")


def console_steps() -> list[tuple[str, str]]:
    """Each command of the ```console blocks, and what the README says it prints."""
    blocks = re.findall(r"```console\n(.*?)```", (ROOT / "README.md").read_text(), re.DOTALL)
    steps: list[tuple[str, str]] = []
    for line in "".join(blocks).splitlines():
        if line.startswith("$ "):
            steps.append((line[2:], ""))
        else:
            command, shown = steps[-1]
            steps[-1] = (command, f"{shown}{line}\n")
    return steps


class Shell:
    """Runs the README's commands in turn; ids that it shows stand for those that a run gives."""

    def __init__(self, node: Node) -> None:
        self.node = node
        self.ids: dict[str, str] = {}
        self.environment = {
            **{name: value for name, value in os.environ.items() if not name.startswith("CACP_")},
            "PATH": f"{Path(sys.executable).parent}:{os.environ['PATH']}",
            "CACP_URL": node.url,
            "CACP_DB": str(node.db),
            "COLUMNS": "200",
        }

    def run(self, command: str) -> str:
        for shown, real in self.ids.items():
            command = command.replace(shown, real)
        command = command.replace("localhost:8080", f"localhost:{self.node.port}")
        script = f"{command}\nstatus=$?; env -0 >&3; exit $status"
        reading, writing = os.pipe()
        done = subprocess.run(
            ["bash", "-c", f"exec 3>&{writing}\n{script}"],
            env=self.environment,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            pass_fds=[writing],
            text=True,
            check=False,
        )
        os.close(writing)
        with os.fdopen(reading) as pipe:
            left = dict(entry.split("=", 1) for entry in pipe.read().split("\0") if "=" in entry)
        self.environment = left or self.environment
        return done.stdout


def test_the_start_does_what_it_says(tmp_path: Path) -> None:
    with Node(tmp_path) as node:
        follow(Shell(node))


def follow(shell: Shell) -> None:
    steps = console_steps()
    assert len(steps) > 8
    for command, shown in steps:
        printed = shell.run(command)
        for one, other in zip(UUID.findall(shown), UUID.findall(printed), strict=True):
            assert shell.ids.setdefault(one, other) == other
        assert blank(printed) == blank(shown), command


def blank(text: str) -> str:
    """Without what differs from run to run."""
    return "\n".join(line.rstrip() for line in UUID.sub("ID", text).strip().splitlines())
