"""Protected files stay as they were (agent-threader-v2 §8)."""

import asyncio
import os
from pathlib import Path

from tests.threader.projects import Bench
from threader.guard import ProtectedFiles


def test_changed_removed_and_replaced_files_come_back(tmp_path: Path) -> None:
    work = tmp_path / "work"
    (work / "deep").mkdir(parents=True)
    files = [work / ".env", work / "deep" / "Server.KEY", work / "lock.txt"]
    for path in files:
        path.write_text("mine")
    files[0].chmod(0o600)
    (work / "free.txt").write_text("free")
    guard = ProtectedFiles(work, ["LOCK.*"], tmp_path / "displaced")
    assert guard.restore() == {}
    files[0].write_text("leaked")
    files[1].unlink()
    files[2].unlink()
    files[2].symlink_to(tmp_path)
    (work / "free.txt").write_text("changed")
    assert sorted(guard.restore()) == [".env", "deep/Server.KEY", "lock.txt"]
    assert [path.read_text() for path in files] == ["mine"] * 3
    assert files[0].stat().st_mode & 0o777 == 0o600
    assert (work / "free.txt").read_text() == "changed"
    assert (tmp_path / "displaced" / "0-.env").read_text() == "leaked"
    assert guard.restore() == {}


def test_a_worker_that_edits_a_protected_file_by_itself(tmp_path: Path) -> None:
    bench = Bench(tmp_path / "p", ["A"])
    (bench.workspace / ".env").write_text("KEY=1\n")
    bench.script("A", "echo KEY=2 > .env")
    state = asyncio.run(bench.run())
    assert bench.tree()[".env"] == "KEY=1\n"
    note = state.tasks["A"].history[0].notes[0]
    assert note.endswith(
        "it was restored, and the changed version is kept as backups/@displaced/0-.env"
    )


def test_what_cannot_be_kept_stops_nothing(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "pipe.key")
    (tmp_path / "gone.key").symlink_to("nowhere")
    assert ProtectedFiles(tmp_path, [], tmp_path / "displaced").restore() == {}


def test_a_file_whose_times_were_set_back_is_looked_at(tmp_path: Path) -> None:
    secret = tmp_path / ".env"
    secret.write_text("A=1")
    guard = ProtectedFiles(tmp_path, [], tmp_path / "displaced")
    info = secret.stat()
    secret.write_text("A=2")
    os.utime(secret, ns=(info.st_atime_ns, info.st_mtime_ns))
    assert list(guard.restore()) == [".env"]
    assert secret.read_text() == "A=1"
