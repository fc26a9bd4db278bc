"""Runs an opened run to its report, with signal handlers and a view."""

import asyncio
import json
import os
import signal
import sys
from contextlib import AbstractContextManager, nullcontext, suppress
from pathlib import Path
from typing import Any

from schemas.run_state import RunState, TaskStatus
from threader.compat import result_reader
from threader.errors import Interrupted, ThreaderError
from threader.events import Listener, RunEvent
from threader.needs import place_of
from threader.orchestrator import Orchestrator
from threader.outbox import outbox_summary
from threader.overview import overview
from threader.report import write_report
from threader.signatures import one_line
from threader.view import LiveView, PlainView

INTERRUPTED = 130
SIGNALS = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)


def _warn(text: str) -> None:
    """Print a line on standard error, if that is still open."""
    with suppress(OSError):
        print(text, file=sys.stderr)


def _unstoppable(listener: Listener) -> Listener:
    """A listener like `listener` that does not end the run when its output can't be written.

    After such an error (a pipe without a reader, a full disk) it writes nothing more there.
    """

    def show(event: RunEvent, state: RunState) -> None:
        try:
            listener(event, state)
        except OSError as error:
            # The buffered rest would fail again when the interpreter ends.
            with Path(os.devnull).open("wb") as nothing:
                os.dup2(nothing.fileno(), sys.stdout.fileno())
            reason = error.strerror or type(error).__name__
            _warn(f"the output can no longer be written ({reason}); the run continues without it")

    return show


def _print_event(event: RunEvent, _: RunState) -> None:
    line = {"event": event.kind, "text": event.text, "task": event.task_id}
    print(json.dumps(line), flush=True)


def _watcher(
    opened: Orchestrator, *, plain: bool, as_json: bool
) -> tuple[Listener, AbstractContextManager[object]]:
    if as_json:
        return _print_event, nullcontext()
    if plain or not sys.stdout.isatty():
        return PlainView(), nullcontext()
    from rich.console import Console

    live = LiveView(Console(), opened.state)
    return live, live


async def _supervised(opened: Orchestrator) -> None:
    loop = asyncio.get_running_loop()
    for number in SIGNALS:
        loop.add_signal_handler(number, opened.stop.set)
    manifest = opened.project.manifest
    if manifest.node is None:
        await opened.go()
        return
    import httpx

    from threader.node import HttpNode, NodeReporter

    opened.store.prepare()
    async with httpx.AsyncClient(timeout=10, trust_env=False) as client:
        with opened.store.lock.held():
            port = HttpNode(manifest.node, client)
            started_at = opened.state.started_at
            folder = opened.store.folder
            reporter = NodeReporter(manifest, manifest.node, folder, port, started_at)
            opened.listeners.append(reporter)
            async with reporter.delivering():
                reporter.catch_up(opened.state)
                try:
                    await opened.go()
                except (ThreaderError, OSError):
                    with suppress(OSError):
                        reporter.catch_up(opened.state)
                    raise


def _report_stop(opened: Orchestrator) -> None:
    """Write the report of a run that stopped before its end. One that never began has none."""
    if any(item.ended is None for item in opened.state.interruptions):
        with suppress(OSError):
            write_report(opened.project, opened.state)


def drive(
    opened: Orchestrator, *, plain: bool, compat: str | None, as_json: bool
) -> tuple[int, dict[str, Any]]:
    """Run to the end; returns the exit code and a summary with the report's path.

    The format that `compat` names is stored in the run's state for later commands.
    """
    compat = compat or opened.state.compat
    opened.read_result = result_reader(compat)
    opened.state.compat = compat
    listener, context = _watcher(opened, plain=plain, as_json=as_json)
    opened.listeners.append(_unstoppable(listener))
    interrupted = False
    with context:
        try:
            asyncio.run(_supervised(opened))
        except Interrupted:
            interrupted = True
        except OSError as error:
            reason = error.strerror or type(error).__name__
            _report_stop(opened)
            raise ThreaderError(
                f"the run stopped: {reason}; fix that, then continue with `cacp thread resume`"
            ) from error
        except ThreaderError:
            _report_stop(opened)
            raise
    html, _ = write_report(opened.project, opened.state)
    reports = outbox_summary(opened.store.folder)
    for problem in reports["problems"] if reports else ():
        _warn(f"node: {one_line(problem)}; `cacp thread resume` sends those that wait")
    facts = overview(opened.project, opened.state, reports)
    summary = {**facts, "report": str(html), "interrupted": interrupted}
    if interrupted:
        _warn(f"interrupted; continue with `{place_of(opened.project).thread('resume')}`")
        return INTERRUPTED, summary
    done = all(task.status is TaskStatus.DONE for task in opened.state.tasks.values())
    return 0 if done else 1, summary
