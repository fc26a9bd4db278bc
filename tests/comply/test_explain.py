"""A test in words."""

from pathlib import Path

from comply.explain import explain
from comply.files import SUITES, Case, load
from comply.source import read


def test_each_step_is_said_with_its_clause() -> None:
    text = explain(load(SUITES / "cacp-2.0" / "contract.agree.jsont"))
    assert text.startswith("cacp-2.0/contract.agree: Agree to a contract\n\nagree answers")
    assert "Clause: cacp-2.0.md#cacpcontractrespond" in text
    assert "keep result.projectId as ${projectId}" in text
    assert "send as second" in text
    assert "Steps 1 to 8 are the set-up proposed." in text


def test_a_bare_variable_is_shown_as_it_was_written() -> None:
    text = explain(load(SUITES / "json-rpc-2.0" / "batch.empty.jsont"))
    assert "POST / []" in text
    assert "\ue000" not in text


WHOLE = """
{
  "title": "t", "severity": "optional", "protocolVersion": 2,
  "preconditions": [{"agentCap": "a.b"}, {"setting": "logout"}],
  "sandbox": {"files": [{"path": "a.txt", "text": "hello"}, {"path": "b", "base64": "aGk="}]},
  "init": {"clientCapabilities": {"terminal": false}, "permissionPolicy": "read"},
  "steps": [
    {"newSession": {"mcpServers": [${mcpServer}], "capture": "s"}},
    {"send": {"id": 1, "method": "x", "expectError": true}, "headers": {"x-a": "b"}},
    {"expect": {"timeoutMs": 5, "fresh": true, "retry": true, "naUnless": "why not", "messages": [
      {"clientRequest": {"method": "y"}, "reply": {"c": 1}, "late": true}]}},
    {"expect": {"naIf": "why", "messages": [{"mcp": {"method": "z"}}]}},
    {"forbid": {"timeoutMs": 7, "methods": ["m"], "strayLines": true, "messages": [
      {"notification": {"method": "n"}}]}},
    {"delayMs": 3}
  ]
}
"""


def test_all_that_a_test_does_is_said() -> None:
    text = explain(Case("t", "s", Path("t.jsont"), read(WHOLE)))
    for said in (
        "Version 2 of the protocol; each message of the agent is held to its schema.",
        "NA unless a.b is true.",
        "NA unless logout is set for the agent.",
        'The client offers {"terminal":false}, else the usual.',
        "Permissions: read.",
        "Sandbox: a.txt holds hello",
        "Sandbox: b holds base64 aGk=",
        " 1. open a session in the sandbox with the MCP servers [${mcpServer}], as ${s}",
        ' 2. send with the headers {"x-a":"b"} {"id":1,"method":"x"}',
        "    which must be answered by an error",
        " 3. within 5 ms, after the latest step alone, asking again until it comes, look for",
        '    clientRequest {"method":"y"}',
        '    answered after the next step with {"c":1}',
        "    NA when none of it comes: why not",
        " 4. within 10000 ms, look for",
        '    mcp {"method":"z"}',
        "    NA when any of it comes: why",
        " 5. for 7 ms, none of m, lines that are not messages",
        '    notification {"method":"n"}',
        " 6. wait 3 ms",
    ):
        assert said in text.split("\n"), said
