"""What is known of processes: real ones. `test_serving.py` has those of providers."""

import os
import signal
import socket
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from proof import own_processes
from proof.own_processes import StartedProcess, end_all_of, listens, shell_words, started_by
from tests.support.waiting import eventually

OWN = {process for process in started_by(os.getpid()) if process.pid == os.getpid()}


@contextmanager
def shell(command: str, folder: Path) -> Iterator[int]:
    with subprocess.Popen(shell_words(command), cwd=folder, start_new_session=True) as process:
        try:
            yield process.pid
        finally:
            end_all_of(process.pid, 0)


def pid_in(file: Path) -> int:
    eventually(lambda: file.exists() and file.read_text().endswith("\n"))
    return int(file.read_text())


def test_what_a_command_starts_is_its_own_also_where_it_leaves_it(tmp_path: Path) -> None:
    command = "(setsid sh -c 'sleep 600 & echo $! > orphan' &); sleep 600 & echo $! > child; wait"
    with shell(command, tmp_path) as leader:
        orphan, child = pid_in(tmp_path / "orphan"), pid_in(tmp_path / "child")
        started = {process.pid for process in started_by(leader)}
        assert {leader, orphan, child} <= started
        assert os.getpid() not in started
        end_all_of(leader, 30)
        assert started_by(leader) == set()
        for pid in (orphan, child):
            assert all(process.pid != pid for process in started_by(pid))


def test_what_ignores_the_signal_is_killed_after_the_grace(tmp_path: Path) -> None:
    with shell("trap '' TERM; echo $$ > up; while :; do sleep 0.1; done", tmp_path) as leader:
        pid_in(tmp_path / "up")
        end_all_of(leader, 0.2)
        assert started_by(leader) == set()


def test_the_children_of_one_that_is_gone_are_known_by_it(tmp_path: Path) -> None:
    with shell("setsid sh -c 'echo $$ > away; sleep 600; :' & wait", tmp_path) as leader:
        away = pid_in(tmp_path / "away")
        eventually(lambda: len(started_by(leader)) == 3)
        before = started_by(leader)
        os.kill(leader, signal.SIGKILL)
        eventually(lambda: leader not in {process.pid for process in started_by(leader)})
        assert {process.pid for process in started_by(leader, before)} >= {away}
        for process in started_by(leader, before):
            os.kill(process.pid, signal.SIGKILL)


def test_an_id_that_came_again_is_another_process() -> None:
    [own] = OWN
    other = StartedProcess(own.pid, own.began - 1)
    assert own not in started_by(2**22, {other})


@pytest.mark.parametrize(
    ("family", "at", "host"),
    [
        (socket.AF_INET, "127.0.0.1", "127.0.0.1"),
        (socket.AF_INET, "0.0.0.0", "127.0.0.1"),
        (socket.AF_INET6, "::1", "::1"),
        (socket.AF_INET6, "::", "127.0.0.1"),
        (socket.AF_INET6, "::ffff:127.0.0.1", "127.0.0.1"),
    ],
)
def test_who_listens(family: socket.AddressFamily, at: str, host: str) -> None:
    with socket.socket(family) as own:
        if family == socket.AF_INET6:
            own.setsockopt(socket.IPPROTO_IPV6, socket.IPV6_V6ONLY, 0)
        own.bind((at, 0))
        port = own.getsockname()[1]
        assert not listens(OWN, host, port), "it is bound only"
        own.listen()
        assert listens(OWN, host, port)
        assert not listens(set(), host, port)


def test_one_of_several_that_is_anothers_is_enough(tmp_path: Path) -> None:
    """As with SO_REUSEPORT, or with another family of addresses."""
    listening = "import socket, sys, time; s = socket.socket(); s.setsockopt(1, 15, 1); "
    listening += "s.bind(('127.0.0.1', int(sys.argv[1]))); s.listen(); print(flush=True); "
    with socket.socket() as own:
        own.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEPORT, 1)
        own.bind(("127.0.0.1", 0))
        own.listen()
        port = own.getsockname()[1]
        words = [sys.executable, "-c", f"{listening} time.sleep(600)", str(port)]
        assert listens(OWN, "127.0.0.1", port)
        with subprocess.Popen(words, stdout=subprocess.PIPE) as other:
            assert other.stdout is not None
            other.stdout.readline()
            assert not listens(OWN, "127.0.0.1", port)
            other.kill()


def test_an_address_elsewhere_is_not_asked_about() -> None:
    with socket.create_server(("127.0.0.2", 0)) as own:
        assert not listens(OWN, "127.0.0.1", own.getsockname()[1])


def test_without_proc_nothing_is_known(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(own_processes, "PROC", tmp_path)
    assert not own_processes.knows()
    assert started_by(os.getpid()) == set()
    assert shell_words("true") == ["sh", "-c", "true"]
