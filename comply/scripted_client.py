"""The client's side of a session over stdio: it answers the agent's own requests, by the test's
scripted replies or else by the real providers."""

import asyncio
from collections.abc import Awaitable, Callable, Coroutine, Mapping
from typing import Any

from pydantic import JsonValue

from comply.matching import at, matches
from comply.patterns import PatternError
from comply.providers import ProviderError, Providers
from comply.scripted_replies import ScriptedReply
from comply.template import UnknownVariable, fill, fill_pattern
from schemas.jsont import JsonObject


class ScriptedClient:
    """Answers the requests of one agent.

    `write` sends a message to the agent; `fail` gets an error of the test itself.
    """

    def __init__(
        self,
        replies: list[ScriptedReply],
        providers: Providers,
        variables: Mapping[str, JsonValue],
        write: Callable[[JsonValue], Awaitable[None]],
        fail: Callable[[Exception], None],
    ) -> None:
        self._replies = replies
        self._providers = providers
        self._variables = variables
        self._write = write
        self._fail = fail
        self._held: list[tuple[JsonObject, ScriptedReply]] = []
        """Requests that are answered after the next step."""
        self._tasks: set[asyncio.Task[None]] = set()

    def take(self, request: JsonObject) -> None:
        """Answer a request, concurrently or after the next step."""
        try:
            reply = self._reply_to(request)
        except (UnknownVariable, PatternError) as error:
            self._fail(error)
            return
        if reply.late:
            self._held.append((request, reply))
        else:
            self._spawn(self._answer(request, reply))

    async def answer_held(self) -> None:
        """Answer the requests that waited for a step."""
        held, self._held = self._held, []
        for request, reply in held:
            await self._answer(request, reply)

    async def close(self) -> None:
        """Cancel the answers under way."""
        for task in list(self._tasks):
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)

    def _reply_to(self, request: JsonObject) -> ScriptedReply:
        """The test's reply to a request; each reply is used once."""
        for number, reply in enumerate(self._replies):
            if matches(fill_pattern(reply.request, self._variables), request):
                return self._replies.pop(number)
        return ScriptedReply({}, None)

    async def _answer(self, request: JsonObject, reply: ScriptedReply) -> None:
        if reply.answer is None:
            await self._provide(request)
            return
        answer = fill(reply.answer, self._variables)
        assert isinstance(answer, dict)
        terminal = at(answer, "result.terminalId")
        if request["method"] == "terminal/create" and isinstance(terminal, str):
            self._providers.promised.add(terminal)
        await self._write({"jsonrpc": "2.0", "id": request["id"], **answer})

    async def _provide(self, request: JsonObject) -> None:
        answer: JsonObject = {"jsonrpc": "2.0", "id": request["id"]}
        try:
            answer["result"] = await self._providers.answer(
                str(request["method"]), request.get("params")
            )
        except ProviderError as refused:
            answer["error"] = {"code": refused.code, "message": str(refused)}
        await self._write(answer)

    def _spawn(self, work: Coroutine[Any, Any, None]) -> None:
        async def watched() -> None:
            try:
                await work
            except (UnknownVariable, PatternError) as error:
                self._fail(error)

        task = asyncio.create_task(watched())
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)
