"""Long tests come first."""

from pathlib import Path

from tests.architecture.source import ROOT
from tests.support.order import LONG, long_first


def test_each_long_file_is_there() -> None:
    assert [name for name in LONG if not (ROOT / name).exists()] == []


def test_each_workers_share_begins_with_long_files() -> None:
    first, second, third = (ROOT / name for name in LONG[:3])
    short = [(Path("short"), f"s{number}") for number in range(8)]
    tests = [*short, (third / "test_in_it.py", "c"), (first, "a1"), (first, "a2"), (second, "b")]
    assert long_first(tests, 2, ROOT) == [
        *("c", "a1", "a2", "s0", "s1", "s2"),
        *("b", "s3", "s4", "s5", "s6", "s7"),
    ]


def test_none_is_lost_where_a_share_is_more_than_its_worker_gets() -> None:
    tests = [(ROOT / LONG[0], str(number)) for number in range(5)] + [(Path("short"), "s")]
    assert sorted(long_first(tests, 3, ROOT)) == ["0", "1", "2", "3", "4", "s"]
