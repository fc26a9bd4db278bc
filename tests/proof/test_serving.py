"""Providers that are started from a checkout: real processes."""

import os
import signal
import socket
import subprocess
import sys
from pathlib import Path

import httpx
import pytest

from proof.sender import BaseUrl
from proof.serving import NotAnswering, serving
from tests.support.node import free_port
from tests.support.waiting import eventually

SERVER = f"{sys.executable} -m http.server --bind 127.0.0.1"


@pytest.fixture
def port() -> int:
    return free_port()


def url_of(port: int) -> BaseUrl:
    return BaseUrl(f"http://127.0.0.1:{port}")


def is_free(port: int) -> bool:
    with socket.socket() as one:
        return one.connect_ex(("127.0.0.1", port)) != 0


def test_it_answers_from_the_folder_and_is_ended_after(port: int, tmp_path: Path) -> None:
    (tmp_path / "a.txt").write_text("of this checkout")
    with serving(f"exec {SERVER} {port}", url_of(port), tmp_path, 30) as served:
        assert httpx.get(f"http://127.0.0.1:{port}/a.txt").text == "of this checkout"
        assert served.ended is None
        eventually(lambda: "GET /a.txt" in "\n".join(served.printed()))
    assert served.ended is not None
    eventually(lambda: is_free(port))


def test_all_that_it_started_ends_with_it(port: int, tmp_path: Path) -> None:
    """Also what ignores SIGTERM, and what its leader has left behind."""
    started = tmp_path / "child"
    stubborn = (
        f"(trap '' TERM; sleep 600 & echo $! > {started}; wait) & "
        f"until [ -s {started} ]; do :; done; {SERVER} {port}"
    )
    with serving(stubborn, url_of(port), tmp_path, 30):
        child = int(started.read_text())
    eventually(lambda: not _runs(child))


def _runs(pid: int) -> bool:
    try:
        os.kill(pid, 0)
        state = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0]
    except (ProcessLookupError, FileNotFoundError):
        return False
    return state != "Z"


def test_a_daemon_that_left_its_session_ends_with_it(port: int, tmp_path: Path) -> None:
    """And is known as its own: it is what answers."""
    daemon = f"(setsid sh -c '{SERVER} {port} & echo $! > {tmp_path}/daemon' &); exec sleep 600"
    with serving(daemon, url_of(port), tmp_path, 30) as served:
        pid = int((tmp_path / "daemon").read_text())
        served.check(url_of(port))
    assert served.ended is not None
    assert not _runs(pid)
    assert is_free(port)


def test_something_else_that_takes_the_address_is_not_taken_for_it(
    port: int, tmp_path: Path
) -> None:
    """It listens only once the provider, which never will, was started."""
    go = tmp_path / "go"
    late = f"until [ -e {go} ]; do sleep 0.01; done; exec {SERVER} {port}"
    with subprocess.Popen(["sh", "-c", late], cwd=tmp_path, stderr=subprocess.DEVNULL) as other:
        try:
            with (
                pytest.raises(NotAnswering, match="something else answers at"),
                serving(f"touch {go}; exec sleep 600", url_of(port), tmp_path, 30),
            ):
                raise AssertionError
        finally:
            other.terminate()


def test_something_else_that_takes_its_place_later_is_told(port: int, tmp_path: Path) -> None:
    with serving(
        f"{SERVER} {port} & echo $! > pid; wait; sleep 600", url_of(port), tmp_path, 30
    ) as served:
        served.check(url_of(port))
        os.kill(int((tmp_path / "pid").read_text()), signal.SIGKILL)
        eventually(lambda: is_free(port))
        with (
            socket.create_server(("127.0.0.1", port)),
            pytest.raises(NotAnswering, match="something else answers at"),
        ):
            served.check(url_of(port))


def test_where_the_system_does_not_tell_it_is_believed(
    port: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("proof.own_processes.PROC", tmp_path / "none")
    with serving(f"{SERVER} {port}", url_of(port), tmp_path, 30) as served:
        assert httpx.get(f"http://127.0.0.1:{port}/").status_code == 200
    assert served.ended is not None
    eventually(lambda: is_free(port))


ENDLESS = """
import socket, sys, threading, time
listening = socket.create_server(("127.0.0.1", int(sys.argv[1])))
def answer(to):
    to.recv(65536)
    to.sendall(sys.argv[2].encode().decode("unicode_escape").encode())
    while True:
        to.sendall(b"x")
        time.sleep(0.01)
while True:
    threading.Thread(target=answer, args=(listening.accept()[0],), daemon=True).start()
"""


def test_an_answer_without_an_end_is_an_answer(port: int, tmp_path: Path) -> None:
    (tmp_path / "endless.py").write_text(ENDLESS)
    begin = r"HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\n\r\n"
    command = f"exec {sys.executable} endless.py {port} '{begin}'"
    with serving(command, url_of(port), tmp_path, 30) as served:
        assert served.ended is None


def test_a_head_without_an_end_is_none(port: int, tmp_path: Path) -> None:
    (tmp_path / "endless.py").write_text(ENDLESS)
    command = f"exec {sys.executable} endless.py {port} 'HTTP/1.1 200 OK'"
    with (
        pytest.raises(NotAnswering, match=r"it did not answer at .* within 1 s"),
        serving(command, url_of(port), tmp_path, 1),
    ):
        raise AssertionError


def test_it_is_ended_after_an_error_too(port: int, tmp_path: Path) -> None:
    with (
        pytest.raises(ZeroDivisionError),
        serving(f"{SERVER} {port}", url_of(port), tmp_path, 30) as served,
    ):
        raise ZeroDivisionError
    assert served.ended is not None
    eventually(lambda: is_free(port))


def test_what_answers_already_is_not_taken_for_it(tmp_path: Path) -> None:
    with socket.create_server(("127.0.0.1", 0)) as other:
        port = other.getsockname()[1]
        ran = tmp_path / "ran"
        with (
            pytest.raises(
                NotAnswering, match=f"something answers at http://127.0.0.1:{port} already"
            ),
            serving(f"touch {ran}", url_of(port), tmp_path, 30),
        ):
            raise AssertionError
    assert not ran.exists()


@pytest.mark.parametrize(
    ("command", "seconds", "why", "printed"),
    [
        ("echo no module; exit 3", 30, "it ended with status 3 before it answered", "no module"),
        ("no-such-program", 30, "it ended with status 127", "not found"),
        ("echo slow; exec sleep 600", 0.2, "it did not answer at .* within 0.2 s", "slow"),
    ],
)
def test_what_does_not_answer_is_told_with_what_it_printed(
    port: int, tmp_path: Path, command: str, seconds: float, why: str, printed: str
) -> None:
    with (
        pytest.raises(NotAnswering, match=why) as told,
        serving(command, url_of(port), tmp_path, seconds),
    ):
        raise AssertionError
    assert printed in "\n".join(told.value.printed)


def test_only_the_end_of_what_it_printed_is_told(port: int, tmp_path: Path) -> None:
    with (
        pytest.raises(NotAnswering) as told,
        serving("seq 100000; printf 'a\\377b'; exit 1", url_of(port), tmp_path, 30),
    ):
        raise AssertionError
    assert told.value.printed[-2:] == ["100000", "a\ufffdb"]
    assert len(told.value.printed) == 20


def test_it_is_started_on_this_machine_only(tmp_path: Path) -> None:
    with (
        pytest.raises(NotAnswering, match=r"https://example\.com is not on this machine"),
        serving("true", BaseUrl("https://example.com"), tmp_path, 30),
    ):
        raise AssertionError
