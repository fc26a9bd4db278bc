"""The report."""

import asyncio
from html.parser import HTMLParser
from pathlib import Path

import pytest

from schemas.run_state import RunState
from tests.threader.projects import Bench, heal_block, result_block, write
from threader.load import load_project
from threader.report import MAX_DETAILS, duration_text, report_data, write_report


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
    project = load_project(bench.save())
    html, markdown = write_report(project.manifest, state, bench.state_dir)
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
    assert "| A | DONE | 1 | 0 |  |" in text


def test_long_runs_are_cut_and_say_so(tmp_path: Path) -> None:
    bench, state = make(tmp_path)
    quiet = state.tasks["A"]
    many = {f"Q{index}": quiet for index in range(MAX_DETAILS + 10)}
    state = state.model_copy(update={"tasks": {**many, **state.tasks}})
    manifest = load_project(bench.save()).manifest
    data = report_data(manifest, state, bench.state_dir)
    assert data["tasks"][0].task_id == "B", "trouble comes first"
    assert data["hidden_tasks"] == 12
    html, _ = write_report(manifest, state, bench.state_dir)
    assert "12 more tasks" in html.read_text()


def test_a_run_that_has_not_begun(tmp_path: Path) -> None:
    bench = Bench(tmp_path / "p", ["A"])
    opened = bench.open()
    opened.store.prepare()
    html, markdown = write_report(opened.project.manifest, opened.state, opened.store.folder)
    assert "PENDING" in html.read_text()
    assert "| A | PENDING | 0 | 0 |  |" in markdown.read_text()


@pytest.mark.parametrize(
    ("seconds", "text"),
    [(0.42, "0.4 s"), (42, "42 s"), (200, "3 min 20 s"), (7500, "2 h 5 min"), (59.7, "1 min 0 s")],
)
def test_durations(seconds: float, text: str) -> None:
    assert duration_text(seconds) == text
