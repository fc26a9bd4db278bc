"""What commands share that run processes and show their state until Ctrl-C."""

import os
import select
import signal
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any, TypeVar

import typer

from cli.terminal import dump

View = TypeVar("View")


def watch(look: Callable[[], View], show: Callable[[View], None], seconds: float) -> None:
    """Show the state again and again, until Ctrl-C."""
    while True:
        show(look())
        time.sleep(seconds)


def print_changes(as_json: Callable[[View], Any]) -> Callable[[View], None]:
    """Prints a state as a line of JSON, unless it was the last one."""
    last = ""

    def show(view: View) -> None:
        nonlocal last
        text = dump(as_json(view), indent=None)
        if text != last:
            typer.echo(text)
        last = text

    return show


@contextmanager
def keys() -> Iterator[Callable[[float], str | None]]:
    """A function that waits for a key for a number of seconds. It returns None without a key."""
    if not sys.stdin.isatty() or sys.platform == "win32":
        yield lambda seconds: time.sleep(seconds)
        return
    import termios
    import tty

    descriptor = sys.stdin.fileno()
    before = termios.tcgetattr(descriptor)
    tty.setcbreak(descriptor)

    def key_within(seconds: float) -> str | None:
        ready, _, _ = select.select([descriptor], [], [], seconds)
        return os.read(descriptor, 1).decode(errors="replace") if ready else None

    try:
        yield key_within
    finally:
        termios.tcsetattr(descriptor, termios.TCSADRAIN, before)


@contextmanager
def ended_by_signals() -> Iterator[None]:
    """Make SIGTERM and a closed terminal end the processes as Ctrl-C does."""

    def end(*_: object) -> None:
        raise KeyboardInterrupt

    kinds = [signal.SIGTERM, *([signal.SIGHUP] if hasattr(signal, "SIGHUP") else [])]
    before = [signal.signal(kind, end) for kind in kinds]
    try:
        yield
    finally:
        for kind, handler in zip(kinds, before, strict=True):
            signal.signal(kind, handler)
