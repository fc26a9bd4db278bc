"""One peer's sender, on a log in memory and a peer that fails when it is told to (design §7)."""

import asyncio
import time
from collections.abc import Callable, Coroutine
from typing import Any

import pytest
from structlog.testing import capture_logs

from peers import sender
from peers.backoff import RETRIED_PER_SECOND
from peers.digest import Name
from peers.errors import CallError, PeerRefused, PeerUnreachable
from peers.sender import UNDELIVERED_SECONDS, ChangePage, Sender, UndeliveredEntity
from tests.support.waiting import until


class Story:
    """A log of changes, and what the peer was told of it."""

    def __init__(self) -> None:
        self.log: list[str] = []
        self.told: list[list[str]] = []
        self.refusal: CallError | None = None
        self.untaken: dict[str, str] = {}
        self.returned = 0
        self._commit = asyncio.Event()
        self.sender = Sender(
            "peer",
            0,
            load=self._load,
            deliver=self._deliver,
            next_commit=lambda: self._commit,
            returned=self._came_back,
        )

    def write(self, *ids: str) -> None:
        self.log += ids
        self._commit.set()
        self._commit = asyncio.Event()

    def _came_back(self) -> None:
        self.returned += 1

    async def _load(self, cursor: int) -> ChangePage:
        rows = self.log[cursor : cursor + 10]
        names = {Name("contract", "p", one): cursor + at for at, one in enumerate(rows, 1)}
        return ChangePage(names, cursor + len(rows), len(rows) == 10)

    async def _deliver(self, names: dict[Name, int]) -> dict[Name, str]:
        if self.refusal is not None:
            raise self.refusal
        self.told.append([name.entity_id for name in names])
        return {
            name: self.untaken[name.entity_id] for name in names if name.entity_id in self.untaken
        }


async def _turns(sender: Sender) -> None:
    async for _ in sender.run():
        pass


async def _run(story: Callable[[Story], Coroutine[None, None, None]]) -> None:
    one = Story()
    task = asyncio.create_task(_turns(one.sender))
    await story(one)
    task.cancel()


def test_a_peer_that_asks_for_time_is_given_it(monkeypatch: pytest.MonkeyPatch) -> None:
    """Nothing is lost, and it is not asked again before."""
    pauses: list[float] = []

    async def story(one: Story) -> None:
        async def pause(seconds: float) -> None:
            pauses.append(seconds)
            one.refusal = None

        monkeypatch.setattr(one.sender, "_pause", pause)
        one.refusal = PeerRefused("refuses", status=429, data={"retryAfter": 41})
        one.write("a")
        await until(lambda: one.told == [["a"]])

    asyncio.run(_run(story))
    assert pauses == [41.0]


def test_changes_of_one_entity_go_together() -> None:
    async def story(one: Story) -> None:
        one.write("a", "b", "a", "a")
        await until(lambda: one.sender.cursor == 4)
        assert one.told == [["a", "b"]]
        one.write("a")
        await until(lambda: one.sender.cursor == 5)
        assert one.told[1:] == [["a"]]

    asyncio.run(_run(story))


def test_a_busy_log_is_sent_in_larger_batches(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sender, "LINGER_SECONDS", 0)
    monkeypatch.setattr(sender, "BUSY_SECONDS", 1)
    lingers, linger = [], sender._linger

    def lingering(sent: int) -> float:
        lingers.append(sent)
        return linger(sent)

    monkeypatch.setattr(sender, "_linger", lingering)

    async def story(one: Story) -> None:
        one.write(*"abcdefg")
        await until(lambda: one.sender.cursor == 7)
        one.write("x")
        await until(lambda: lingers[-1:] == [7])
        one.write("y")
        await until(lambda: one.sender.cursor == 9)
        assert one.told[1:] == [["x", "y"]]

    asyncio.run(_run(story))


def test_the_cursor_moves_only_on_a_confirmed_answer() -> None:
    async def story(one: Story) -> None:
        one.refusal = PeerUnreachable("down")
        one.write("a")
        await until(lambda: one.sender.failures == 1)
        assert (one.sender.cursor, one.sender.last_error) == (0, "down")
        one.refusal = None
        one.sender.wake()
        await until(lambda: one.sender.cursor == 1)
        assert (one.told, one.sender.failures, one.returned) == ([["a"]], 0, 1)

    asyncio.run(_run(story))


def test_a_backlog_is_read_page_by_page_and_told_once() -> None:
    async def story(one: Story) -> None:
        one.write(*map(str, range(35)))
        await until(lambda: one.sender.cursor == 35)
        assert [id for page in one.told for id in page] == list(map(str, range(35)))

    asyncio.run(_run(story))


def test_a_peer_that_answers_but_takes_nothing_is_named_once() -> None:
    """Issue 3, 8: one line for a failure, however often it is tried, and whatever else works."""

    async def story(one: Story) -> None:
        one.refusal = PeerRefused("it is full", status=507)
        one.write("a")
        for tries in range(1, 30):
            await until(lambda tries=tries: one.sender.failures >= tries)  # type: ignore[misc]
            one.sender.note_contact()
            one.sender.wake()
        assert one.sender.last_error == "it is full"
        one.refusal = None
        one.sender.wake()
        await until(lambda: one.sender.cursor == 1)

    with capture_logs() as lines:
        asyncio.run(_run(story))
    assert [line["event"] for line in lines] == ["peer_down", "peer_up"]


def test_a_peer_that_is_heard_again_is_tried_at_once() -> None:
    async def story(one: Story) -> None:
        one.refusal = PeerUnreachable("down")
        one.write("a")
        await until(lambda: one.sender.failures == 1)
        one.refusal = None
        one.sender.note_contact()
        await until(lambda: one.sender.cursor == 1)

    asyncio.run(_run(story))


def test_a_peer_with_nothing_to_take_is_up_once_it_answers() -> None:
    async def story(one: Story) -> None:
        one.sender.note_failure(PeerUnreachable("down"))
        one.sender.note_contact()
        assert (one.sender.failures, one.returned) == (0, 1)

    asyncio.run(_run(story))


# --- what a peer that answers does not take -----------------------------------------------------


def test_what_is_not_taken_holds_up_nothing_else() -> None:
    async def story(one: Story) -> None:
        one.untaken = {"b": "it skips"}
        one.write("a", "b", "c")
        await until(lambda: one.sender.cursor == 3)
        assert (one.sender.confirmed, one.sender.failures, one.sender.delivered) == (1, 0, 2)
        one.write("d")
        await until(lambda: one.sender.cursor == 4)
        await until(lambda: one.told.count(["b"]) >= 2)
        assert one.sender.retries >= 3
        assert one.sender.undelivered[Name("contract", "p", "b")].tries == one.sender.retries
        one.untaken = {}
        await until(lambda: one.sender.confirmed == 4)
        assert one.sender.undelivered == {}
        assert one.told[1] == ["d"] or ["d"] in one.told

    with capture_logs() as lines:
        asyncio.run(_run(story))
    assert [line["event"] for line in lines] == ["peer_undelivered", "peer_delivered"]
    assert (lines[0]["id"], lines[0]["reason"]) == ("b", "it skips")


def test_one_cause_is_named_once_for_all_that_it_stops() -> None:
    async def story(one: Story) -> None:
        one.untaken = {"a": "it skips", "b": "it skips", "c": "too large"}
        one.write("a", "b", "c")
        await until(lambda: one.sender.retries >= 9)

    with capture_logs() as lines:
        asyncio.run(_run(story))
    assert [line["reason"] for line in lines] == ["it skips", "too large"]


def test_what_changes_again_goes_at_once() -> None:
    async def story(one: Story) -> None:
        one.untaken = {"a": "it skips"}
        one.write("a")
        await until(lambda: one.sender.retries >= 1)
        one.untaken = {}
        one.write("a")
        await until(lambda: one.sender.confirmed == 2)
        assert one.sender.undelivered == {}

    asyncio.run(_run(story))


def test_what_is_held_is_tried_when_the_operator_asks(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sender, "retry_delay", lambda tries, among, chance: 3_600)

    async def story(one: Story) -> None:
        one.untaken = {"a": "it skips"}
        one.write("a")
        await until(lambda: one.sender.retries == 1)
        one.untaken = {}
        one.sender.wake()
        await until(lambda: one.sender.confirmed == 1)

    asyncio.run(_run(story))


def test_what_the_peer_has_lost_is_owed_though_nothing_changes() -> None:
    lost = Name("contract", "p", "a")

    async def story(one: Story) -> None:
        one.write("a")
        await until(lambda: one.sender.cursor == 1)
        one.untaken = {"a": "full"}
        one.sender.enqueue(lost, "holds it no more")
        await until(
            lambda: lost in one.sender.undelivered and one.sender.undelivered[lost].tries == 1
        )
        assert (one.sender.undelivered[lost].reason, one.sender.confirmed) == ("full", 1)
        one.sender.enqueue(lost, "holds it no more")
        assert one.sender.undelivered[lost].tries == 1, "it is owed once"
        one.untaken.clear()
        one.sender.wake()
        await until(lambda: not one.sender.undelivered)
        assert one.told == [["a"], ["a"], ["a"]]

    asyncio.run(_run(story))


def test_what_was_held_before_a_restart_is_tried_once_more() -> None:
    async def story(one: Story) -> None:
        one.write("a", "b")
        one.untaken = {"a": "it skips"}
        one.sender.cursor = 2
        one.sender.restore({Name("contract", "p", "a"): UndeliveredEntity(1, "it skips", 4)})
        await until(lambda: one.sender.retries >= 1)
        assert one.told[0] == ["a"], "and nothing of what the peer has taken"
        assert one.sender.undelivered[Name("contract", "p", "a")].tries >= 5

    asyncio.run(_run(story))


def test_a_peer_that_takes_nothing_is_brought_it_ever_more_rarely(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """And looked for ever more rarely: a look goes through all of it."""
    names = [str(number) for number in range(20_000)]
    waits: list[float | None] = []
    wait = asyncio.wait

    def noting(*of: Any, timeout: float | None, **more: Any) -> Any:
        waits.append(timeout)
        return wait(*of, timeout=timeout, **more)

    monkeypatch.setattr(asyncio, "wait", noting)

    async def story(one: Story) -> None:
        one.untaken = dict.fromkeys(names, "it skips")
        held = {Name("contract", "p", id): UndeliveredEntity(0, "it skips", 20) for id in names}
        one.sender.restore(held)
        begun = time.monotonic()
        await until(lambda: one.sender.retries == len(names))
        dues = [held.due - begun for held in one.sender.undelivered.values()]
        assert sum(1 / due for due in dues) < 2 * RETRIED_PER_SECOND
        one.untaken["new"] = "it skips"
        one.write("new")
        await until(lambda: Name("contract", "p", "new") in one.sender.undelivered)
        count = len(waits)
        await until(lambda: len(waits) > count)
        assert (waits[-1] or 0.0) >= len(names) * UNDELIVERED_SECONDS

    asyncio.run(_run(story))


def test_what_is_dropped_is_tried_no_more_until_it_changes(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(sender, "retry_delay", lambda tries, among, chance: 0.05)

    async def story(one: Story) -> None:
        one.untaken = {"a": "it skips", "b": "it skips"}
        one.write("a", "b")
        await until(lambda: one.sender.retries >= 2)
        before = one.sender.undelivered
        one.sender.drop({Name("contract", "p", "a")})
        assert one.sender.undelivered is not before, "who keeps it sees that there is news"
        one.told.clear()
        await until(lambda: len(one.told) >= 3)
        assert {id for page in one.told[1:] for id in page} == {"b"}
        one.write("a")
        await until(lambda: any("a" in page for page in one.told))

    asyncio.run(_run(story))
