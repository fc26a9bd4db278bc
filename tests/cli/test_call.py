"""`cacp call`: params as people write them, results and errors as programs read them."""

import doctest
import json
import subprocess
import sys

import pytest

from cli import call
from cli.call import read_params
from tests.cli.run import cacp, environment_of
from tests.support.node import Node
from tests.support.waiting import PATIENCE


def test_the_examples_hold() -> None:
    assert doctest.testmod(call).failed == 0


@pytest.mark.parametrize(
    ("words", "params"),
    [
        ([], {}),
        (['{"a": 1}'], {"a": 1}),
        (["a=1", "b:=1", "c=x=y", "d:=null"], {"a": "1", "b": 1, "c": "x=y", "d": None}),
        (["a="], {"a": ""}),
    ],
)
def test_params(words: list[str], params: dict[str, object]) -> None:
    assert read_params(words) == params


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (["a"], "a: should be name=text, name:=JSON or an object"),
        (["=1"], "should be name=text"),
        ([":=1"], "should be name=text"),
        (["a:=x"], "a: not JSON"),
        (["[1]"], "should be a JSON object"),
        (["comment=…"], "comment: … stands for a value that you decide"),
        (["content:=…"], "stands for a value that you decide"),
        (['payload:={"answer": "…"}'], "payload: … stands for a value that you decide"),
        (["{"], "params: not JSON"),
        (["[" * 100_000], "nested too deeply"),
    ],
)
def test_wrong_params_say_what_would_be_right(words: list[str], said: str) -> None:
    with pytest.raises(ValueError, match=said.replace("[", r"\[")):
        read_params(words)


def test_a_call_prints_its_result(node: Node) -> None:
    done = cacp("call", "cacp/project/create", "name=Pairs", "objective=x", url=node.url)
    assert json.loads(done.stdout)["status"] == "created"
    done = cacp(
        "call", "cacp/project/create", "-", stdin='{"name": "In", "objective": "x"}', url=node.url
    )
    assert done.exit_code == 0


def test_a_refusal_is_a_line_on_stderr(node: Node) -> None:
    done = cacp("call", "cacp/project/get", url=node.url)
    assert (done.exit_code, done.stdout) == (1, "")
    assert done.stderr == "error -32602: Invalid params: projectId is required\n"


def test_with_json_a_refusal_is_an_object_too(node: Node) -> None:
    done = cacp("call", "cacp/project/get", "projectId=nope", "--json", url=node.url)
    error = json.loads(done.stdout)["error"]
    assert (done.exit_code, error["code"]) == (1, -32602)
    assert error["data"]["reason"] == "not_found"


def test_an_unknown_key_is_refused(node: Node) -> None:
    done = cacp("call", "cacp/project/list", url=node.url, key="cacp_sk_" + "x" * 32)
    assert done.exit_code == 1
    assert done.stderr.startswith("error -32001: This key is unknown here")


@pytest.mark.parametrize("url", ["nonsense", "ftp://x", "http://", "http://[::1"])
def test_what_is_no_url_is_wrong_usage(url: str) -> None:
    done = cacp("call", "cacp/project/list", url=url)
    assert done.exit_code == 2
    assert f"{url} is not the URL of a node" in done.stderr


def test_text_for_a_param_of_another_type_is_named(node: Node) -> None:
    done = cacp("call", "acp/inbox", "wait=1", url=node.url)
    assert done.exit_code == 1
    assert done.stderr.splitlines()[1:] == ["wait=… is text; write wait:=… for JSON"]


def test_a_method_has_help_of_its_own() -> None:
    done = cacp("call", "cacp/contract/propose", "--help")
    assert done.exit_code == 0
    for part in ("Propose an interface contract", "projectId  text (required)", "Example:"):
        assert part in done.stdout
    assert "METHOD" in cacp("call", "--help").stdout
    unknown = cacp("call", "contract/propse", "--help")
    assert unknown.exit_code == 2
    assert "did you mean cacp/contract/propose?" in unknown.stderr


def test_a_method_or_param_that_does_not_exist_has_a_likely_one(node: Node) -> None:
    done = cacp("call", "cacp/contract/gett", url=node.url)
    assert done.exit_code == 1
    assert "did you mean cacp/contract/get" in done.stderr
    done = cacp("call", "cacp/contract/get", "project_id=1", url=node.url)
    assert "has no param project_id; did you mean projectId?" in done.stderr


def test_a_shell_completes_methods() -> None:
    words = {"COMP_WORDS": "cacp call cacp/contract/prop", "COMP_CWORD": "2"}
    done = subprocess.run(
        [sys.executable, "-m", "cli.main"],
        env={**environment_of(), "_CACP_COMPLETE": "complete_bash", **words},
        stdout=subprocess.PIPE,
        text=True,
        timeout=PATIENCE,
    )
    assert done.stdout.split() == ["cacp/contract/propose"]
