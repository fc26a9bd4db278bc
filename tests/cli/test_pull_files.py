from pathlib import Path

import pytest

from cli.pull_files import UnusableFile, read_all, read_lock, write_all
from cli.pull_lock import LOCK, lock_of
from cli.pull_plan import file_plan
from tests.cli.test_pull_plan import PATHS, lock_with, on_disk


def pull(top: Path, files: dict[str, str], version: int = 1) -> bool:
    old = read_lock(top)
    disk = read_all(top, PATHS)
    plan = file_plan(old.known() if old else {}, files, disk)
    assert plan.edited == ()
    return write_all(top, plan, disk, old, lock_with(files, version))


def test_files_and_lock_are_written_and_removed(tmp_path: Path) -> None:
    assert read_lock(tmp_path) is None
    assert pull(tmp_path, {PATHS[0]: "1", PATHS[1]: "ü"})
    assert (tmp_path / PATHS[1]).read_bytes() == "ü".encode()
    assert pull(tmp_path, {PATHS[0]: "2"}, version=2)
    assert read_all(tmp_path, PATHS) == on_disk({PATHS[0]: "2"})
    assert read_lock(tmp_path) == lock_with({PATHS[0]: "2"}, 2)
    assert sorted(path.name for path in (tmp_path / ".cacp").iterdir()) == [
        "contracts",
        "contracts.lock",
    ]


def test_what_is_as_it_should_be_is_not_touched(tmp_path: Path) -> None:
    pull(tmp_path, {PATHS[0]: "1"})
    files = [tmp_path / LOCK, tmp_path / PATHS[0]]
    before = [(path.stat().st_mtime_ns, path.stat().st_ino) for path in files]
    assert not pull(tmp_path, {PATHS[0]: "1"})
    assert [(path.stat().st_mtime_ns, path.stat().st_ino) for path in files] == before


def test_a_write_that_fails_leaves_a_lock_that_knows_all_files(tmp_path: Path) -> None:
    pull(tmp_path, {PATHS[0]: "1", PATHS[1]: "1"})
    disk = read_all(tmp_path, PATHS)
    old = read_lock(tmp_path)
    assert old is not None
    wanted = {PATHS[0]: "2", PATHS[1]: "2"}
    plan = file_plan(old.known(), wanted, disk)
    (tmp_path / PATHS[1]).write_text("changed meanwhile")
    with pytest.raises(ValueError, match="was changed by another program"):
        write_all(tmp_path, plan, disk, old, lock_with(wanted, 2))
    (tmp_path / PATHS[1]).write_text("1")
    during = lock_of((tmp_path / LOCK).read_text())
    assert during.before.keys() == {PATHS[0], PATHS[1]}
    assert read_all(tmp_path, PATHS[:2]) == {PATHS[0]: "2", PATHS[1]: "1"}
    assert pull(tmp_path, {PATHS[0]: "3", PATHS[2]: "3"}, version=3)
    assert read_all(tmp_path, PATHS) == on_disk({PATHS[0]: "3", PATHS[2]: "3"})
    assert read_lock(tmp_path) == lock_with({PATHS[0]: "3", PATHS[2]: "3"}, 3)


@pytest.mark.parametrize("link", [".cacp", ".cacp/contracts", PATHS[0], LOCK])
def test_links_are_not_followed(tmp_path: Path, link: str) -> None:
    outside = tmp_path / "outside"
    outside.mkdir()
    top = tmp_path / "top"
    (top / link).parent.mkdir(parents=True)
    (top / link).symlink_to(outside)
    with pytest.raises(UnusableFile, match=f"{link} is a symbolic link, and none is followed"):
        read_all(top, [PATHS[0], LOCK])
    assert [*outside.iterdir()] == []


def test_what_is_no_text_file_is_named(tmp_path: Path) -> None:
    (tmp_path / PATHS[0]).mkdir(parents=True)
    with pytest.raises(UnusableFile, match=r"a\.json is no file that a pull wrote"):
        read_all(tmp_path, PATHS)
    (tmp_path / PATHS[1]).write_bytes(b"\xff")
    with pytest.raises(UnusableFile, match=r"b\.json is not text"):
        read_all(tmp_path, PATHS[1:])
    other = tmp_path / "other"
    other.mkdir()
    (other / ".cacp").write_text("a file")
    with pytest.raises(UnusableFile, match=r"\.cacp is no folder"):
        read_all(other, PATHS)


def test_a_lock_that_is_none(tmp_path: Path) -> None:
    (tmp_path / ".cacp").mkdir()
    (tmp_path / LOCK).write_text("<<<<<<<")
    with pytest.raises(UnusableFile, match="is no lock of `cacp pull`: it is not JSON"):
        read_lock(tmp_path)
