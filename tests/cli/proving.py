"""A runner's machine, as the tests of commands that leave receipts have it."""

import sys
from pathlib import Path
from typing import Any
from uuid import uuid4

import pytest

from tests.cli.run import cacp
from tests.proof.checkout import Checkout
from tests.support.node import REPO
from tests.support.runner import Runner
from tests.support.team import Team

Json = dict[str, Any]
TEST = "import pathlib, sys; sys.exit(pathlib.Path('code.txt').read_text() != 'right')"
NOWHERE = "http://127.0.0.1:9"


class Bench:
    """A runner's machine: a checkout, the runner's keys, and a contract that asks for receipts."""

    def __init__(self, team: Team, folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        self.team, self.node = team, team.node
        self.checkout = Checkout(folder / "api")
        self.runner = Runner.on(team.node)
        self.key_file = folder / "runner.json"
        self.key_file.write_text(self.runner.keys.text())
        self.key_file.chmod(0o600)
        self.checkout.commit(code_txt="wrong")
        self.first = self.checkout.commit(code_txt="right")
        self.contract = ""
        monkeypatch.chdir(self.checkout.folder)

    def built(self, commit: str | None = None, **params: Any) -> str:
        """The contract's id, which both have completed at a commit."""
        here = commit or self.checkout.git("rev-parse", "HEAD")
        self.name = f"Contract {uuid4().hex}"
        self.contract = self.team.implemented(commit=here, name=self.name, **params)
        return self.contract

    def verify(self, *words: str, repo: str = REPO, url: str = "", command: str = TEST) -> Any:
        options = ["--contract", self.contract, "--repo", repo, "--key-file", str(self.key_file)]
        typed = ["verify", *options, *words, "--", sys.executable, "-c", command]
        return cacp(*typed, url=url or self.node.url)

    @property
    def status(self) -> str:
        return str(self.team.contract(self.contract)["status"])

    @property
    def receipts(self) -> list[Json]:
        listed = self.team.backend("receipt/list", contractId=self.contract)
        return [each["receipt"] for each in listed["receipts"]]

    def moved(self, monkeypatch: pytest.MonkeyPatch) -> None:
        """Have the node answer for the address where it will not be any more."""
        from cli import client

        node = self.node

        class Moved(client.NodeClient):
            def __init__(self, url: str, *args: Any, **more: Any) -> None:
                super().__init__(node.url if url == NOWHERE else url, *args, **more)

        for module in ("cli.receipts", "cli.probe_receipt"):
            monkeypatch.setattr(f"{module}.NodeClient", Moved)
