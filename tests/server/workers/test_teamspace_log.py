"""The logs of teamspaces as files (acp-canonical §8.2)."""

from pathlib import Path
from tempfile import TemporaryDirectory

from hypothesis import given
from hypothesis import strategies as st

from server.workers.teamspace_log import FILES, TeamspaceLog

ROWS = [(seq, f'{{"event":"e{seq}"}}') for seq in (2, 5, 9)]
WHOLE = b'{"event":"e2","seq":2}\n{"event":"e5","seq":5}\n{"event":"e9","seq":9}\n'


def test_the_files_are_those_of_the_specification(tmp_path: Path) -> None:
    assert sorted(FILES.values()) == [
        "artifacts/registry.jsonl",
        "decisions/decisions.jsonl",
        "handoffs/handoffs.jsonl",
        "messages/messages.jsonl",
        "roles/ledger.jsonl",
    ]
    file = TeamspaceLog(tmp_path, "core", "roles")
    file.append(ROWS)
    assert (tmp_path / "core" / "roles" / "ledger.jsonl").read_bytes() == WHOLE


def test_lines_that_are_there_are_not_written_again(tmp_path: Path) -> None:
    file = TeamspaceLog(tmp_path, "core", "handoffs")
    file.append(ROWS[:2])
    file.append(ROWS)
    file.append(ROWS)
    assert file.path.read_bytes() == WHOLE


def test_a_file_that_is_removed_comes_back(tmp_path: Path) -> None:
    file = TeamspaceLog(tmp_path, "core", "handoffs")
    file.append(ROWS)
    file.path.unlink()
    TeamspaceLog(tmp_path, "core", "handoffs").append(ROWS)
    assert file.path.read_bytes() == WHOLE


@given(cut=st.integers(0, len(WHOLE)))
def test_a_crash_anywhere_in_a_write_loses_and_doubles_nothing(cut: int) -> None:

    with TemporaryDirectory() as folder:
        path = Path(folder) / "core" / "handoffs" / "handoffs.jsonl"
        path.parent.mkdir(parents=True)
        path.write_bytes(WHOLE[:cut])
        file = TeamspaceLog(Path(folder), "core", "handoffs")
        file.append(ROWS)
        assert path.read_bytes() == WHOLE
        assert file.last == 9
