"""Commands of a document's ```console blocks, run one after the other in one shell."""

import os
import re
import subprocess
import sys
from collections.abc import Mapping
from pathlib import Path

UUID = re.compile(r"[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}")
DIFFERS = {
    UUID.pattern: "ID",
    r"\b[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}\b": "ID",
    r"\bkey_\w+": "KEY",
    r"\b\d\d:\d\d:\d\d\b": "TIME",
    r"127\.0\.0\.1:\d+": "NODE",
    r"\b(just now|\d+ s ago)": "AGO",
    r"\b[0-9a-f]{12}\b": "COMMIT",
    r"\b\d+\.\d+ ?s\b": "SECONDS",
    r"\bseed \d+": "SEED",
}
"""What differs from run to run, and what stands for it."""
_BLOCK = re.compile(r"^```([a-z]+)(?: (\S+))?\n(.*?)^```$", re.DOTALL | re.MULTILINE)


def blocks(text: str) -> list[tuple[str, str, str]]:
    """The fenced blocks of a document: language, the word after it, content."""
    return [(match[1], match[2] or "", match[3]) for match in _BLOCK.finditer(text)]


def console_steps(block: str) -> list[tuple[str, str]]:
    """Each command of a ```console block, and what the document says it prints."""
    steps: list[tuple[str, str]] = []
    for line in block.splitlines():
        if line.startswith("$ "):
            steps.append((line[2:], ""))
        else:
            command, shown = steps[-1]
            steps[-1] = (command, f"{shown}{line}\n")
    return steps


def compare(what: str, shown: str, printed: str) -> None:
    """Raises AssertionError if the document shows other lines than were printed."""
    lines = (
        r"(?:.*\n)*?" if line == "…" else re.escape(line).replace("…", ".*") + r"\n"
        for line in blank(shown)
    )
    text = "".join(f"{line}\n" for line in blank(printed))
    if not re.fullmatch("".join(lines), text):
        raise AssertionError(f"{what}\n{printed}\ninstead of\n{shown}")


def blank(text: str) -> list[str]:
    for pattern, stands in DIFFERS.items():
        text = re.sub(pattern, stands, text)
    return [line.strip() for line in text.strip().splitlines()]


class Shell:
    """Runs commands in turn: variables and the folder of one are those of the next.

    `variables` are the only CACP_*. Programs are those of this environment, and of `folders`."""

    def __init__(self, variables: Mapping[str, str], *folders: Path) -> None:
        places = (*map(str, folders), str(Path(sys.executable).parent), os.environ["PATH"])
        self.environment = {
            **{name: value for name, value in os.environ.items() if not name.startswith("CACP_")},
            **variables,
            "PATH": os.pathsep.join(places),
        }

    @property
    def folder(self) -> str | None:
        """Where the last command left the shell."""
        return self.environment.get("PWD")

    def run(self, command: str) -> str:
        """What a command prints, on both streams."""
        script = f"{command}\nstatus=$?; env -0 >&3; exit $status"
        reading, writing = os.pipe()
        done = subprocess.run(
            ["bash", "-c", f"exec 3>&{writing}\n{script}"],
            env=self.environment,
            cwd=self.folder,
            stdin=subprocess.DEVNULL,
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

    def first_lines(self, command: str, count: int) -> str:
        """The first lines of a command that doesn't end by itself."""
        running = subprocess.Popen(
            ["bash", "-c", f"exec {command}"],
            env=self.environment,
            cwd=self.folder,
            stdout=subprocess.PIPE,
            text=True,
        )
        with running:
            assert running.stdout is not None
            lines = [running.stdout.readline() for _ in range(count)]
            running.terminate()
        return "".join(lines)
