"""Files of handoffs against their hashes, and nothing outside the roots (acp-canonical §7.2)."""

import hashlib
import os
from pathlib import Path
from typing import Any

import pytest

from server.workers.artifact_check import check, check_all

SIZE_MAX = 1_000


def ref(path: Path | str, content: bytes = b"hello", **more: Any) -> dict[str, Any]:
    return {
        "type": "file",
        "path": str(path),
        "sha256": hashlib.sha256(content).hexdigest(),
        **more,
    }


@pytest.fixture
def root(tmp_path: Path) -> Path:
    (tmp_path / "root" / "deep").mkdir(parents=True)
    (tmp_path / "root" / "deep" / "a.txt").write_bytes(b"hello")
    (tmp_path / "outside").mkdir()
    (tmp_path / "outside" / "secret").write_bytes(b"hello")
    return tmp_path / "root"


def outcome(one: dict[str, Any], root: Path) -> str:
    found = check(one, [root], SIZE_MAX)
    assert str(root.parent) not in found.detail
    return found.outcome


def test_content_is_compared(root: Path) -> None:
    path = root / "deep" / "a.txt"
    assert outcome(ref(path), root) == "verified"
    assert outcome(ref(path, size_bytes=5), root) == "verified"
    assert outcome(ref(path, b"other"), root) == "hash_mismatch"
    assert outcome(ref(path, size_bytes=6), root) == "hash_mismatch"
    assert outcome(ref(root / "deep" / "none"), root) == "missing_artifact"
    assert outcome(ref(path / "below"), root) == "missing_artifact"


def test_nothing_outside_is_read(root: Path) -> None:
    """Whatever there is outside is answered alike: no path tells what exists."""
    outside = root.parent / "outside"
    for path in (
        outside / "secret",
        outside / "none",
        f"{root}/../outside/secret",
        f"{root}/deep/../../outside/secret",
        f"{root}-not/a",
        "relative",
        root,
        f"{root}/a\0b",
    ):
        assert outcome(ref(path), root) == "policy_violation"


def test_no_link_is_followed(root: Path) -> None:
    (root / "link").symlink_to(root.parent / "outside" / "secret")
    (root / "folder").symlink_to(root.parent / "outside")
    (root / "inner").symlink_to(root / "deep" / "a.txt")
    for path in ("link", "folder/secret", "inner"):
        assert outcome(ref(root / path), root) in ("policy_violation", "missing_artifact")


def test_a_root_that_is_a_link_is_a_root(root: Path) -> None:
    (root.parent / "alias").symlink_to(root)
    alias = root.parent / "alias"
    assert check(ref(alias / "deep" / "a.txt"), [alias], SIZE_MAX).outcome == "verified"
    assert check(ref(root / "deep" / "a.txt"), [alias], SIZE_MAX).outcome == "verified"


def test_only_plain_files_of_a_bounded_size(root: Path) -> None:
    os.mkfifo(root / "pipe")
    (root / "large").write_bytes(b"x" * (SIZE_MAX + 1))
    for path in ("pipe", "large", "deep"):
        assert outcome(ref(root / path), root) == "policy_violation"


def test_what_is_required_is_looked_for_without_a_hash_too(root: Path) -> None:
    """§6, §7.2 rule 4."""
    there = {"type": "file", "path": str(root / "deep" / "a.txt")}
    gone = {"type": "file", "path": str(root / "deep" / "none")}
    outside = {"type": "file", "path": str(root.parent / "outside" / "none")}
    for required, outcomes in (
        (True, ("unchecked", "missing_artifact", "policy_violation")),
        (False, ("unchecked", "unchecked", "unchecked")),
        (None, ("unchecked", "unchecked", "unchecked")),
    ):
        found = tuple(outcome(one | {"required": required}, root) for one in (there, gone, outside))
        assert found == outcomes
    assert "the file exists" in check(there | {"required": True}, [root], SIZE_MAX).detail
    assert outcome(there | {"required": True, "size_bytes": 6}, root) == "hash_mismatch"


def test_what_is_not_required_may_be_missing_and_not_be_wrong(root: Path) -> None:
    optional = ref(root / "deep" / "none", required=False)
    found = check(optional, [root], SIZE_MAX)
    assert found == ("unchecked", "the file does not exist, and is not required")
    assert outcome(ref(root / "deep" / "a.txt", b"other", required=False), root) == "hash_mismatch"
    assert outcome(ref(root.parent / "outside" / "x", required=False), root) == "policy_violation"


def test_what_is_no_file_or_has_no_hash_is_unchecked(root: Path) -> None:
    package = {
        "artifacts": [
            {"artifact_id": "a", "ref": {"type": "branch", "path": "main"}},
            {"artifact_id": "b", "ref": {"type": "file", "path": "/etc/passwd"}},
            {"artifact_id": "c", "ref": ref(root / "deep" / "a.txt")},
        ]
    }
    found = check_all(package, [root], SIZE_MAX)
    assert [(one["artifactId"], one["outcome"]) for one in found] == [
        ("a", "unchecked"),
        ("b", "unchecked"),
        ("c", "verified"),
    ]
