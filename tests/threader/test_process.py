"""Child processes (agent-threader-v2 §5 "Core Runtime Rules")."""

import asyncio
import os
from pathlib import Path

import pytest

from tests.support.waiting import until
from tests.threader.projects import is_alive
from threader.outcome import Ending
from threader.process import MARKER, Exit, kill_leftovers, run_process


def sh(tmp_path: Path, script: str, *, timeout: float = 10, **fields: object) -> Exit:
    return asyncio.run(
        run_process(
            ["/bin/sh", "-c", script],
            cwd=tmp_path,
            env=dict(os.environ),
            log_path=tmp_path / "log",
            timeout_sec=timeout,
            **fields,  # type: ignore[arg-type]
        )
    )


def test_output_is_combined_in_order(tmp_path: Path) -> None:
    (tmp_path / "in").write_text("given\n")
    ended = sh(tmp_path, "cat; echo err >&2; echo out; exit 3", stdin_path=tmp_path / "in")
    assert (ended.ending, ended.exit_code) == (Ending.EXITED, 3)
    assert (tmp_path / "log").read_text() == "given\nerr\nout\n"


def test_a_timeout_kills_the_whole_group(tmp_path: Path) -> None:
    script = "trap '' TERM; sleep 60 & echo $! > child; wait; sleep 60"
    for seconds in (0.3, 3, 30):
        ended = sh(tmp_path, script, timeout=seconds)
        assert ended.ending is Ending.TIMED_OUT
        if (tmp_path / "child").exists():
            break
    assert not is_alive(int((tmp_path / "child").read_text()))


def test_children_left_by_a_finished_leader_are_killed(tmp_path: Path) -> None:
    ended = sh(tmp_path, "sleep 60 & echo $! > child; exit 0")
    assert ended.exit_code == 0
    assert not is_alive(int((tmp_path / "child").read_text()))


def test_a_log_beyond_its_limit_ends_the_process(tmp_path: Path) -> None:
    ended = sh(tmp_path, "yes", max_log_bytes=100_000)
    assert ended.ending is Ending.LOG_TOO_LARGE


def test_what_cannot_start_says_so(tmp_path: Path) -> None:
    async def run(*argv: str) -> Exit:
        return await run_process(
            argv, cwd=tmp_path, env={}, log_path=tmp_path / "log", timeout_sec=1
        )

    assert asyncio.run(run("/no/such/program")).ending is Ending.NOT_STARTED
    assert asyncio.run(run("/bin/echo", "\0")).ending is Ending.NOT_STARTED
    assert "No such file" in (tmp_path / "log").read_text()


def test_cancelling_kills(tmp_path: Path) -> None:
    async def main() -> None:
        task = asyncio.create_task(
            run_process(
                ["/bin/sh", "-c", "echo $$ > child; sleep 60"],
                cwd=tmp_path,
                env=dict(os.environ),
                log_path=tmp_path / "log",
                timeout_sec=60,
            )
        )
        child = tmp_path / "child"
        await until(lambda: child.exists() and child.read_text())
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task

    asyncio.run(main())
    assert not is_alive(int((tmp_path / "child").read_text()))


def test_leftovers_are_found_by_their_marker_wherever_they_went(tmp_path: Path) -> None:
    marker = str(tmp_path)
    env = {**os.environ, MARKER: marker}
    script = "setsid sleep 60 & echo $! > child; sleep 0.2"

    async def start() -> None:
        process = await asyncio.create_subprocess_exec(
            "/bin/sh", "-c", script, cwd=tmp_path, env=env
        )
        await process.wait()

    asyncio.run(start())
    assert kill_leftovers(marker) >= 1
    assert kill_leftovers(marker) == 0
