"""What the script answers, and what is wrong with one that is none."""

import json
from typing import Any

import pytest

from comply.files import SUITES, load
from comply.model.conversation import Kind, ModelRequest, OfferedTool, Turn
from comply.model.script import SHIPPED, BadScript, answer, folder, read
from comply.source import SUFFIX

SCRIPT = read(SHIPPED.read_text())
READ = "Read greeting.txt and tell me its contents."
FILE: Any = {"type": "object", "properties": {"file_path": {"type": "string"}}}
COMMAND: Any = {"type": "object", "properties": {"cmd": {"type": "string"}}}


def asked(
    *turns: tuple[Kind, str], tools: tuple[OfferedTool, ...] = (), shape: Any = None
) -> ModelRequest:
    said = tuple(Turn(kind, text) for kind, text in turns)
    return ModelRequest("m", said, tools=tools, shape=shape)


def prompts() -> list[str]:
    """The texts that the suites `acp` and `acp-v2` prompt agents with."""
    found = set()
    for path in (*SUITES.glob(f"acp/*{SUFFIX}"), *SUITES.glob(f"acp-v2/*{SUFFIX}")):
        for step in load(path).test.steps:
            params: Any = (step.send or {}).get("params")
            blocks = params.get("prompt") if isinstance(params, dict) else None
            if isinstance(blocks, list):
                texts = [block["text"] for block in blocks if block.get("type") == "text"]
                found.add("\n".join(texts))
    return sorted(found)


@pytest.mark.parametrize("prompt", prompts())
def test_the_shipped_script_has_a_rule_for_what_the_suites_ask(prompt: str) -> None:
    assert answer(SCRIPT, asked(("user", prompt))).why != "otherwise"


def test_a_tool_is_called_and_then_what_it_gave_is_said() -> None:
    offered = (OfferedTool("Bash", COMMAND), OfferedTool("Read", FILE))
    system: tuple[Kind, str] = ("system", "Primary working directory: /srv/x\n - Platform: linux")
    first = answer(SCRIPT, asked(system, ("user", READ), tools=offered))
    assert first.call is not None
    assert (first.call.id, first.call.tool.name) == ("call_1", "Read")
    assert first.call.arguments == {"file_path": "/srv/x/greeting.txt"}
    done = asked(("user", READ), ("call", "Read"), ("result", "1 hello"), tools=offered)
    assert answer(SCRIPT, done).text == "It says: 1 hello"


def test_another_way_is_taken_where_the_preferred_tool_is_not_offered() -> None:
    said = answer(SCRIPT, asked(("user", READ), tools=(OfferedTool("exec_command", COMMAND),)))
    assert said.call is not None
    assert said.call.arguments == {"cmd": "cat greeting.txt"}
    without = answer(SCRIPT, asked(("user", READ)))
    assert (without.call, without.text) == (None, "I have no tool to read.")
    assert without.why.endswith("no tool to read")


def test_a_tool_of_an_mcp_server_is_found_under_the_agents_name_for_it() -> None:
    prompt = (
        "Call the tool secret_word of the MCP server comply and tell me the word that it gives."
    )
    for tool in (
        OfferedTool("mcp__comply__secret_word"),
        OfferedTool("secret_word", {}, "mcp__comply"),
    ):
        said = answer(SCRIPT, asked(("user", prompt), tools=(OfferedTool("word"), tool)))
        assert said.call is not None
        assert said.call.tool is tool


def test_an_optional_step_is_left_out_where_its_tool_is_not_offered() -> None:
    rule = {"when": "x", "do": [{"call": "find", "optional": True}, {"call": "run"}, {"say": "y"}]}
    tools = {"find": [{"name": "^find$"}], "run": [{"name": "^run$"}]}
    own = read(script(rules=[rule], tools=tools))

    def said(calls: int, *names: str) -> str:
        done: list[tuple[Kind, str]] = [("call", ""), ("result", "")] * calls
        offered = tuple(OfferedTool(name) for name in names)
        found = answer(own, asked(("user", "x"), *done, tools=offered))
        return found.call.tool.name if found.call else found.text

    assert [said(calls, "find", "run") for calls in range(4)] == ["find", "run", "y", "y"]
    assert [said(calls, "run") for calls in range(2)] == ["run", "y"]
    assert said(0) == "I have no tool to run."


@pytest.mark.parametrize(
    ("turns", "text"),
    [
        ([("user", READ), ("assistant", "x"), ("user", "Say hello.")], "Hello!"),
        # A turn that was cancelled, and the next prompt in the same message.
        ([("user", "Think a bit then respond.\n\nSay hello.")], "Hello!"),
        ([("user", READ), ("call", "r"), ("result", "no"), ("note", "Say hello.")], "Hello!"),
        ([("user", READ), ("call", "r"), ("result", "yes"), ("note", "be brief")], "It says: yes"),
        ([("user", READ), ("result", ""), ("user", "What now?")], "This is a scripted model"),
        ([("user", f"<system-reminder>{READ}</system-reminder>\nSay hello.")], "Hello!"),
        ([("user", "Make a plan of three steps before you say hello.")], "I have no tool to plan."),
        ([], "This is a scripted model"),
    ],
)
def test_the_last_that_users_say_decides(turns: list[tuple[Kind, str]], text: str) -> None:
    assert answer(SCRIPT, asked(*turns)).text.startswith(text)


def test_a_shape_that_is_asked_for_is_kept() -> None:
    shape = {"type": "object", "properties": {"title": {"type": "string"}}, "required": ["title"]}
    said = answer(SCRIPT, asked(("user", "Say hello."), shape=shape))
    assert json.loads(said.text) == {"title": "comply"}


@pytest.mark.parametrize(
    ("kind", "text", "found"),
    [
        ("user", "<environment_context>\n<cwd>/tmp/w</cwd>", "/tmp/w"),
        ("system", "I'm currently working in the directory: /tmp/w\nx", "/tmp/w"),
        ("system", "Working directory: /tmp/w\n", "/tmp/w"),
        ("user", "- **Workspace Directories:**\n  - /tmp/w\n", "/tmp/w"),
        ("result", "<cwd>/tmp/w</cwd>", "."),
    ],
)
def test_the_working_folder_is_what_the_agent_says(kind: Kind, text: str, found: str) -> None:
    assert folder(SCRIPT, (Turn(kind, text),)) == found


def script(**changes: Any) -> str:
    rule = {"when": "(?P<x>.)", "do": [{"call": "run"}, {"say": "${result}"}]}
    use = {"name": "^run$", "arguments": {"c": "${x}"}}
    whole = {"rules": [rule], "otherwise": {"say": "no"}, "tools": {"run": [use]}}
    return json.dumps(whole | changes)


def test_a_script_is_data() -> None:
    tool = OfferedTool("run", {"type": "object", "properties": {"c": {"type": "string"}}})
    said = answer(read(script()), asked(("user", "q"), tools=(tool,)))
    assert said.call is not None
    assert said.call.arguments == {"c": "q"}


@pytest.mark.parametrize(
    ("text", "problem"),
    [
        ("{", "the script: is not JSON"),
        ("{}", "rules: required"),
        (script(extra=1), "extra: is not known here"),
        (script(rules=[{"when": "(", "do": [{"say": "x"}]}]), "rules.0.when: is not a regex"),
        (script(folder=["cwd: /.*"]), "folder.0: should have a group"),
        (script(tools={"run": [{"name": "${x}("}]}), "tools.run.0.name: is not a regex"),
        (
            script(tools={"run": [{"name": "r", "arguments": {"a": [{"(": "b"}]}}]}),
            "tools.run.0.arguments: is not a regex",
        ),
        (script(rules=[{"when": "x", "do": []}]), "rules.0.do: should have at least 1 item"),
        (script(otherwise={}), "otherwise: a step has exactly one of say and call"),
        (script(otherwise={"say": "x", "wait": -1}), "otherwise.wait: should be 0.0 or more"),
        (
            script(otherwise={"call": "fly"}),
            "the script: otherwise: no tools for fly; there are run",
        ),
        (
            script(rules=[{"when": "x", "do": [{"say": "${y}"}]}]),
            "the script: rules.0: ${y} is not set; there are ${folder}, ${result}",
        ),
        (script(otherwise={"call": "run"}), "the script: otherwise: ${x} is not set"),
    ],
)
def test_what_is_wrong_with_a_script_is_said(text: str, problem: str) -> None:
    with pytest.raises(BadScript) as raised:
        read(text)
    assert str(raised.value).startswith(problem)
