"""The report."""

import asyncio
from html.parser import HTMLParser
from pathlib import Path

import pytest

from schemas.run_state import (
    FileStat,
    Interruption,
    KeptCopy,
    RunState,
    RunStatus,
    TaskStatus,
    Usage,
)
from tests.threader.builders import record
from tests.threader.projects import Bench, heal_block, result_block, write
from threader.initial_state import new_state
from threader.load import load_project
from threader.report import MAX_DETAILS, duration_text, report_data, span_text, write_report


class Checker(HTMLParser):
    """Collects what a page loads from elsewhere, and whether its tags match."""

    VOID = frozenset({"meta", "br", "line", "rect", "link", "img"})

    def __init__(self) -> None:
        super().__init__()
        self.open: list[str] = []
        self.loads: list[str] = []

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        given = dict(attrs)
        if tag in ("script", "link", "img", "iframe"):
            self.loads.append(given.get("src") or given.get("href") or tag)
        if tag not in self.VOID:
            self.open.append(tag)

    def handle_endtag(self, tag: str) -> None:
        if tag not in self.VOID:
            if tag == "rect":
                return
            while self.open and self.open[-1] != tag and self.open[-1] in ("p", "li", "td", "tr"):
                self.open.pop()
            assert self.open, f"stray </{tag}>"
            assert self.open.pop() == tag


def make(tmp_path: Path) -> tuple[Bench, RunState]:
    bench = Bench(tmp_path / "p", ["A", "B"])
    evil = "<script>alert(1)</script>"
    bench.answer("A", result_block("A", summary=evil, writes=[write("a.html", evil + "\n")]))
    bench.answer("B", result_block("B", status="FAILED", summary="unclear"))
    bench.answer("healer", heal_block(learned_rule="Say how."))
    return bench, asyncio.run(bench.run())


def test_one_safe_self_contained_page(tmp_path: Path) -> None:
    bench, state = make(tmp_path)
    html, markdown = write_report(load_project(bench.save()), state)
    page = html.read_text()
    checker = Checker()
    checker.feed(page)
    assert checker.open == []
    assert checker.loads == [], "nothing is loaded from elsewhere"
    assert "<script" not in page
    assert "+&lt;script&gt;alert(1)" in page, "the diff is shown, escaped"
    for part in ("What needs you", "prompt_gap:unclear", "Say how.", "came back 2 times"):
        assert part in page
    text = markdown.read_text()
    assert "- **B** ESCALATED: prompt_gap:unclear came back 2 times" in text
    assert "| A | DONE | 1 | 0 |  | tokens not reported, cost not reported |" in text


def test_long_runs_are_cut_and_say_so(tmp_path: Path) -> None:
    bench, state = make(tmp_path)
    quiet = state.tasks["A"]
    many = {f"Q{index}": quiet for index in range(MAX_DETAILS + 10)}
    state = state.model_copy(update={"tasks": {**many, **state.tasks}})
    project = load_project(bench.save())
    data = report_data(project, state)
    assert data["tasks"][0].task_id == "B", "trouble comes first"
    assert data["hidden_tasks"] == 12
    html, _ = write_report(project, state)
    assert "12 more tasks" in html.read_text()


def test_a_run_that_has_not_begun(tmp_path: Path) -> None:
    bench = Bench(tmp_path / "p", ["A"])
    opened = bench.open()
    opened.store.prepare()
    html, markdown = write_report(opened.project, opened.state)
    assert "PENDING" in html.read_text()
    assert "| A | PENDING | 0 | 0 |  |  |" in markdown.read_text()


@pytest.mark.parametrize(
    ("seconds", "text"),
    [(0.42, "0.4 s"), (42, "42 s"), (200, "3 min 20 s"), (7500, "2 h 5 min"), (59.7, "1 min 0 s")],
)
def test_durations(seconds: float, text: str) -> None:
    assert duration_text(seconds) == text


def at(second: int) -> str:
    return f"2026-03-20T15:21:{second:02}.000000+00:00"


def a_night(bench: Bench) -> RunState:
    """A failed, B held back by it, C done; an outage, a kill, something spent, something kept."""
    manifest = load_project(bench.save()).manifest
    state = new_state(manifest, at(0))
    usage = Usage(input_tokens=900, cached_tokens=800, output_tokens=100, cost_usd=0.25)
    worked = {"duration_sec": 2.0, "exit_code": 0, "usage": usage}
    failed = record("A").model_copy(update={**worked, "said": "No key.\nReally."})
    stat = [FileStat(path="src/c.py", added=7, removed=2)]
    landed = {**worked, "files": ["src/c.py"], "stat": stat, "commit": "c0ffee" * 6 + "abcd"}
    state.tasks["A"].status, state.tasks["C"].status = TaskStatus.ESCALATED, TaskStatus.DONE
    state.tasks["A"].escalation_reason = "used up"
    state.tasks["A"].history = [failed]
    state.tasks["C"].history = [record("C").model_copy(update=landed)]
    state.interruptions = [
        Interruption(kind="outage", cause="rate limited: 429", began=at(5), ended=at(9), tries=3),
        Interruption(
            kind="killed", cause="the runner was killed", began=at(20), ended=at(30), tasks=["C"]
        ),
    ]
    state.kept = [KeptCopy(path="src/c.py", place="backups/C.1/0.edited")]
    state.run_status, state.updated_at = RunStatus.ABORTED, at(40)
    return state


def test_the_report_tells_a_night(tmp_path: Path) -> None:
    bench = Bench(tmp_path / "p", ["A", {"id": "B", "depends_on": ["A"]}, "C"])
    state = a_night(bench)
    project = load_project(bench.save())
    bench.state_dir.mkdir(parents=True)
    html, markdown = write_report(project, state)
    text = markdown.read_text()
    for part in (
        "40 s, interrupted for 14 s",
        "Used: 2 k tokens (1.8 k in, of which 1.6 k cached, 200 out), $0.50.",
        "- **A** ESCALATED: used up\n  Its worker said: No key. Really.\n  Holds back 1: B\n",
        f"      cacp thread resume {project.path} --retry A\n",
        "src/c.py was edited while a task's writes were applied",
        f"      diff -uN {bench.workspace}/src/c.py {bench.state_dir}/backups/C.1/0.edited\n",
        "- **B** waits for A",
        "- outage, 2026-03-20 15:21:05 to 15:21:09 (4.0 s): rate limited: 429",
        "- killed, 2026-03-20 15:21:20 to 15:21:30 (10 s): the runner was killed; cut off: C",
        "1 files, +7 −2.",
        "- `src/c.py` +7 −2",
        "- `c0ffeec0ffee` C: ",
    ):
        assert part in text
    page = html.read_text()
    checker = Checker()
    checker.feed(page)
    assert (checker.open, checker.loads) == ([], [])
    for part in (
        '<div class="said">No key.\nReally.</div>',
        f'<code class="cmd">cacp thread resume {project.path} --retry A</code>',
        '<i class="gap" style="left:50.00%;width:25.00%" title="killed: the runner was killed">',
        "3 attempts met it",
        "cut off, and not counted: C",
        "<code>c0ffeec0ffee</code>",
    ):
        assert part in page


def test_what_no_log_tells_is_not_zero(tmp_path: Path) -> None:
    bench, state = make(tmp_path)
    page, text = (path.read_text() for path in write_report(load_project(bench.save()), state))
    assert "tokens: not reported" in page
    assert "cost: not reported" in page
    assert "$0" not in page
    assert "Used: tokens not reported, cost not reported." in text


@pytest.mark.parametrize(
    ("ended", "text"),
    [
        (None, "2026-03-20 15:21:00 to now"),
        (at(30), "2026-03-20 15:21:00 to 15:21:30"),
        ("2026-03-21T01:00:00.000000+00:00", "2026-03-20 15:21:00 to 2026-03-21 01:00:00"),
    ],
)
def test_spans(ended: str | None, text: str) -> None:
    assert span_text(Interruption(kind="killed", cause="x", began=at(0), ended=ended)) == text


def test_lines_of_one_file_are_summed_over_its_tasks(tmp_path: Path) -> None:
    bench = Bench(tmp_path / "p", ["A", {"id": "B", "depends_on": ["A"]}, "C"])
    state = a_night(bench)
    state.tasks["B"] = state.tasks["C"].model_copy(deep=True)
    state.tasks["B"].history[0].stat.append(FileStat(path="big", added=None, removed=None))
    data = report_data(load_project(bench.save()), state)
    assert [(one.path, one.added, one.removed) for one in data["files"]] == [
        ("src/c.py", 14, 4),
        ("big", None, None),
    ]
    assert (data["added"], data["removed"]) == (14, 4)
