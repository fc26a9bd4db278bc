"""Hearing what an agent says to the MCP servers of its test."""

import asyncio
import json
from pathlib import Path

from pydantic import JsonValue

from cacp_launcher import command
from comply.mcp_report import McpReport
from tests.support.waiting import until


def test_every_copy_of_the_server_is_heard_until_the_report_closes(tmp_path: Path) -> None:
    heard: list[JsonValue] = []

    async def whole() -> None:
        report = McpReport(tmp_path, heard.append)
        await report.close()
        await report.start()
        writers = [(await asyncio.open_unix_connection(report.path))[1] for _ in range(2)]
        for number, writer in enumerate(writers):
            writer.write(json.dumps({"method": f"m{number}"}).encode() + b"\n")
        await until(lambda: len(heard) == 2)
        await report.close()
        for writer in writers:
            writer.close()

    asyncio.run(whole())
    assert sorted(map(str, heard)) == ["{'method': 'm0'}", "{'method': 'm1'}"]


def test_what_is_offered_is_a_server_over_stdio_as_session_new_has_it(tmp_path: Path) -> None:
    offer = McpReport(tmp_path, lambda message: None).offer("sesame")
    assert offer["args"] == command("-m", "comply.mcp_server")[1:]
    assert offer["env"] == [
        {"name": "COMPLY_REPORT", "value": str(tmp_path / "mcp")},
        {"name": "COMPLY_WORD", "value": "sesame"},
    ]
