"""A git repository, a home and stand-ins for agents' commands, as the tests of `cacp connect` use
them."""

import json
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path

import pytest
from typer.testing import Result

from tests.cli.run import cacp
from tests.support.node import Node

AGENT_ID = "aid://example.com/shop@1.0.0"
"""Of the agent of repo `shop` at a node of example.com."""

# What each agent's command prints for a server that it finds in its file.
STAND_IN = """#!{python}
import pathlib, sys
text = pathlib.Path({file!r}).read_text() if pathlib.Path({file!r}).exists() else ""
print("Checking the servers of cacp users ...")
print({line!r} if "cacp" in text else "No servers.")
sys.exit({status})
"""


@dataclass(frozen=True)
class Workplace:
    """Where a person works: `home`, the repository `top`, and `bin`, which is on the PATH."""

    home: Path
    top: Path
    bin: Path

    @classmethod
    def at(cls, folder: Path, monkeypatch: pytest.MonkeyPatch) -> "Workplace":
        place = cls(folder / "home", folder / "shop", folder / "bin")
        for made in (place.home, place.top, place.bin):
            made.mkdir()
        subprocess.run(["git", "init", "-q"], cwd=place.top, check=True)
        (place.bin / "cacp").symlink_to(Path(sys.prefix, "bin", "cacp"))
        monkeypatch.setenv("HOME", str(place.home))
        monkeypatch.setenv("PATH", f"{place.bin}:/usr/bin:/bin")
        monkeypatch.chdir(place.top)
        for name in ("CACP_URL", "CACP_KEY", "CACP_DB"):
            monkeypatch.delenv(name, raising=False)
        return place

    def stand_in(self, program: str, file: str, line: str, status: int = 0) -> None:
        """Put an agent's command on the PATH."""
        script = self.bin / program
        script.write_text(
            STAND_IN.format(python=sys.executable, file=file, line=line, status=status)
        )
        script.chmod(0o755)

    def connect(self, node: Node, agent: str, *options: str) -> Result:
        return cacp("connect", agent, "--url", node.url, "--db", str(node.db), *options)

    def write(self, path: str, text: str) -> Path:
        """A file of the repository."""
        file = self.top / path
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_bytes(text.encode())
        return file

    def files(self) -> dict[str, bytes]:
        """Every file of the repository, and of the home directory."""
        return {
            str(file.relative_to(self.top.parent)): file.read_bytes()
            for folder in (self.top, self.home)
            for file in sorted(folder.rglob("*"))
            if file.is_file() and ".git" not in file.parts
        }


def keys_of(node: Node, agent_id: str = AGENT_ID) -> list[dict[str, object]]:
    """The active keys of an agent."""
    rows = json.loads(cacp("keys", "list", "--json", db=str(node.db)).stdout)
    return [row for row in rows if row["agentId"] == agent_id and not row["revokedAt"]]
