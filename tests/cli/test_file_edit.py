"""Changes to files are computed first, and made as a whole."""

from pathlib import Path

import pytest

from cli.file_edit import FileEdit, apply, edit_of


def test_a_change_is_computed_then_made_then_taken_back(tmp_path: Path) -> None:
    file = tmp_path / ".opencode" / "plugins" / "x.js"
    (made,) = edit_of(file, lambda text: "new")
    assert made == FileEdit(file, None, "new")
    assert made.summary == f"make {file}"
    assert list(tmp_path.iterdir()) == []
    apply([made])
    assert file.stat().st_mode & 0o777 == 0o600
    (removed,) = edit_of(file, lambda text: None)
    assert removed.summary == f"remove {file}"
    apply([removed])
    assert list(tmp_path.iterdir()) == []


def test_mode_and_links_stay(tmp_path: Path) -> None:
    real, link = tmp_path / "real.json", tmp_path / "settings.json"
    real.write_text("{}")
    real.chmod(0o640)
    link.symlink_to(real)
    changes = edit_of(link, lambda text: f"{text}\n")
    assert changes[0].summary == f"change {real}"
    apply(changes)
    assert (link.is_symlink(), real.read_text()) == (True, "{}\n")
    assert real.stat().st_mode & 0o777 == 0o640
    assert edit_of(link, lambda text: text) == []


def test_a_file_that_changed_meanwhile_is_left_alone(tmp_path: Path) -> None:
    file = tmp_path / "settings.json"
    changes = edit_of(file, lambda text: "new")
    file.write_text("theirs")
    with pytest.raises(ValueError, match="changed by another program"):
        apply(changes)
    assert file.read_text() == "theirs"


def test_folders_of_others_stay(tmp_path: Path) -> None:
    file = tmp_path / "mine" / "settings.json"
    apply(edit_of(file, lambda text: "x"))
    apply(edit_of(file, lambda text: None))
    assert file.parent.is_dir()


def test_a_new_file_gets_the_mode_and_every_byte_of_the_text(tmp_path: Path) -> None:
    for mode in (0o600, 0o644):
        file = tmp_path / f"{mode}.md"
        apply([FileEdit(file, None, "a\r\nb\n")], mode)
        assert (file.stat().st_mode & 0o777, file.read_bytes()) == (mode, b"a\r\nb\n")
