"""Preconditions of a test (acpcomply, `preconditions`)."""

from collections.abc import Collection, Iterable

from pydantic import JsonValue

from comply.matching import look_up
from schemas.jsont import Precondition


def unmet(
    conditions: Iterable[Precondition],
    *,
    agent: JsonValue,
    client: JsonValue = None,
    methods: Collection[str] = (),
    settings: Collection[str] = (),
) -> str | None:
    """Why the test does not apply; None when it does.

    `agent` and `client` are what either side offers, `methods` what the subject lists,
    `settings` what its operator set.
    """
    for condition in conditions:
        if condition.foreign is not None:
            return f"asks for {condition.foreign}, which this runner does not know"
        if condition.setting is not None:
            if (condition.setting in settings) is not condition.must_be:
                state = "not set" if condition.must_be else "set"
                return f"{condition.setting} is {state} in the settings"
            continue
        if condition.agent_cap is not None:
            what, there = condition.agent_cap, offered(agent, condition.agent_cap)
        elif condition.cap is not None:
            what = condition.cap
            there = offered(client, condition.cap.removeprefix("client."))
        else:
            what = str(condition.method)
            there = what in methods
        if there is not condition.must_be:
            return f"{what} is {'not ' if condition.must_be else ''}offered"
    return None


def offered(capabilities: JsonValue, path: str) -> bool:
    """Whether the value at a dotted path is an object, even an empty one, or is neither null, false
    nor empty."""
    try:
        value = look_up(capabilities, path)
    except KeyError:
        return False
    return isinstance(value, dict) or bool(value)
