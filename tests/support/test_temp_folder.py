"""Where tests keep their files."""

import os
import tempfile
from pathlib import Path

import pytest

from tests.support import temp_folder


@pytest.fixture(autouse=True)
def unset(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """As it is before a first call; `tmp_path` is made before that."""
    monkeypatch.setattr(tempfile, "tempdir", "as it was")
    monkeypatch.setenv("TMPDIR", "undone at the end")
    monkeypatch.delenv("TMPDIR")


def taken(memory: Path, room: int = 1) -> tuple[str | None, str | None]:
    temp_folder.take(memory, room)
    return os.environ.get("TMPDIR"), tempfile.tempdir


def test_memory_is_taken_where_there_is_room(tmp_path: Path) -> None:
    assert taken(tmp_path) == (str(tmp_path), str(tmp_path))


def test_where_there_is_too_little_or_none_the_disk_is(tmp_path: Path) -> None:
    assert taken(tmp_path, 10**18) == (None, "as it was")
    assert taken(tmp_path / "missing") == (None, "as it was")


def test_what_the_environment_names_stays(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TMPDIR", "/there")
    assert taken(tmp_path) == ("/there", "as it was")
