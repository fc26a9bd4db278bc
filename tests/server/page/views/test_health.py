"""The view of health and settings."""

from types import SimpleNamespace
from typing import Any

import pytest

from server.auth.authenticator import Caller
from server.domain.errors import Forbidden
from server.page.views.health import health
from tests.support.located import ON_POSTGRESQL
from tests.support.node import Node, bearer

BROWSER = {"accept": "text/html"}


def test_it_says_what_doctor_says_of_a_running_node(node: Node) -> None:
    twin = node.http.get("/ui/health.json").json()
    assert twin["health"]["status"] == node.get("/health").json()["status"]
    checks = {check["name"] for check in twin["checks"]}
    assert checks >= {"certainty", "stamps", "deferred", "undelivered", "differences"}
    loops, storage = {loop["name"] for loop in twin["loops"]}, twin["storage"]
    assert "audit" in loops
    if ON_POSTGRESQL:
        assert "database_poll" in loops
        assert storage["server"]
    else:
        assert "checkpoint" in loops
        assert storage["bytes"]
        assert twin["replicas"] == []
    assert {limit["name"]: limit for limit in twin["limits"]}["Open connections"]["used"]
    page = node.http.get("/ui/health", headers=BROWSER).text
    own = ("PostgreSQL",) if ON_POSTGRESQL else ("Write-ahead log", "SQLite")
    for words in ("Background loops", "<code>cacp doctor</code>", *own):
        assert words in page


def test_settings_are_for_the_operator_humans_and_programs_of_the_machine(node: Node) -> None:
    settings = {each["name"]: each for each in node.http.get("/ui/health.json").json()["settings"]}
    assert (settings["role"]["value"], settings["role"]["origin"]) == ("backend", "variable")
    assert settings["db"]["value"] == str(node.db)
    agent = bearer(node.key("aid://example.com/health-reader@1.0.0", "reader"))
    assert "settings" in node.http.get("/ui/health.json", headers=bearer(node.operator)).json()
    twin = node.http.get("/ui/health.json", headers=agent)
    assert "settings" not in twin.json()
    page = node.http.get("/ui/health", headers=BROWSER | agent)
    assert "Settings are for the operator" in page.text
    for answer in (twin, page):
        assert str(node.folder) not in answer.text


def test_a_key_that_is_limited_to_projects_does_not_see_it() -> None:
    limited = Caller("a", "r", "verified", "key", projects=frozenset({"p"}))
    call: Any = SimpleNamespace(caller=limited)
    with pytest.raises(Forbidden):
        health(call)
