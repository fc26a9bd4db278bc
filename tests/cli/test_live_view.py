"""What is shown until Ctrl-C, and the keys that are read meanwhile."""

import os
import signal
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from cli.live_view import ended_by_signals, keys, print_changes, watch
from tests.support.waiting import PATIENCE


def test_a_state_is_printed_when_it_has_changed(capsys: pytest.CaptureFixture[str]) -> None:
    def states() -> Iterator[int]:
        yield from (1, 1, 2, 2, 1)
        raise KeyboardInterrupt

    given = states()
    with pytest.raises(KeyboardInterrupt):
        watch(lambda: next(given), print_changes(lambda state: {"state": state}), 0)
    assert capsys.readouterr().out.splitlines() == ['{"state": 1}', '{"state": 2}', '{"state": 1}']


@pytest.mark.parametrize("kind", [signal.SIGTERM, signal.SIGHUP])
def test_signals_end_it_as_ctrl_c_does(kind: signal.Signals) -> None:
    before = signal.getsignal(kind)
    with pytest.raises(KeyboardInterrupt), ended_by_signals():
        os.kill(os.getpid(), kind)
    assert signal.getsignal(kind) is before


def test_keys_are_read_one_by_one_without_enter(monkeypatch: pytest.MonkeyPatch) -> None:
    ours, theirs = os.openpty()
    with os.fdopen(theirs) as terminal, monkeypatch.context() as patched:
        patched.setattr(sys, "stdin", terminal)
        with keys() as key_within:
            os.write(ours, b"2p")
            assert [key_within(PATIENCE), key_within(PATIENCE), key_within(0)] == ["2", "p", None]
    os.close(ours)


def test_without_a_terminal_there_are_no_keys(monkeypatch: pytest.MonkeyPatch) -> None:
    with Path(os.devnull).open() as nothing, monkeypatch.context() as patched:
        patched.setattr(sys, "stdin", nothing)
        with keys() as key_within:
            assert key_within(0) is None
