"""Checks whether a handoff's files match their hashes (acp-canonical §7.2 rule 4).

Only files under the operator's roots are read. Each path component is opened without following
links, so that concurrent changes of the folders can't lead outside. A report names the artifact,
never a path.
"""

import hashlib
import os
import stat
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path, PurePosixPath
from typing import Any, Literal, NamedTuple

from server.domain.acp.handoff import why_unchecked

Outcome = Literal["verified", "unchecked", "missing_artifact", "hash_mismatch", "policy_violation"]

CHUNK = 1024 * 1024


class ArtifactVerdict(NamedTuple):
    outcome: Outcome
    detail: str


def check_all(
    package: dict[str, Any], roots: Sequence[Path], size_max: int
) -> list[dict[str, str]]:
    """The `schemas.handoff.ArtifactCheck` of each artifact of a package."""
    return [
        {"artifactId": artifact["artifact_id"], **check(artifact["ref"], roots, size_max)._asdict()}
        for artifact in package["artifacts"]
    ]


def check(ref: dict[str, Any], roots: Sequence[Path], size_max: int) -> ArtifactVerdict:
    """Compare a `file` that has a `sha256` or is required; anything else is unchecked. A missing
    file with `required: false` is unchecked too (§6)."""
    unchecked = why_unchecked(ref)
    if unchecked is not None:
        return ArtifactVerdict("unchecked", unchecked)
    path = PurePosixPath(ref["path"])
    root = _root_of(path, roots)
    if root is None:
        return ArtifactVerdict("policy_violation", "it is not under a root that this node may read")
    try:
        with _opened(root, path.relative_to(root).parts) as descriptor:
            return _compare(descriptor, ref, size_max)
    except (FileNotFoundError, NotADirectoryError):
        if ref.get("required") is False:
            return ArtifactVerdict("unchecked", "the file does not exist, and is not required")
        return ArtifactVerdict("missing_artifact", "the file does not exist")
    except OSError:
        return ArtifactVerdict("policy_violation", "it is a link, or is not readable")


def _root_of(path: PurePosixPath, roots: Sequence[Path]) -> PurePosixPath | None:
    if not path.is_absolute() or ".." in path.parts or "\0" in str(path):
        return None
    names = (PurePosixPath(name) for root in roots for name in (root.absolute(), root.resolve()))
    return next((root for root in names if path != root and path.is_relative_to(root)), None)


@contextmanager
def _opened(root: PurePosixPath, parts: Sequence[str]) -> Iterator[int]:
    """A descriptor of root/parts, opened without following links below the root."""
    descriptor = os.open(root, os.O_RDONLY | os.O_DIRECTORY)
    try:
        for place, part in enumerate(parts):
            last = place == len(parts) - 1
            flags = os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK
            below = os.open(part, flags if last else flags | os.O_DIRECTORY, dir_fd=descriptor)
            os.close(descriptor)
            descriptor = below
        yield descriptor
    finally:
        os.close(descriptor)


def _compare(descriptor: int, ref: dict[str, Any], size_max: int) -> ArtifactVerdict:
    status = os.fstat(descriptor)
    if not stat.S_ISREG(status.st_mode):
        return ArtifactVerdict("policy_violation", "it is not a regular file")
    if status.st_size > size_max:
        return ArtifactVerdict("policy_violation", f"it has more than {size_max} bytes")
    expected = ref.get("size_bytes")
    if expected is not None and expected != status.st_size:
        return ArtifactVerdict(
            "hash_mismatch", f"it has {status.st_size} bytes, and size_bytes says {expected}"
        )
    if ref.get("sha256") is None:
        return ArtifactVerdict(
            "unchecked", "the file exists; without a sha256 its content is not compared"
        )
    digest, left = hashlib.sha256(), size_max
    while chunk := os.read(descriptor, CHUNK):
        left -= len(chunk)
        if left < 0:
            return ArtifactVerdict("policy_violation", f"it has more than {size_max} bytes")
        digest.update(chunk)
    if digest.hexdigest() != ref["sha256"]:
        return ArtifactVerdict("hash_mismatch", "its content does not match its sha256")
    return ArtifactVerdict("verified", "its content matches its sha256")
