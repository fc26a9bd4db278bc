"""`.cacp/contracts.lock`: which contracts a repository has, in which versions, and the digests of
the files that `cacp pull` wrote."""

import hashlib
import json
from typing import Annotated, Literal

from pydantic import ConfigDict, Field, StringConstraints, ValidationError

from schemas.base import Identifier, Model, Ordinal
from schemas.dialect import DialectName
from schemas.facts import Digest
from schemas.plain import escaped, one_line

LOCK = ".cacp/contracts.lock"
"""The lock's path in the repository."""
Language = Literal["python", "typescript"]

_SEGMENT = r"[A-Za-z0-9_][A-Za-z0-9_.-]{0,119}"
PulledPath = Annotated[
    str,
    StringConstraints(
        max_length=400,
        pattern=rf"^\.cacp/(?:contracts|python/cacp_types|typescript)(?:/{_SEGMENT}){{1,8}}$",
    ),
]
"""A path that `cacp pull` may write or remove: a lock comes with a repository, from anybody."""


class LockModel(Model):
    """A part of the lock."""

    model_config = ConfigDict(
        alias_generator=lambda name: "lockVersion" if name == "lock_version" else name,
        validate_by_name=True,
        extra="forbid",
        strict=True,
    )


class LockedProject(LockModel):
    id: Identifier
    name: Identifier


class LockedTypes(LockModel):
    """What made the types of a contract, and the digest of what it made them of."""

    generator: Identifier
    input: Digest


class LockedContract(LockModel):
    """A contract at its last agreed version. `digest` is that of the content, as receipts name it;
    `files` has the SHA-256 of each file by its path."""

    id: Identifier
    name: Identifier
    version: Ordinal
    digest: Digest
    dialect: DialectName
    files: dict[PulledPath, Digest]
    types: dict[Language, LockedTypes] = {}


class PullLock(LockModel):
    """The whole lock. `repo` is the name of the repo whose contracts alone were pulled.

    `before` is there while a pull writes its files: the digests that each file may have had before.
    A pull that was interrupted leaves it, so that what it did not reach is not taken for edited.
    """

    lock_version: Literal[1]
    project: LockedProject
    repo: Identifier | None = None
    types: list[Language] = []
    contracts: list[LockedContract]
    before: dict[PulledPath, Annotated[list[Digest], Field(max_length=100)]] = {}

    def files(self) -> dict[str, str]:
        """The digest of each file that the lock names."""
        return {path: digest for c in self.contracts for path, digest in c.files.items()}

    def known(self) -> dict[str, set[str]]:
        """The digests that each file may have without having been edited."""
        known = {path: {digest} for path, digest in self.files().items()}
        for path, digests in self.before.items():
            known.setdefault(path, set()).update(digests)
        return known


def lock_of(text: str) -> PullLock:
    """The lock that a file holds. Raises ValueError with what is wrong, in a few words."""
    try:
        value = json.loads(text)
    except (ValueError, RecursionError):
        raise ValueError("it is not JSON; of a merge conflict in it, take either side") from None
    try:
        return PullLock.model_validate(value)
    except ValidationError as error:
        first = error.errors()[0]
        where = ".".join(map(str, first["loc"])) or "it"
        raise ValueError(f"{one_line(where, 80)}: {one_line(first['msg'], 200)}") from None


def lock_text(lock: PullLock) -> str:
    """The file of a lock: the same text for the same lock."""
    value = lock.model_dump(by_alias=True, exclude_none=True, exclude_defaults=True)
    return escaped(json.dumps(value, ensure_ascii=False, indent=2, sort_keys=True)) + "\n"


def digest_of(text: str) -> str:
    """The SHA-256, hex, of a text. Line ends count alike: git may write others."""
    plain = text.replace("\r\n", "\n").encode("utf-8", "surrogatepass")
    return hashlib.sha256(plain).hexdigest()
