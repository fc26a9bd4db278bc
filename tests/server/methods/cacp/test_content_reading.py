"""Contents of contracts, read and compared for methods."""

import asyncio
import threading
from concurrent.futures import ThreadPoolExecutor
from types import SimpleNamespace
from typing import Any

import pytest

from contracts.compare import compare
from contracts.recognise import read
from server.domain.attention.items import ItemCache
from server.domain.errors import InvalidInput
from server.methods.cacp.content_reading import (
    SHOWN,
    SMALL,
    checked,
    compared,
    concerned,
    how_read,
)

BEFORE = {"method": "GET", "path": "/a", "response": {"a": "string"}}
MORE = {"method": "GET", "path": "/a", "response": {"a": "string", "b": "string"}}
ROLES: dict[str, Any] = {"api": "provider", "web": "consumer", "app": "both"}


@pytest.mark.parametrize(
    ("before", "after", "author", "expected"),
    [
        (BEFORE, MORE, None, ["api", "app"]),
        (MORE, BEFORE, None, ["web", "app"]),
        (MORE, BEFORE, "web", ["app"]),
        (BEFORE, BEFORE, None, []),
        ({"v": 1}, {"v": 2}, "api", ["web", "app"]),
    ],
)
def test_who_is_burdened(before: Any, after: Any, author: str | None, expected: list[str]) -> None:
    comparison = compare(read(before), read(after))
    assert concerned(comparison, ROLES, author) == expected


@pytest.mark.parametrize("size", [1, SMALL * 2])
def test_a_refusal_names_the_first_problem_and_some_more(size: int) -> None:
    paths = {f"/{number}": 1 for number in range(SHOWN + 5)}
    content = {
        "openapi": "3.1.0",
        "info": {"title": "t" * size, "version": "1"},
        "paths": paths,
    }
    with pytest.raises(InvalidInput) as error:
        asyncio.run(checked(content, "openapi", None))
    assert error.value.data["path"] == 'content.paths["/0"]'
    assert len(error.value.data["problems"]) == SHOWN
    taken = how_read(asyncio.run(checked(content, None, None)))
    assert taken["dialect"] == "openapi"
    assert len(taken["warnings"]) == SHOWN


def test_calls_compare_one_after_the_other_and_each_pair_once(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    busy, begun = threading.Lock(), threading.Barrier(6)
    calls: list[bool] = []

    def counted(*contents: Any) -> Any:
        calls.append(busy.acquire(blocking=False))
        answer = compare(*contents)
        busy.release()
        return answer

    monkeypatch.setattr("contracts.compare.compare", counted)
    node: Any = SimpleNamespace(comparisons=ItemCache())
    facts: list[Any] = [
        SimpleNamespace(digest=str(content), dialect=None, content=content)
        for content in (BEFORE, MORE)
    ]

    def call(turn: int) -> Any:
        begun.wait()
        return compared(node, "api_endpoint", facts[turn % 2], facts[1 - turn % 2])

    with ThreadPoolExecutor(6) as pool:
        answers = list(pool.map(call, range(6)))
    assert calls == [True, True]
    assert answers[0] == answers[2] != answers[1]
