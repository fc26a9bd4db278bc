"""Apply and take back (agent-threader-v2 §8 "backup before write", "rollback")."""

from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from threader.transaction import FileTransaction, diff_text, recover, temporary_name
from threader.writes import FileChange


def snapshot(root: Path) -> dict[str, tuple[bytes, int] | None]:
    """Every file with its bytes and mode, every folder as None."""
    found: dict[str, tuple[bytes, int] | None] = {}
    for path in sorted(root.rglob("*")):
        name = path.relative_to(root).as_posix()
        found[name] = (path.read_bytes(), path.stat().st_mode) if path.is_file() else None
    return found


@pytest.fixture
def root(tmp_path: Path) -> Path:
    root = tmp_path / "work"
    (root / "src").mkdir(parents=True)
    (root / "src" / "old.py").write_text("old\n")
    (root / "src" / "old.py").chmod(0o755)
    return root


CHANGES = [
    FileChange("src/old.py", b"old\n", b"new\n", 0o755),
    FileChange("src/deep/er/new.py", None, b"fresh\n"),
]


def test_commit_keeps_and_rollback_restores(root: Path, tmp_path: Path) -> None:
    before = snapshot(root)
    transaction = FileTransaction(root, tmp_path / "b" / "A.1")
    transaction.begin(CHANGES)
    assert snapshot(root) == before
    transaction.apply(CHANGES)
    assert (root / "src/deep/er/new.py").read_text() == "fresh\n"
    assert (root / "src/old.py").stat().st_mode & 0o777 == 0o755
    assert transaction.rollback() == []
    assert snapshot(root) == before


def test_what_a_person_edited_meanwhile_is_kept_as_a_copy(root: Path, tmp_path: Path) -> None:
    before = snapshot(root)
    transaction = FileTransaction(root, tmp_path / "backups" / "A.1")
    transaction.begin(CHANGES)
    transaction.apply(CHANGES)
    (root / "src/old.py").write_text("mine\n")
    (root / "src/deep/er/new.py").write_text("mine too\n")
    [(key, notes)] = recover(tmp_path / "backups", lambda key: False).items()
    assert key == "A.1"
    assert notes[1].text == (
        "src/old.py was edited while a task's writes were applied; "
        "that version is kept as backups/A.1/0.edited"
    )
    assert (transaction.folder / "0.edited").read_text() == "mine\n"
    assert (transaction.folder / "1.edited").read_text() == "mine too\n"
    assert snapshot(root) == before


@pytest.mark.parametrize("applied", [0, 1, 2])
@pytest.mark.parametrize("committed", [True, False])
def test_recover_after_a_crash(root: Path, tmp_path: Path, applied: int, committed: bool) -> None:
    """However far it came: undone unless the state knows the attempt as done."""
    before = snapshot(root)
    transaction = FileTransaction(root, tmp_path / "b" / "A.1")
    transaction.begin(CHANGES)
    transaction.apply(CHANGES[:applied])
    (root / "src" / temporary_name("old.py")).write_text("half")
    undone = recover(tmp_path / "b", lambda key: committed and key == "A.1")
    assert undone == ({} if committed else {"A.1": []})
    if not committed:
        assert snapshot(root) == before
    assert recover(tmp_path / "b", lambda key: False) == {}


def test_a_folder_swapped_for_a_link_is_not_followed(root: Path, tmp_path: Path) -> None:
    outside = tmp_path / "outside"
    outside.mkdir()
    transaction = FileTransaction(root, tmp_path / "b" / "A.1")
    change = [FileChange("src/x.py", None, b"x")]
    transaction.begin(change)
    (root / "src").rename(root / "moved")
    (root / "src").symlink_to(outside)
    with pytest.raises(OSError, match=r"Not a directory|Too many levels"):
        transaction.apply(change)
    assert list(outside.iterdir()) == []


NAMES = st.sampled_from(["a", "b", "d/x", "d/y", "d/e/z"])


@given(
    st.dictionaries(NAMES, st.binary(max_size=20), max_size=5),
    st.dictionaries(NAMES, st.binary(max_size=20), min_size=1, max_size=5),
)
@settings(suppress_health_check=[HealthCheck.function_scoped_fixture], deadline=None)
def test_rollback_restores_any_tree(
    tmp_path_factory: pytest.TempPathFactory, first: dict[str, bytes], second: dict[str, bytes]
) -> None:
    base = tmp_path_factory.mktemp("t")
    root = base / "work"
    root.mkdir()
    for name, data in first.items():
        (root / name).parent.mkdir(parents=True, exist_ok=True)
        (root / name).write_bytes(data)
    before = snapshot(root)
    changes = [FileChange(name, first.get(name), data) for name, data in second.items()]
    transaction = FileTransaction(root, base / "backup")
    transaction.begin(changes)
    transaction.apply(changes)
    assert all((root / name).read_bytes() == data for name, data in second.items())
    transaction.rollback()
    assert snapshot(root) == before


def test_diff_text() -> None:
    text = diff_text([FileChange("a", b"x\n", b"y"), FileChange("n", None, b"new\n")])
    assert "-x\n+y\n\\ No newline at end of file\n" in text
    assert "--- /dev/null\n+++ b/n\n" in text
    assert "too large" in diff_text([FileChange("a", b"x\n" * 9000, b"")])


def test_the_longest_name_can_be_written_and_taken_back(root: Path, tmp_path: Path) -> None:
    before = snapshot(root)
    changes = [FileChange("漢" * 85, None, b"x")]
    transaction = FileTransaction(root, tmp_path / "b" / "A.1")
    transaction.begin(changes)
    transaction.apply(changes)
    assert (root / ("漢" * 85)).read_bytes() == b"x"
    transaction.rollback()
    assert snapshot(root) == before
