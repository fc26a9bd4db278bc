"""The README's start shows real calls and real answers: run them, compare (design: README)."""

from pathlib import Path

import pytest

from tests.support.console import UUID, Shell, blocks, console_steps
from tests.support.node import Node

ROOT = Path(__file__).parents[1]


@pytest.mark.sqlite
def test_the_start_does_what_it_says(tmp_path: Path) -> None:
    with Node(tmp_path) as node:
        shell = Shell({"CACP_URL": node.url, "CACP_DB": str(node.db), "COLUMNS": "200"})
        follow(shell, node.port)


def follow(shell: Shell, port: int) -> None:
    """Run the commands; ids that the README shows stand for those that this run gives."""
    text = (ROOT / "README.md").read_text()
    consoles = (content for language, _, content in blocks(text) if language == "console")
    steps = [step for content in consoles for step in console_steps(content)]
    ids: dict[str, str] = {}
    assert len(steps) > 8
    for command, shown in steps:
        typed = command.replace("localhost:8080", f"localhost:{port}")
        for example, real in ids.items():
            typed = typed.replace(example, real)
        printed = shell.run(typed)
        for example, real in zip(UUID.findall(shown), UUID.findall(printed), strict=True):
            assert ids.setdefault(example, real) == real
        assert blank(printed) == blank(shown), command


def blank(text: str) -> str:
    """Without what differs from run to run."""
    return "\n".join(line.rstrip() for line in UUID.sub("ID", text).strip().splitlines())
