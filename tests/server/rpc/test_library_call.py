"""What jsonrpcserver makes of a call, its error and a notification."""

import asyncio
from typing import Any

from schemas import jsonrpc
from schemas.errors import ErrorCode
from server.rpc.error_codes import MethodError
from server.rpc.library_call import answered

CALL = {"jsonrpc": "2.0", "method": "cacp/a", "params": {"name": "x"}, "id": 7}


async def echo(context: str, given: dict[str, Any]) -> dict[str, Any]:
    return {"context": context, **given}


async def refuse(context: str, given: dict[str, Any]) -> Any:
    raise MethodError(ErrorCode.CONFLICT, "Taken", {"reason": "taken"})


def test_a_result_is_answered_with_the_id_of_its_call() -> None:
    assert asyncio.run(answered(jsonrpc.check(CALL), "here", echo)) == {
        "jsonrpc": "2.0",
        "result": {"context": "here", "name": "x"},
        "id": 7,
    }


def test_an_error_keeps_its_code_message_and_data() -> None:
    response = asyncio.run(answered(jsonrpc.check(CALL), "here", refuse))
    assert response == jsonrpc.error(ErrorCode.CONFLICT, "Taken", {"reason": "taken"}, 7)


def test_a_notification_runs_and_is_not_answered() -> None:
    ran: list[str] = []

    async def note(context: str, given: dict[str, Any]) -> None:
        ran.append(given["name"])

    notification = {name: value for name, value in CALL.items() if name != "id"}
    assert asyncio.run(answered(jsonrpc.check(notification), "here", note)) is None
    assert ran == ["x"]
