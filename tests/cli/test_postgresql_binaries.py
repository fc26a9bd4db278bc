"""Which PostgreSQL is found, and how the account that runs it reaches it."""

import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

import pytest

from cli import postgresql_binaries
from cli.postgresql_binaries import (
    OLDEST,
    PROGRAMS,
    Account,
    account,
    enters,
    find,
    packaged,
    version_of,
    within_reach,
)

STRANGER = Account(54_321, 54_321)


def installation(home: Path, said: str) -> Path:
    """A folder with programs that tell a version, in an installation of its own."""
    for name in ("bin", "lib", "share"):
        (home / name).mkdir(parents=True)
    for name in PROGRAMS:
        program = home / "bin" / name
        program.write_text(f"#!/bin/sh\necho '{said}'\n")
        program.chmod(0o755)
    return home / "bin"


def test_the_packages_server_is_found_without_importing_it() -> None:
    assert [version_of(folder) for folder in packaged()] == [18, 16]
    code = (
        "import sys; from cli.postgresql_binaries import find; find(); "
        f"sys.exit('{postgresql_binaries.PACKAGE}' in sys.modules)"
    )
    root = Path(postgresql_binaries.__file__).parents[1]
    assert subprocess.run([sys.executable, "-c", code], cwd=root).returncode == 0


def test_an_installed_server_goes_before_the_package(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(postgresql_binaries, "account", lambda: None)
    monkeypatch.setenv("PATH", str(packaged()[1]))
    assert find() == packaged()[1]


def test_an_installed_server_that_is_too_old_is_passed_over(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(postgresql_binaries, "account", lambda: None)
    monkeypatch.setattr(postgresql_binaries, "INSTALLED", tmp_path)
    monkeypatch.setenv("PATH", "/nowhere")
    installation(tmp_path / "13", "postgres (PostgreSQL) 13.9")
    assert find() == packaged()[0]
    newer = installation(tmp_path / "17", "postgres (PostgreSQL) 17.1 (Debian 17.1-1)")
    installation(tmp_path / "9", "postgres (PostgreSQL) 9.6")
    assert find() == newer


def test_without_any_it_says_what_to_install(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(postgresql_binaries, "INSTALLED", tmp_path)
    monkeypatch.setattr(postgresql_binaries, "PACKAGE", "a_package_that_nobody_has")
    monkeypatch.setenv("PATH", "/nowhere")
    with pytest.raises(ValueError, match=r"pip install 'cacp-server\[cluster\]'"):
        find()


def test_a_folder_that_is_given_must_hold_a_server(tmp_path: Path) -> None:
    with pytest.raises(ValueError, match="holds version none"):
        find(tmp_path)
    with pytest.raises(ValueError, match=f"holds version 12 .*{OLDEST} or newer"):
        find(installation(tmp_path / "old", "postgres (PostgreSQL) 12.1"))
    assert version_of(find(packaged()[0])) == 18


@pytest.mark.needs("root")
def test_root_leaves_servers_to_another_account() -> None:
    who = account()
    assert who is not None
    assert who.uid != 0


def test_modes_say_who_enters_a_folder(tmp_path: Path) -> None:
    tmp_path.chmod(0o700)
    owner = tmp_path.stat()
    assert not enters(tmp_path, STRANGER)
    inner = Account(owner.st_uid, owner.st_gid)
    assert enters(tmp_path, inner)
    tmp_path.chmod(0o070)
    assert not enters(tmp_path, inner), "the owner's own bits count"


def test_what_the_account_cannot_reach_is_copied_once(tmp_path: Path) -> None:
    hidden = installation(tmp_path / "hidden", "postgres (PostgreSQL) 18.0")
    assert within_reach(hidden, None) == hidden
    hidden.parent.chmod(0o700)
    with tempfile.TemporaryDirectory() as open_to_all:
        Path(open_to_all).chmod(0o711)
        cache = Path(open_to_all) / "cache"
        copy = within_reach(hidden, STRANGER, cache)
        assert version_of(copy) == 18
        assert enters(copy, STRANGER)
        assert within_reach(hidden, STRANGER, cache) == copy
        assert len(list(cache.iterdir())) == 1
    with pytest.raises(ValueError, match="can't reach"):
        within_reach(hidden, STRANGER, tmp_path / "cache")


@pytest.mark.needs("root")
def test_the_packages_programs_run_from_their_copy() -> None:
    who = account()
    assert who is not None
    with tempfile.TemporaryDirectory() as open_to_all:
        Path(open_to_all).chmod(0o711)
        hidden = Path(open_to_all) / "hidden"
        package = packaged()[0].parent.parent
        for folder in (package, package.with_name(f"{package.name}.libs")):
            shutil.copytree(folder, hidden / folder.name)
        hidden.chmod(0o700)
        programs = hidden / package.name / packaged()[0].parent.name / "bin"
        copy = within_reach(programs, who, Path(open_to_all) / "cache")
        hidden.rename(Path(open_to_all) / "gone")
        for program in ("initdb", "pg_basebackup", "postgres"):
            command = [str(copy / program), "--version"]
            done = subprocess.run(command, user=who.uid, group=who.gid, capture_output=True)
            assert done.returncode == 0, done.stderr


def test_an_installation_that_does_not_stand_by_itself_is_not_copied(tmp_path: Path) -> None:
    programs = installation(tmp_path / "system", "postgres (PostgreSQL) 18.0")
    (tmp_path / "system" / "share").rmdir()
    (tmp_path / "system").chmod(0o700)
    with pytest.raises(ValueError, match="can't reach"):
        within_reach(programs, STRANGER, tmp_path / "cache")
    assert not (tmp_path / "cache").exists()
