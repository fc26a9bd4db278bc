"""At a terminal there is a question, and no is no."""

import os
import pty
import subprocess
import sys
from pathlib import Path

import pytest

from tests.cli.connecting import Workplace, keys_of
from tests.cli.run import cacp
from tests.support.node import Node


def at_terminal(*words: str, answer: str) -> str:
    """What a command prints at a terminal where a person answers its question."""
    controller, terminal = pty.openpty()
    command = [str(Path(sys.prefix, "bin", "cacp")), *words]
    with subprocess.Popen(command, stdin=terminal, stdout=terminal, stderr=terminal) as process:
        os.close(terminal)
        shown = b""
        try:
            while piece := os.read(controller, 4096):
                shown += piece
                if shown.endswith(b"[Y/n]: "):
                    os.write(controller, answer.encode())
        except OSError:
            # Linux says so when the other end is closed.
            pass
        process.wait()
    os.close(controller)
    return shown.decode()


@pytest.mark.sqlite
def test_a_person_is_asked_before_anything_changes(
    node: Node, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    place = Workplace.at(tmp_path, monkeypatch)
    words = ("connect", "cursor", "--url", node.url, "--db", str(node.db))
    shown = at_terminal(*words, answer="n\n")
    assert "make .cursor/mcp.json" in shown
    assert "Make these changes? [Y/n]: n" in shown
    assert shown.rstrip().endswith("Nothing was changed.")
    assert (place.files(), keys_of(node)) == ({}, [])
    shown = at_terminal(*words, "--yes", answer="")
    assert "Connected Cursor." in shown
    assert "[Y/n]" not in shown
    cacp("disconnect", "cursor")
    assert (place.files(), keys_of(node)) == ({}, [])
