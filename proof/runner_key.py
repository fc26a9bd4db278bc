"""A runner's keys as its file holds them: that by which it calls the node, and that with which it
signs receipts. Only the public part of the second leaves the runner's machine."""

import json
import os
import secrets
import stat
import sys
from base64 import urlsafe_b64decode, urlsafe_b64encode
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Self

from peers.signing import SigningKey

_OTHERS = 0o077
_SIZE_MAX = 4096
_SEED = 32


class UnusableRunnerKey(ValueError):
    """A file that holds no runner's keys, or that others can read; in one line."""


@dataclass(frozen=True, slots=True)
class RunnerKeys:
    """The keys of the runner `agent_id`. `repo` is the name of the only repo that it runs for; ""
    for any. `seed` is the private part of the signing key, URL-safe base64 of 32 bytes."""

    agent_id: str
    repo: str
    api_key: str
    seed: str

    @classmethod
    def new(cls, agent_id: str, repo: str, api_key: str) -> Self:
        """With a new signing key."""
        seed = urlsafe_b64encode(secrets.token_bytes(_SEED)).decode()
        return cls(agent_id, repo, api_key, seed)

    @classmethod
    def read(cls, file: Path) -> Self:
        """The keys in a file. Raises UnusableRunnerKey."""
        text = _private_text(file)
        try:
            keys = cls(**json.loads(text))
            is_whole = all(isinstance(value, str) for value in asdict(keys).values())
            if is_whole and len(urlsafe_b64decode(keys.seed)) == _SEED:
                return keys
        except (ValueError, TypeError):
            pass
        raise UnusableRunnerKey(
            f"the runner's key file {file} should hold what `cacp keys create --runner` writes"
        )

    def text(self) -> str:
        """What its file holds."""
        return json.dumps(asdict(self), indent=1) + "\n"

    @property
    def signing(self) -> SigningKey:
        return SigningKey(urlsafe_b64decode(self.seed))


def _private_text(file: Path) -> str:
    """The text of a file that only its owner can read. Raises UnusableRunnerKey."""
    try:
        with file.open("rb") as opened:
            mode = os.fstat(opened.fileno()).st_mode
            text = opened.read(_SIZE_MAX)
    except OSError as error:
        raise UnusableRunnerKey(
            f"the runner's key file {file} can't be read: {error.strerror}"
        ) from None
    # Windows has no such modes.
    if mode & _OTHERS and sys.platform != "win32":
        raise UnusableRunnerKey(
            f"the runner's key file {file} is open to other users (mode {stat.S_IMODE(mode):04o}): "
            f"close it with `chmod 600 {file}`, and replace the key if they could read it"
        )
    return text.decode(errors="replace")
