"""A disk that a node fills up, for real: a small one where we may mount one, else the kernel's
limit of the size of files."""

import os
import resource
import shutil
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from tests.support.node import Node

DISK_BYTES = 8 * 1024 * 1024


@contextmanager
def small_disk(folder: Path) -> Iterator[bool]:
    """Make `folder` a disk of 8 MB, where we may mount one; whether it is."""
    folder.mkdir()
    size = f"size={DISK_BYTES}"
    command = ["mount", "-t", "tmpfs", "-o", size, "tmpfs", str(folder)]
    mounted = shutil.which("mount") is not None
    mounted = mounted and subprocess.run(command, capture_output=True).returncode == 0
    try:
        yield mounted
    finally:
        if mounted:
            subprocess.run(["umount", "--lazy", str(folder)], check=True)


@contextmanager
def full(node: Node, *, disk: bool, spare: int = 0) -> Iterator[None]:
    """Leave no room for the node but `spare` bytes: fill its disk, else hold its files to the size
    they have."""
    if not disk:
        largest = max(path.stat().st_size for path in node.folder.iterdir())
        with file_size_limit(node, largest + spare):
            yield
        return
    filler = node.folder / "filler"
    with pytest.raises(OSError, match="No space"):
        filler.write_bytes(b"x" * DISK_BYTES)
    os.truncate(filler, filler.stat().st_size - spare)
    yield
    filler.unlink()


@contextmanager
def file_size_limit(node: Node, size: int) -> Iterator[None]:
    """The kernel refuses the node what it writes beyond `size` bytes of any file."""
    assert node.process is not None
    before = resource.prlimit(node.process.pid, resource.RLIMIT_FSIZE)
    resource.prlimit(node.process.pid, resource.RLIMIT_FSIZE, (size, before[1]))
    yield
    resource.prlimit(node.process.pid, resource.RLIMIT_FSIZE, before)


def health(node: Node) -> tuple[int, str | None]:
    """The status of /health, and why it is not well."""
    response = node.get("/health")
    return response.status_code, response.json().get("reason")
