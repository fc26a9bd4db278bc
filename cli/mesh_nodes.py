"""Three nodes of one mesh as processes on loopback, each with a folder of its own."""

import json
import os
import secrets
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

from cli.client import NodeClient, NodeError
from cli.local_process import LocalProcess
from cli.mesh_view import NodeView

ROLES = {
    "backend": ("backend-api", "python"),
    "frontend": ("frontend-app", "typescript"),
    "mobile": ("mobile-app", "swift"),
}
"""The nodes by name: the repo that each speaks for, and its language."""

ANSWER_SECONDS = 2.0


class LocalNode(LocalProcess):
    """One node: its settings in `FOLDER/NAME/node.toml`, its log beside them."""

    def __init__(self, folder: Path, name: str, port: int) -> None:
        self.config = folder / name / "node.toml"
        super().__init__(folder / name, name, port, "--config", str(self.config))
        self.client = NodeClient(self.url, timeout=ANSWER_SECONDS)

    def configure(self, token_file: Path, peers: Sequence[str]) -> None:
        repo, language = ROLES[self.name]
        settings: dict[str, object] = {
            "host": "127.0.0.1",
            "port": self.port,
            "db": str(self.folder / "cacp.db"),
            "repo": repo,
            "role": self.name,
            "language": language,
            "mesh_token_file": str(token_file),
            "peers": list(peers),
        }
        self.folder.mkdir(parents=True, exist_ok=True)
        # JSON's strings, numbers and lists are TOML's too.
        written = [f"{name} = {json.dumps(value)}\n" for name, value in settings.items()]
        self.config.write_text("".join(written))

    def look(self) -> NodeView:
        """Its state now, whoever started it."""
        try:
            health = self.client.get("/health")["status"]
            held = self.client.get("/mesh")
            peers = self.client.get("/peers")["peers"]
        except NodeError:
            return NodeView(self.name, self.url, self.pid, "starting" if self.pid else "down")
        return NodeView(self.name, self.url, self.pid, health, held, peers)


class LocalMesh:
    """The three nodes. They run within `with`."""

    def __init__(self, folder: Path, port: int) -> None:
        self.folder = folder.resolve()
        self.members = [
            LocalNode(self.folder, name, port + place) for place, name in enumerate(ROLES)
        ]
        self._pool = ThreadPoolExecutor(len(self.members))

    def __enter__(self) -> "LocalMesh":
        """Start all three. Raises ValueError when one can't start, OSError for its folder."""
        token = self._token()
        for member in self.members:
            others = [other.url for other in self.members if other is not member]
            member.configure(token, others)
        try:
            for member in self.members:
                member.start()
        except BaseException:
            self.__exit__()
            raise
        return self

    def __exit__(self, *_: object) -> None:
        for member in self.members:
            member.stop()
        for member in self.members:
            member.wait()
            member.client.close()
        self._pool.shutdown()

    def look(self) -> list[NodeView]:
        """Ask all nodes concurrently: one that hangs doesn't delay the others."""
        return list(self._pool.map(LocalNode.look, self.members))

    def _token(self) -> Path:
        """The file with the mesh token; made at the first start, readable by this user alone."""
        self.folder.mkdir(parents=True, exist_ok=True)
        path = self.folder / "token"
        try:
            descriptor = os.open(path, os.O_CREAT | os.O_EXCL | os.O_WRONLY, 0o600)
        except FileExistsError:
            return path
        with os.fdopen(descriptor, "w") as file:
            file.write(secrets.token_hex(24) + "\n")
        return path
