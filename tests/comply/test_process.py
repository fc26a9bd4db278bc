"""A process under test: what it says, its bounds, and that nothing of it is left."""

import asyncio
import os
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Any

import pytest

from comply import process
from comply.process import LOG_BYTES, OUTPUT_BYTES, OUTPUT_LINES, Child, NotStarted
from tests.support.waiting import PATIENCE, eventually, is_running


def run(
    script: str, work: Callable[[Child], Awaitable[Any]] | None = None
) -> tuple[bytes, list[str], Child]:
    """What a shell says on stdout, why it ended, and the child."""
    said: list[bytes] = []
    ended: list[str] = []

    async def whole() -> Child:
        child = await Child.start(
            ["sh", "-c", script], marker=os.urandom(8).hex(), heard=said.append, ended=ended.append
        )
        try:
            await (work(child) if work else child.wait())
        finally:
            await child.end(0)
        return child

    child = asyncio.run(asyncio.wait_for(whole(), PATIENCE))
    return b"".join(said), ended, child


def test_lines_are_heard_whole_and_the_end_of_stderr_is_kept() -> None:
    heard: list[bytes] = []

    async def whole() -> Child:
        script = "printf 'a\\n%0200000d\\n\\nlast' 0; printf '%030000d' 0 >&2; echo end >&2; exit 3"
        child = await Child.start(
            ["sh", "-c", script], marker="m", heard=heard.append, ended=lambda why: None
        )
        await child.wait()
        await child.end(0)
        return child

    child = asyncio.run(whole())
    assert heard == [b"a\n", b"0" * 200_000 + b"\n", b"\n", b"last"]
    said, _, kept = child.log.partition("\n")
    assert (said, len(kept)) == (f"… {30_004 - LOG_BYTES} bytes before", LOG_BYTES)
    assert child.log.endswith("000end\n")


def test_a_line_that_its_end_cuts_off_is_not_heard() -> None:
    async def written(child: Child) -> None:
        await asyncio.to_thread(eventually, lambda: "written" in child.log)

    script = "printf 'whole\\n{\"cut'; echo written >&2; exec sleep 600"
    assert run(script, written)[0] == b"whole\n"


@pytest.mark.parametrize(
    ("script", "why"),
    [
        ("exit 7", "exited with status 7"),
        ("kill -9 $$", "was ended by SIGKILL"),
        ("exec >&- 2>&-; sleep 600", "closed its standard output"),
    ],
)
def test_why_it_ended_is_said(script: str, why: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(process, "LAST_SECONDS", 0.2)
    assert run(script)[1] == [why]


@pytest.mark.parametrize("argv", [["/no/such"], ["a\0b"], [str(Path(__file__))]])
def test_what_cant_be_started_is_said(argv: list[str]) -> None:
    with pytest.raises(NotStarted, match="can't start "):
        asyncio.run(Child.start(argv, marker="m", heard=lambda line: None, ended=lambda why: None))


@pytest.mark.parametrize(
    ("script", "bound"),
    [
        ("yes", "20000 lines"),
        ("tr '\\0' x < /dev/zero", "16 MiB"),
        ("yes >&2", "16 MiB"),
    ],
)
def test_a_flood_is_ended_at_its_bound_and_leaves_others_their_turn(
    script: str, bound: str
) -> None:
    turns = 0

    async def count(child: Child) -> None:
        nonlocal turns
        while not child.flood:
            turns += 1
            await asyncio.sleep(0)
        await child.wait()

    said, ended, _ = run(script, count)
    assert ended == [f"wrote more than {bound}"]
    assert len(said) <= OUTPUT_BYTES
    assert said.count(b"\n") <= OUTPUT_LINES
    assert turns >= (100 if "MiB" in bound else 1)


@pytest.mark.parametrize("ending", ["exit", "cat"])
def test_its_children_end_with_it_in_its_group_or_out_of_it(
    ending: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Whether it ends by itself or is ended; and those who hold its pipes hold up nobody."""
    monkeypatch.setattr(process, "LAST_SECONDS", 0.2)
    pids: list[int] = []

    async def noted(child: Child) -> None:
        while len(pids) < 2:
            pids[:] = [int(line) for line in b"".join(said).splitlines()]
            await asyncio.sleep(0.01)
        if ending == "exit":
            await child.wait()

    said: list[bytes] = []

    async def whole() -> None:
        script = f"sleep 600 & echo $!; setsid sh -c 'echo $$; exec sleep 600' & {ending}"
        if ending == "exit":
            script = script.replace("& exit", "& sleep 0.2; exit")
        child = await Child.start(
            ["sh", "-c", script], marker="apart", heard=said.append, ended=lambda why: None
        )
        try:
            await noted(child)
        finally:
            await child.end(0)

    asyncio.run(asyncio.wait_for(whole(), PATIENCE))
    for pid in pids:
        eventually(lambda pid=pid: not is_running(pid))  # type: ignore[misc]


def test_what_it_does_not_read_is_counted() -> None:
    async def fill(child: Child) -> None:
        writing = asyncio.create_task(child.write(b"x" * 1_000_000))
        await asyncio.sleep(0)
        assert child.unread > 500_000
        writing.cancel()

    run("sleep 600", fill)
