"""What a test asks of its subject before it runs."""

from typing import Any

import pytest

from comply.preconditions import offered, unmet
from schemas.jsont import Precondition

AGENT: Any = {"loadSession": True, "sessionCapabilities": {"list": {}, "fork": None}, "auth": False}


@pytest.mark.parametrize(
    ("path", "there"),
    [
        ("loadSession", True),
        ("sessionCapabilities.list", True),
        ("sessionCapabilities.fork", False),
        ("sessionCapabilities.delete", False),
        ("auth", False),
        ("auth.logout", False),
    ],
)
def test_a_capability_is_there_though_it_be_an_empty_object(path: str, there: bool) -> None:
    assert offered(AGENT, path) is there


@pytest.mark.parametrize(
    ("condition", "reason"),
    [
        ({"agentCap": "sessionCapabilities.list"}, None),
        (
            {"agentCap": "sessionCapabilities.list", "mustBe": False},
            "sessionCapabilities.list is offered",
        ),
        ({"agentCap": "auth"}, "auth is not offered"),
        ({"agentCap": "auth", "mustBe": False}, None),
        ({"cap": "client.terminal"}, None),
        ({"cap": "client.elicitation.form"}, None),
        ({"cap": "client.fs", "mustBe": True}, "client.fs is not offered"),
        ({"method": "cacp/x"}, None),
        ({"method": "cacp/y"}, "cacp/y is not offered"),
        ({"platform": "linux"}, "asks for platform, which this runner does not know"),
        ({"agentCap": "loadSession", "note": "more"}, None),
    ],
)
def test_the_first_that_is_not_met_is_the_reason(condition: Any, reason: str | None) -> None:
    client: Any = {"terminal": True, "elicitation": {"form": {}}}
    asked = [Precondition.model_validate(condition)]
    assert unmet(asked, agent=AGENT, client=client, methods=["cacp/x"]) == reason


def test_a_setting_is_what_the_operator_set() -> None:
    asked = [Precondition.model_validate({"setting": "logout"})]
    assert unmet(asked, agent={}, settings={"logout"}) is None
    assert unmet(asked, agent={}) == "logout is not set in the settings"
