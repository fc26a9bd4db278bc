"""A run of `cacp comply run`: progress on stderr, and reports that are written however it ends."""

import os
import sys
import tempfile
import time
from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

import typer

from cli.terminal import USAGE, fail
from cli.text_files import write_text
from schemas.plain import clean, one_line

if TYPE_CHECKING:
    from comply.outcome import Outcome
    from comply.plan import ComplianceRun
    from comply.result import CaseResult, Subject

WRITING_SHARE = 0.05
"""The largest part of a run's time that may go into writing reports before its end."""


@dataclass
class Reports:
    """The report files that were asked for. Each is replaced as a whole: readers never see a part.

    `known` are the entries of the baseline, `next_at` is when `keep` may write again.
    """

    known: frozenset[str]
    json: Path | None = None
    junit: Path | None = None
    html: Path | None = None
    badge: Path | None = None
    clock: Callable[[], float] = time.monotonic
    next_at: float = 0.0

    def check(self) -> None:
        """End the command now if a report can't be written: the run may take hours."""
        for path in filter(None, (self.json, self.junit, self.html, self.badge)):
            try:
                if path.is_dir():
                    raise IsADirectoryError(0, "it is a folder")
                if _is_ordinary(path):
                    tempfile.TemporaryFile(dir=path.resolve().parent).close()
            except OSError as error:
                fail(USAGE, f"can't write {path}: {error.strerror}")

    def keep(self, subjects: "Sequence[Subject]") -> None:
        """Write the results so far, unless writing has taken too much of the run's time."""
        began = self.clock()
        if began < self.next_at:
            return
        self.write(subjects, only_ordinary=True)
        ended = self.clock()
        self.next_at = ended + (ended - began) / WRITING_SHARE

    def write(self, subjects: "Sequence[Subject]", only_ordinary: bool = False) -> list[str]:
        """Write each report. Returns a line for each that could not be written."""
        from comply.report import badge, data, junit, page

        forms: tuple[tuple[Path | None, Callable[[], str]], ...] = (
            (self.json, lambda: data.as_json(subjects)),
            (self.junit, lambda: junit.junit(subjects, self.known)),
            (self.html, lambda: page.page(subjects)),
            (self.badge, lambda: badge.badge(subjects)),
        )
        problems = []
        for path, make in forms:
            if path is None or (only_ordinary and not _is_ordinary(path)):
                continue
            try:
                _replace(path, make())
            except OSError as error:
                problems.append(f"can't write {path}: {error.strerror}")
        return problems


def _is_ordinary(path: Path) -> bool:
    """Whether it is a file, or nothing yet: not a terminal, pipe or device."""
    return path.is_file() or not path.exists()


def _replace(path: Path, text: str) -> None:
    data = text.encode(errors="replace")
    if not _is_ordinary(path):
        path.write_bytes(data)
        return
    path = path.resolve()
    part = path.with_name(f".{path.name}.{os.getpid()}")
    try:
        part.write_bytes(data)
        part.replace(path)
    finally:
        part.unlink(missing_ok=True)


class Progress:
    """Prints on stderr how each test ended, and keeps the reports up to date."""

    def __init__(self, reports: Reports, quiet: bool) -> None:
        self.reports = reports
        self.quiet = quiet
        self.run: ComplianceRun | None = None

    def __call__(self, subject: "Subject", result: "CaseResult | None") -> None:
        if not self.quiet:
            say(self._line(subject, result))
        if self.run is not None:
            self.reports.keep(self.run.subjects)

    def _line(self, subject: "Subject", result: "CaseResult | None") -> str:
        several = self.run is not None and len(self.run.subjects) > 1
        name = f"{one_line(subject.name)} " if several or result is None else ""
        if result is None:
            return f"{name}was not tested to the end: {one_line(subject.problem, 200)}"
        why = f"  {one_line(result.reason, 100)}" if result.reason else ""
        count = f"{subject.ran}/{len(subject.results)}"
        return f"{name}{count} {result.verdict} {result.key}{why}"


def run_tests(run: "ComplianceRun", reports: Reports) -> None:
    """Run the tests; write the reports of what is finished, whatever ends the run."""
    try:
        run.go()
    finally:
        problems = reports.write(run.subjects)
        with suppress(OSError):
            from comply.report.markdown import markdown

            typer.echo(clean(markdown(run.subjects)), nl=False)
            sys.stdout.flush()
        for problem in problems:
            say(f"cacp: {one_line(problem)}")
    if problems:
        raise typer.Exit(USAGE)


def write_baseline(file: Path, subjects: "Sequence[Subject]") -> None:
    """Write what does not pass as known failures, unless the run broke off: what was not run is
    not known."""
    from comply.baseline import as_text

    if any(subject.problem for subject in subjects):
        say(f"cacp: {file} is not written: the run broke off")
    else:
        write_text(file, as_text(subjects))


def tell_cleanup(subjects: "Sequence[Subject]") -> None:
    """Print what was removed of what the tests had made, and what stays."""
    for subject in subjects:
        for line in subject.cleanup:
            say(f"cacp: {one_line(subject.name)}: {one_line(line, 400)}")


def conclude(outcome: "Outcome", baseline: Path | None) -> None:
    """Print stale baseline entries, errors, what was not tested and how many tests applied; exit
    with the run's status."""
    for entry, why in outcome.stale.items():
        say(f"cacp: {one_line(entry)} {why}: take it out of {baseline}")
    for line in (*outcome.errors, outcome.untested, outcome.coverage):
        if line:
            say(f"cacp: {one_line(line)}")
    raise typer.Exit(outcome.status)


def say(line: str) -> None:
    """Print a line on stderr, if anything still reads it."""
    with suppress(OSError):
        typer.echo(line, err=True)
