"""Key files: readable by their owner only, and refused otherwise."""

import stat
from pathlib import Path

import pytest

from cli.hook import key_of
from cli.key_file import place, read_key, write_private

KEY = "cacp_sk_live_0123456789abcdef"


def test_only_its_owner_can_read_what_is_written(tmp_path: Path) -> None:
    file = tmp_path / "a" / "b" / "x.key"
    write_private(file, f"{KEY}\n")
    write_private(file, f"{KEY}\n")
    assert read_key(str(file)) == KEY
    assert stat.S_IMODE(file.stat().st_mode) == 0o600
    assert stat.S_IMODE(file.parent.stat().st_mode) == 0o700
    assert [path.name for path in file.parent.iterdir()] == ["x.key"]


@pytest.mark.parametrize("mode", [0o640, 0o604, 0o620])
def test_a_file_that_others_may_open_is_refused(tmp_path: Path, mode: int) -> None:
    file = tmp_path / "x.key"
    file.write_text(KEY)
    file.chmod(mode)
    with pytest.raises(ValueError, match=rf"open to other users \(mode {mode:04o}\).*chmod 600"):
        read_key(str(file))


@pytest.mark.parametrize("text", ["", "cacp_sk_short", f"{KEY} {KEY}", "\xff" * 5])
def test_a_file_without_a_key_is_refused_without_showing_it(tmp_path: Path, text: str) -> None:
    file = tmp_path / "x.key"
    write_private(file, text)
    with pytest.raises(ValueError, match="holds no key") as refused:
        read_key(str(file))
    assert "short" not in str(refused.value)


def test_a_missing_file_and_a_folder_are_named(tmp_path: Path) -> None:
    with pytest.raises(ValueError, match=r"none\.key does not exist"):
        read_key(str(tmp_path / "none.key"))
    with pytest.raises(ValueError, match="can't be read: Is a directory"):
        read_key(str(tmp_path))


def test_the_home_directory_can_be_written_as_a_tilde(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("HOME", str(tmp_path))
    write_private(tmp_path / "x.key", KEY)
    assert place("~/x.key") == tmp_path / "x.key"
    assert read_key("~/x.key") == KEY
    assert key_of("~/x.key", None) == KEY
