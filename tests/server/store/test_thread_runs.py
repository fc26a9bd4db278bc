"""The last report of each run."""

from server.store import thread_runs
from server.store.connection import Connection
from server.store.thread_runs import RunRow

LATEST = (2**62, "")


def row(run: str, at: int, project: str = "p") -> RunRow:
    return RunRow(project, run, "aid://x/a@1", "RUNNING", "2026-01-01T00:00:00Z", at, "{}")


def test_a_report_replaces_the_one_before(db: Connection) -> None:
    thread_runs.put(db, row("r", 1), "aid://x/a")
    thread_runs.put(db, row("r", 2), "aid://x/a")
    assert thread_runs.named(db, "p", "r") == [row("r", 2)]


def test_two_agents_may_report_runs_of_one_id(db: Connection) -> None:
    thread_runs.put(db, row("r", 1), "aid://x/a")
    thread_runs.put(db, row("r", 2), "aid://x/b")
    assert [entry.reported_at for entry in thread_runs.named(db, "p", "r")] == [2, 1]


def test_pages_go_back_in_time(db: Connection) -> None:
    for at in range(1, 6):
        thread_runs.put(db, row(f"r{at}", at, f"p{at % 2}"), "aid://x/a")
    first = thread_runs.page(db, None, LATEST, 2)
    assert [entry.run_id for entry in first] == ["r5", "r4"]
    rest = thread_runs.page(db, None, (first[-1].reported_at, first[-1].run_id), 9)
    assert [entry.run_id for entry in rest] == ["r3", "r2", "r1"]
    assert [entry.run_id for entry in thread_runs.page(db, "p0", LATEST, 9)] == ["r4", "r2"]


def test_the_oldest_runs_of_a_project_are_forgotten(db: Connection) -> None:
    for at in range(1, thread_runs.KEPT + 3):
        thread_runs.put(db, row(f"r{at}", at), "aid://x/a")
    kept = thread_runs.page(db, "p", LATEST, 999)
    assert len(kept) == thread_runs.KEPT
    assert kept[-1].run_id == "r3"
