"""The steps of `cacp comply run`: what is tested, progress as it goes, and reports that are there
whatever ends the run."""

import os
import shlex
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
from schemas.plain import clean, one_line

if TYPE_CHECKING:
    from comply.outcome import Outcome
    from comply.plan import Run
    from comply.result import Result, Subject
    from comply.settings import AgentServer

WRITING_SHARE = 0.05
"""How much of a run's time may go into writing reports before its end."""


def agent_server(settings: Path, name: str) -> "AgentServer":
    from comply.settings import BadSettings
    from comply.settings import agent_server as found

    try:
        return found(read(settings), name, settings.parent)
    except BadSettings as error:
        fail(USAGE, f"{settings}: {error}")


def read(path: Path) -> str:
    try:
        return path.read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError) as error:
        fail(USAGE, f"can't read {path}: {getattr(error, 'strerror', 'it is not UTF-8')}")


def write(path: Path, text: str) -> None:
    try:
        path.write_text(text, encoding="utf-8")
    except OSError as error:
        fail(USAGE, f"can't write {path}: {error.strerror}")


def command_line(command: str) -> str:
    """The command, when a shell could split it."""
    try:
        words = shlex.split(command)
    except ValueError:
        words = []
    if not words:
        fail(USAGE, f"--command: quotes don't match, or it is empty: {command!r}")
    return command


@dataclass
class Reports:
    """The files that were asked for. `write` leaves each old or new, never half of one."""

    known: frozenset[str]
    json: Path | None = None
    junit: Path | None = None
    html: Path | None = None
    badge: Path | None = None
    clock: Callable[[], float] = time.monotonic
    next_at: float = 0.0

    def check(self) -> None:
        """Ends the command when a report could not be written: not after hours, but now."""
        for path in filter(None, (self.json, self.junit, self.html, self.badge)):
            try:
                if path.is_dir():
                    raise IsADirectoryError(0, "it is a folder")
                if _is_ordinary(path):
                    tempfile.TemporaryFile(dir=path.resolve().parent).close()
            except OSError as error:
                fail(USAGE, f"can't write {path}: {error.strerror}")

    def keep(self, subjects: "Sequence[Subject]") -> None:
        """Write what there is by now, unless that would take too much of the time."""
        began = self.clock()
        if began < self.next_at:
            return
        self.write(subjects, only_ordinary=True)
        ended = self.clock()
        self.next_at = ended + (ended - began) / WRITING_SHARE

    def write(self, subjects: "Sequence[Subject]", only_ordinary: bool = False) -> list[str]:
        """Write each report; what went wrong with which."""
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
    """A file, or a place for one; no terminal, pipe or device."""
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
    """Says on stderr how each test ended, and keeps the reports."""

    def __init__(self, reports: Reports, quiet: bool) -> None:
        self.reports = reports
        self.quiet = quiet
        self.run: Run | None = None

    def __call__(self, subject: "Subject", result: "Result | None") -> None:
        if not self.quiet:
            say(self._line(subject, result))
        if self.run is not None:
            self.reports.keep(self.run.subjects)

    def _line(self, subject: "Subject", result: "Result | None") -> str:
        several = self.run is not None and len(self.run.subjects) > 1
        name = f"{one_line(subject.name)} " if several or result is None else ""
        if result is None:
            return f"{name}is not tested to the end: {one_line(subject.problem, 200)}"
        why = f"  {one_line(result.reason, 100)}" if result.reason else ""
        count = f"{subject.ran}/{len(subject.results)}"
        return f"{name}{count} {result.verdict} {result.key}{why}"


def go(run: "Run", reports: Reports) -> None:
    """Run, and write the reports of what is finished, whatever ends it."""
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


def note_known(file: Path, subjects: "Sequence[Subject]") -> None:
    """Write what does not pass as known, if all of it was tried: what was not run is not known."""
    from comply.baseline import as_text

    if any(subject.problem for subject in subjects):
        say(f"cacp: {file} is not written: not all was tested")
    else:
        write(file, as_text(subjects))


def conclude(outcome: "Outcome", baseline: Path | None) -> None:
    """Say what the verdicts alone don't, and end with the status that they come to."""
    for entry, why in outcome.stale.items():
        say(f"cacp: {one_line(entry)} {why}: take it out of {baseline}")
    for line in (*outcome.errors, outcome.untested):
        if line:
            say(f"cacp: {one_line(line)}")
    raise typer.Exit(outcome.status)


def say(line: str) -> None:
    """A line on stderr; nobody may be there to read it."""
    with suppress(OSError):
        typer.echo(line, err=True)
