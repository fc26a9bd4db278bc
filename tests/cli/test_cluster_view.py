"""A cluster's state as a terminal and a program see it."""

import json

from rich.console import Console

from cli.cluster_view import (
    SHOWN,
    ClusterView,
    DatabaseView,
    Event,
    ReplicaView,
    as_json,
    lines,
    picture,
    verdict,
)

UP = DatabaseView(
    "postgresql://cacp@127.0.0.1:8084/cacp", 700, "up", "18.1", 21, stamp_age_seconds=1.26, ends=2
)
AT = "2026-01-01T00:00:00.000000+00:00"


def cluster(*states: str, events: tuple[Event, ...] = ()) -> ClusterView:
    replicas = [
        ReplicaView(
            f"replica-{number}",
            f"http://127.0.0.1:{8080 + number}",
            pid=None if state == "down" else 800 + number,
            state=state,
            duty=number == 1,
            connections=number,
            requests=1_000 * number,
            answer_ms=None if state == "down" else 1.4,
            beat_seconds=0.34,
        )
        for number, state in enumerate(states, start=1)
    ]
    return ClusterView("http://127.0.0.1:8080", replicas, UP, list(events))


def drawn(view: ClusterView, width: int = 120) -> str:
    made = Console(width=width)
    with made.capture() as captured:
        made.print(picture(view))
    return captured.get()


def test_each_part_is_shown_with_its_state() -> None:
    shown = drawn(cluster("ready", "unready", "down"))
    assert "http://127.0.0.1:8080   proxy   1 of 3 replicas are ready" in shown
    rows = [" ".join(line.split()) for line in shown.splitlines()]
    assert "PostgreSQL 18.1 postgresql://cacp@127.0.0.1:8084/cacp 700 ● up 21 1.3 s 2" in rows
    assert "1 replica-1 127.0.0.1:8081 801 ● ready background 1 1,000 1 ms 0.3 s 0" in rows
    assert "2 replica-2 127.0.0.1:8082 802 ● unready 2 2,000 1 ms 0.3 s 0" in rows
    assert "3 replica-3 127.0.0.1:8083 - ● down 3 3,000 - 0.3 s 0" in rows


def test_it_fits_a_usual_terminal() -> None:
    assert max(len(line.rstrip()) for line in drawn(cluster("ready", "down")).splitlines()) <= 100


def test_the_last_events_are_shown_and_their_text_is_no_markup() -> None:
    many = tuple(Event(AT, f"event [{number}]\x1b[31m") for number in range(SHOWN + 3))
    shown = drawn(cluster("ready", events=many))
    assert "event [2]" not in shown
    assert f"event [{SHOWN + 2}]" in shown
    assert "\x1b[31m" not in shown


def test_a_sentence_tells_whether_it_serves() -> None:
    assert verdict(cluster("ready", "ready")) == ("All 2 replicas are ready", "green")
    assert verdict(cluster("ready", "down")) == ("1 of 2 replicas are ready", "yellow")
    assert verdict(cluster("down", "unready")) == ("0 of 2 replicas are ready", "red")
    assert verdict(cluster("ready")) == ("The replica is ready", "green")


def test_lines_tell_only_what_is_new() -> None:
    first = cluster("ready", "ready", events=(Event(AT, "replica-1 is killed"),))
    assert lines(None, first) == [
        "replica-1 is killed",
        "All 2 replicas are ready: http://127.0.0.1:8080",
    ]
    assert lines(first, first) == []
    second = cluster("ready", "down", events=(*first.events, Event(AT, "replica-2 has ended")))
    assert lines(first, second) == [
        "replica-2 has ended",
        "1 of 2 replicas are ready: http://127.0.0.1:8080",
    ]


def test_programs_get_all_of_it() -> None:
    told = json.loads(json.dumps(as_json(cluster("ready", "down"))))
    assert told["ready"] == 1
    assert told["database"]["version"] == "18.1"
    assert told["replicas"][0]["duty"] is True
