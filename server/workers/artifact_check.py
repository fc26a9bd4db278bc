"""Whether a handoff's files are what their hashes say (acp-canonical §7.2 rule 4).

Files are read under the operator's roots only, one path component after the other and without
following a link, so that nothing outside can be reached, whatever is exchanged meanwhile. A report
names the artifact, never a path.
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


class ArtifactCheck(NamedTuple):
    outcome: Outcome
    detail: str


def check_all(
    package: dict[str, Any], roots: Sequence[Path], size_max: int
) -> list[dict[str, str]]:
    """What came of each artifact of a package, as `ArtifactCheck`s."""
    return [
        {"artifactId": one["artifact_id"], "outcome": found.outcome, "detail": found.detail}
        for one in package["artifacts"]
        for found in [check(one["ref"], roots, size_max)]
    ]


def check(ref: dict[str, Any], roots: Sequence[Path], size_max: int) -> ArtifactCheck:
    """Look for a `file` that has a `sha256` or is required, and compare the two; anything else is
    unchecked. What is missing is no fault of what is said not to be required (§6)."""
    unchecked = why_unchecked(ref)
    if unchecked is not None:
        return ArtifactCheck("unchecked", unchecked)
    path = PurePosixPath(ref["path"])
    root = _root_of(path, roots)
    if root is None:
        return ArtifactCheck("policy_violation", "it is not under a root that this node may read")
    try:
        with _opened(root, path.relative_to(root).parts) as descriptor:
            return _compare(descriptor, ref, size_max)
    except (FileNotFoundError, NotADirectoryError):
        if ref.get("required") is False:
            return ArtifactCheck("unchecked", "there is no such file, and it is not required")
        return ArtifactCheck("missing_artifact", "there is no such file")
    except OSError:
        return ArtifactCheck("policy_violation", "it is a link, or can't be read")


def _root_of(path: PurePosixPath, roots: Sequence[Path]) -> PurePosixPath | None:
    if not path.is_absolute() or ".." in path.parts or "\0" in str(path):
        return None
    known = (PurePosixPath(one) for root in roots for one in (root.absolute(), root.resolve()))
    return next((root for root in known if path != root and path.is_relative_to(root)), None)


@contextmanager
def _opened(root: PurePosixPath, parts: Sequence[str]) -> Iterator[int]:
    """A descriptor of root/parts, reached without following a link below the root."""
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


def _compare(descriptor: int, ref: dict[str, Any], size_max: int) -> ArtifactCheck:
    found = os.fstat(descriptor)
    if not stat.S_ISREG(found.st_mode):
        return ArtifactCheck("policy_violation", "it is no plain file")
    if found.st_size > size_max:
        return ArtifactCheck("policy_violation", f"it has more than {size_max} bytes")
    expected = ref.get("size_bytes")
    if expected is not None and expected != found.st_size:
        return ArtifactCheck("hash_mismatch", f"it should have {expected} bytes")
    if ref.get("sha256") is None:
        return ArtifactCheck(
            "unchecked", "it is there; without a sha256 its content is not compared"
        )
    digest, left = hashlib.sha256(), size_max
    while chunk := os.read(descriptor, CHUNK):
        left -= len(chunk)
        if left < 0:
            return ArtifactCheck("policy_violation", f"it has more than {size_max} bytes")
        digest.update(chunk)
    if digest.hexdigest() != ref["sha256"]:
        return ArtifactCheck("hash_mismatch", "its content is not what sha256 says")
    return ArtifactCheck("verified", "its content is what sha256 says")
