"""Runs an opened run under signals, with something to watch, to its report."""

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
from threader.errors import ThreaderError
from threader.needs import place_of
from threader.outbox import outbox_summary
from threader.overview import overview
from threader.report import write_report
from threader.run import Event, Interrupted, Listener, Run
from threader.signatures import one_line
from threader.view import LiveView, PlainView

INTERRUPTED = 130
SIGNALS = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)


def _warn(text: str) -> None:
    """A line on standard error, where there still is one."""
    with suppress(OSError):
        print(text, file=sys.stderr)


def _unstoppable(listener: Listener) -> Listener:
    """Shows events as `listener` does, but a run outlives its audience: where the output can't be
    written any more (a pipe whose reader has gone, a full disk), nothing more is written there.
    """

    def show(event: Event, state: RunState) -> None:
        try:
            listener(event, state)
        except OSError as error:
            # What is still buffered would fail again when the interpreter ends.
            with Path(os.devnull).open("wb") as nothing:
                os.dup2(nothing.fileno(), sys.stdout.fileno())
            reason = error.strerror or type(error).__name__
            _warn(f"the output cannot be written any more ({reason}); the run goes on without it")

    return show


def _print_event(event: Event, _: RunState) -> None:
    line = {"event": event.kind, "text": event.text, "task": event.task_id}
    print(json.dumps(line), flush=True)


def _watcher(
    opened: Run, *, plain: bool, as_json: bool
) -> tuple[Listener, AbstractContextManager[object]]:
    if as_json:
        return _print_event, nullcontext()
    if plain or not sys.stdout.isatty():
        return PlainView(), nullcontext()
    from rich.console import Console

    live = LiveView(Console(), opened.state)
    return live, live


async def _supervised(opened: Run) -> None:
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


def _tell_stopped(opened: Run) -> None:
    """Renew the report of a run that stopped in its midst; one that never began has none."""
    if any(item.ended is None for item in opened.state.interruptions):
        with suppress(OSError):
            write_report(opened.project, opened.state)


def drive(
    opened: Run, *, plain: bool, compat: str | None, as_json: bool
) -> tuple[int, dict[str, Any]]:
    """Run to the end; returns the exit code and a summary with the report's path.

    A format that `compat` names stays the run's, so that any command goes on with it.
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
            _tell_stopped(opened)
            raise ThreaderError(
                f"the run stopped: {reason}; mend that and go on with `cacp thread resume`"
            ) from error
        except ThreaderError:
            _tell_stopped(opened)
            raise
    html, _ = write_report(opened.project, opened.state)
    reports = outbox_summary(opened.store.folder)
    for problem in reports["problems"] if reports else ():
        _warn(f"node: {one_line(problem)}; `cacp thread resume` sends what waits")
    facts = overview(opened.project, opened.state, reports)
    summary = {**facts, "report": str(html), "interrupted": interrupted}
    if interrupted:
        _warn(f"interrupted; go on with `{place_of(opened.project).thread('resume')}`")
        return INTERRUPTED, summary
    done = all(task.status is TaskStatus.DONE for task in opened.state.tasks.values())
    return 0 if done else 1, summary
