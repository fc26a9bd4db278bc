"""Large data through every tool: each answer is bounded, and what it leaves out is reached by doing
what it says."""

import asyncio
import json
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import orjson
import pytest

from server.auth.authenticator import Caller
from server.mcp_tools import calls
from server.mcp_tools.catalog import TOOLS, Json
from server.mcp_tools.pages import CONTINUED, IN_A_LINE, PAGE_MAX
from server.methods import METHODS
from server.methods.acp.inbox import InboxPage
from tests.support.in_process_node import ANA, BEN, InProcessNode, package

MEGABYTE = 1_000_000
CONTRACTS = 500
MESSAGES = 55
PACKETS = 60


class LargeWorld:
    """A node with large data, and the tools as Ben uses them."""

    def __init__(self, node: InProcessNode) -> None:
        self.node = node
        repos = [{"name": "r", "role": "backend", "language": "python"}]
        made = self.act(BEN, "cacp/project/create", name="Large", objective="O", repos=repos)
        self.project = {"projectId": made["projectId"]}
        self.contracts = [self.proposed("Large", {"text": "y" * MEGABYTE, "end": "its end"})]
        self.contracts += [self.proposed(f"N{number}", {}) for number in range(CONTRACTS - 1)]
        self.packets = [
            self.act(BEN, "cacp/context/share", **self.project, type="decision", content=content)
            for content in ({"text": "a" * MEGABYTE}, *[{"text": "b" * 900}] * (PACKETS - 1))
        ]
        payload = {"summary": "A summary", "details": {"text": "x" * 3_900}}
        message = {"to": [BEN], "type": "status.update", "payload": payload}
        sent = [self.act(ANA, "acp/send", **message) for _ in range(MESSAGES)]
        self.messages = [one["message"]["id"] for one in sent]
        context = {"summary": "z" * 20_000, "known_risks": ["r" * 4_000] * 50}
        given = {"to": BEN, "reason": "End of shift", "package": package(context=context)}
        made = self.act(ANA, "acp/handoff", action="initiate", **given)
        self.handoff = made["handoff"]["handoffId"]
        for number in range(120):
            self.act(BEN, "cacp/project/create", name=f"{number} {'P' * 100}", objective="O")
        self.act(BEN, "acp/team", action="create", team="large", name="Large")
        for number in range(150):
            task = {"team": "large", "task_id": f"t-{number}", "title": "T" * 150}
            self.act(BEN, "acp/team", action="createTask", **task)

    def proposed(self, name: str, content: Json) -> str:
        given = {"type": "custom", "name": name, "content": content}
        return str(self.act(BEN, "cacp/contract/propose", **self.project, **given)["contractId"])

    def act(self, agent: str, method: str, **params: Any) -> Any:
        """The result of a call as it goes over the wire."""
        asked = METHODS[method].params.model_validate(params, by_alias=True)

        def run(ctx: Any) -> bytes:
            if method == "acp/inbox":
                return orjson.dumps(InboxPage(ctx, asked).result(ctx, asked))  # type: ignore[arg-type]
            return orjson.dumps(METHODS[method].run(ctx, asked))

        caller = Caller(agent, "r", "verified", "key")
        return orjson.loads(self.node.run(run, caller, method))

    def use(self, tool: str, **given: Any) -> str:
        """A tool's answer, which is bounded whatever it is."""

        async def call(method: str, params: Json) -> Any:
            return self.act(BEN, method, **params)

        text = asyncio.run(calls.run(tool, given, call))
        assert len(text) <= PAGE_MAX, tool
        return text

    def pages(self, tool: str, **given: Any) -> Iterator[str]:
        """All that a tool has to show, by doing what its answers say until they say no more."""
        while True:
            shown, cut, rest = self.use(tool, **given).partition("\n\n[Cut: ")
            yield shown
            if not cut:
                return
            step = re.search(r"The rest: (\w+) with `(.*)`\]$", rest)
            assert step is not None, rest
            assert step[1] == tool
            given = json.loads(step[2])

    def whole(self, tool: str, **given: Any) -> str:
        """What the pages show, without what cutting added."""
        text = ""
        for shown in self.pages(tool, **given):
            broken = shown.startswith(IN_A_LINE)
            if shown.startswith((CONTINUED, IN_A_LINE)):
                shown = shown.partition("\n")[2]
                head = re.match(r"Data by .*\n```untrusted\n", shown)
                if head is not None and inside(text):
                    shown = shown[head.end() :].removeprefix("| " if broken else "")
                    text = text.removesuffix("\n```") + ("" if broken else "\n")
            text += shown
        return text


def inside(text: str) -> bool:
    """Whether a page closed a fence that goes on."""
    return text.endswith("\n```")


@pytest.fixture(scope="module")
def world(tmp_path_factory: pytest.TempPathFactory) -> Iterator[LargeWorld]:
    folder: Path = tmp_path_factory.mktemp("large")
    with InProcessNode(folder) as node:
        yield LargeWorld(node)


READS: dict[str, list[Json]] = {
    "cacp_attention": [{}],
    "cacp_project_list": [{"limit": 500}],
    "cacp_project_get": [{"projectId": "project"}],
    "cacp_agents": [{}],
    "cacp_contract_get": [
        {"projectId": "project", "contractId": "contract"},
        {"projectId": "project", "contractId": "contract", "view": "timeline"},
        {"projectId": "project", "contractId": "contract", "view": "conflicts"},
    ],
    "cacp_context_list": [{"projectId": "project", "limit": 1_000}],
    "acp_inbox": [{"limit": 500}, {"limit": 500, "bodies": True}],
    "acp_query": [{"limit": 500}, {"limit": 500, "bodies": True}],
    "acp_handoff": [
        {"action": "get", "handoff_id": "handoff"},
        {"action": "list"},
        {"action": "history", "handoff_id": "handoff"},
    ],
    "acp_team": [
        {"action": "get", "team": "large"},
        {"action": "list"},
        {"action": "log", "team": "large", "log": "roles", "limit": 1_000},
    ],
}
"""Calls that show something, for each tool that does. Other tools report a step in a few lines."""


def asked(world: LargeWorld, given: Json) -> Json:
    ids = {**world.project, "contractId": world.contracts[0], "handoff_id": world.handoff}
    return given | {name: ids[name] for name in given if name in ids}


def test_every_tool_that_shows_something_is_tried() -> None:
    assert {name for name, tool in TOOLS.items() if tool.has_pages} == set(READS)


@pytest.mark.parametrize("tool", READS)
def test_the_rest_is_reached_by_doing_what_an_answer_says(world: LargeWorld, tool: str) -> None:
    for given in READS[tool]:
        params = asked(world, given)
        method, sent = TOOLS[tool].method(params), TOOLS[tool].params(params)
        rendered = TOOLS[tool].show(params, world.act(BEN, method, **sent))
        assert world.whole(tool, **params) == rendered
        if tool == "cacp_contract_get" and "view" not in given:
            assert len(rendered) > MEGABYTE
            assert '"end": "its end"' in rendered


def test_every_contract_of_a_large_project(world: LargeWorld) -> None:
    text = world.whole("cacp_project_get", **world.project)
    assert re.findall("contractId `([^`]+)`", text) == world.contracts


def test_everything_that_waits(world: LargeWorld) -> None:
    ids: list[str] = []
    given: Json = {}
    while True:
        text = world.use("cacp_attention", **given)
        shown = re.findall("^- id: `([^`]+)`, since", text, re.MULTILINE)
        assert shown
        ids += shown
        more = re.search("after `([^`]+)`$", text)
        if more is None:
            break
        given = {"after": more[1]}
    assert len(ids) == len(set(ids)) >= CONTRACTS
    assert ids == [item["id"] for item in _all_items(world)]


def _all_items(world: LargeWorld) -> list[Json]:
    items: list[Json] = []
    given: Json = {}
    while True:
        page = world.act(BEN, "cacp/attention/list", limit=200, **given)
        items += page["items"]
        if "next" not in page:
            return items
        given = {"after": page["next"]}


def test_every_message_line_by_line_and_by_cursor(world: LargeWorld) -> None:
    def listed(**given: Any) -> list[str]:
        ids: list[tuple[str, str]] = []
        cursor: Json = {}
        while True:
            text = world.whole("acp_inbox", **given, **cursor)
            ids += re.findall(r"; id `([^`]+)`|^- id: `([^`]+)`", text, re.MULTILINE)
            if "- more: call again with this cursor" not in text:
                return [first or second for first, second in ids]
            (shown,) = re.findall("- cursor: `([^`]+)`", text)
            cursor = {"cursor": shown}

    everything = listed()
    assert set(world.messages) < set(everything), "and the offer of the handoff"
    assert len(everything) == MESSAGES + 1
    assert listed(limit=7) == everything
    assert listed(bodies=True) == everything


def test_every_packet_page_by_page(world: LargeWorld) -> None:
    ids: list[str] = []
    given: Json = {**world.project, "limit": 25}
    while True:
        text = world.whole("cacp_context_list", **given)
        ids = [*re.findall("- packetId: `([^`]+)`", text), *ids]
        step = re.search("Older ones: cacp_context_list with `(.*)`$", text)
        if step is None:
            break
        given = json.loads(step[1])
    assert ids == [packet["packetId"] for packet in world.packets]
