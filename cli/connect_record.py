"""What `cacp connect` remembers of a connection: whose key it is, and what each file held before.

`~/.config/cacp/connections/` has two files for each connection, which only their user can read:
`REPO-AGENT.key`, which agents read, and `REPO-AGENT.json`, which `cacp connect` and `cacp
disconnect` read. Neither is inside a repository, so neither can be committed.
"""

import json
from collections.abc import Iterator
from dataclasses import asdict, dataclass, field
from hashlib import sha256
from pathlib import Path
from typing import Any
from urllib.parse import quote

from cli.key_file import place, write_private

FOLDER = "~/.config/cacp/connections"


@dataclass(frozen=True, slots=True)
class FileRecord:
    """A file that was changed: its text `before`, None without a file, and the digest of the text
    that was written."""

    before: str | None
    after: str


@dataclass(slots=True)
class AgentConnection:
    """One agent for one repo. It may work in several checkouts of the repo."""

    agent: str
    repo: str
    agent_id: str
    url: str
    key_id: str | None
    """The key that was made for it; None for one that a person gave."""
    db: str | None
    """The database in which the key was made."""
    checkouts: dict[str, dict[str, FileRecord]] = field(default_factory=dict)
    """By top level, then by path below it."""

    @property
    def key_file(self) -> str:
        return f"{FOLDER}/{self._name}.key"

    @property
    def file(self) -> Path:
        return place(f"{FOLDER}/{self._name}.json")

    @property
    def _name(self) -> str:
        return f"{quote(self.repo, safe='')}-{self.agent}"

    def save(self) -> None:
        """Raises OSError."""
        write_private(self.file, json.dumps(asdict(self), ensure_ascii=False, indent=2) + "\n")

    def forget(self) -> None:
        """Remove its two files. Raises OSError."""
        place(self.key_file).unlink(missing_ok=True)
        self.file.unlink(missing_ok=True)


def digest(text: str) -> str:
    return sha256(text.encode()).hexdigest()


def named(agent: str, repo: str) -> AgentConnection | None:
    """The connection of an agent for a repo. Raises ValueError and OSError."""
    file = AgentConnection(agent, repo, "", "", None, None).file
    return _read(file) if file.exists() else None


def of_checkout(top: Path) -> Iterator[AgentConnection]:
    """The connections of the agents that work in a checkout, also of one that was moved there.
    Raises ValueError and OSError."""
    for file in sorted(place(FOLDER).glob("*.json")):
        connection = _read(file)
        if str(top) not in connection.checkouts:
            moved = _moved_to(top, connection)
            if moved is None:
                continue
            connection.checkouts[str(top)] = connection.checkouts.pop(moved)
        yield connection


def _moved_to(top: Path, connection: AgentConnection) -> str | None:
    """The checkout of a connection that is no longer in its place, and whose files are here."""
    for checkout, files in connection.checkouts.items():
        if not Path(checkout).exists() and any(
            _has_digest(top / path, record.after) for path, record in files.items()
        ):
            return checkout
    return None


def _has_digest(file: Path, wanted: str) -> bool:
    try:
        return digest(file.read_bytes().decode()) == wanted
    except (OSError, UnicodeDecodeError):
        return False


def _read(file: Path) -> AgentConnection:
    try:
        value: dict[str, Any] = json.loads(file.read_text(encoding="utf-8"))
        checkouts = {
            top: {path: FileRecord(**record) for path, record in files.items()}
            for top, files in value.pop("checkouts").items()
        }
        return AgentConnection(**value, checkouts=checkouts)
    except (ValueError, TypeError, KeyError, AttributeError):
        raise ValueError(f"{file} is damaged: remove it, and connect again") from None
