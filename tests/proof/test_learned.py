import json
from typing import Any

import pytest

from contracts.recognise import read
from proof.exchange import operation_checks
from proof.learned import KEPT_MAX, Learned
from proof.messages import WireAnswer

ROUTES = ("/users", "/users/{userId}", "/users/{userId}/pets", "/users/{userId}/pets/{pet}")
PATHS: dict[str, Any] = {route: {"get": {"responses": {}}} for route in ROUTES}
CHECKS = {
    check.operation.route: check
    for check in operation_checks(read({"openapi": "3.1.0", "paths": PATHS}))
}


def learned(*answers: Any, route: str = "/users", status: int = 200) -> Learned:
    values = Learned(list(CHECKS.values()))
    for answer in answers:
        body = json.dumps(answer).encode()
        values.learn(
            CHECKS[route], WireAnswer(status, (("Content-Type", "application/json"),), body)
        )
    return values


@pytest.mark.parametrize(
    "answer",
    [{"id": 7}, {"userId": 7, "id": 8}, [{"id": 7}], {"data": [{"id": 7}]}, {"data": {"id": 7}}],
)
def test_what_was_made_is_asked_for(answer: Any) -> None:
    known = learned(answer).known(CHECKS["/users/{userId}"])
    assert known == {"userId": (7,)}


def test_ids_belong_to_the_route_before_them() -> None:
    values = learned({"id": "rex"}, route="/users/{userId}/pets")
    assert values.known(CHECKS["/users/{userId}/pets/{pet}"]) == {"pet": ("rex",)}
    assert values.known(CHECKS["/users/{userId}"]) == {}


def test_the_newest_values_are_kept_once() -> None:
    many = learned(*({"id": number} for number in range(100)), {"id": 99})
    (kept,) = many.known(CHECKS["/users/{userId}"]).values()
    assert len(kept) == KEPT_MAX - 1
    assert kept[-1] == 99


@pytest.mark.parametrize("answer", [{}, [], "x", {"id": None}, {"id": [1]}, {"id": True}, 1])
def test_what_is_no_id_is_not_kept(answer: Any) -> None:
    assert learned(answer).known(CHECKS["/users/{userId}"]) == {}


def test_a_refusal_tells_of_nothing() -> None:
    assert learned({"id": 1}, status=404).known(CHECKS["/users/{userId}"]) == {}
    values = Learned(list(CHECKS.values()))
    values.learn(CHECKS["/users"], WireAnswer(200, (("Content-Type", "application/json"),), b"{"))
    values.learn(CHECKS["/users"], WireAnswer(200, (), b'{"id": 1}'))
    assert values.known(CHECKS["/users/{userId}"]) == {}
