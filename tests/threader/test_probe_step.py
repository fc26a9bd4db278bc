"""Probes of a profile as command lines."""

import shlex
import subprocess
from typing import Any

import pytest

from schemas.manifest import NodeSpec
from schemas.verify_profile import VerifyProfile
from threader.probe_step import with_commands

NODE = NodeSpec(url="http://127.0.0.1:8080", project_id="p", agent_id="aid://example.com/a@1.0.0")


def command_of(node: NodeSpec = NODE, contract_id: str | None = "c1", **probe: Any) -> str:
    step = {"name": "probe", "probe": {"base_url": "http://127.0.0.1:8000", **probe}}
    profile = VerifyProfile.model_validate({"steps": [step]})
    [made] = with_commands(profile, node, contract_id).steps
    return str(made.cmd)


def test_a_probe_is_of_the_tasks_contract_with_the_same_requests_each_time() -> None:
    assert command_of() == (
        "CACP_RUNNER_KEY_FILE= cacp probe --url http://127.0.0.1:8080 --base-url "
        "http://127.0.0.1:8000 --cases 100 --seed 0 -- c1"
    )


@pytest.mark.parametrize(
    "probe",
    [
        {"contract": "Get profile; touch x"},
        {"contract": "--json", "cases": 3, "seed": 7},
        {"serve": """sh -c 'run "$PORT"' & wait"""},
        {"base_url": "http://h/$(touch)/v1"},
    ],
)
def test_what_it_is_given_reaches_the_command_as_it_is(probe: dict[str, Any]) -> None:
    given = {"contract": "c1", "base_url": "http://127.0.0.1:8000", "cases": 100, "seed": 0} | probe
    shown = 'cacp() { printf "%s\\0" "$@"; }; '
    done = subprocess.run(
        ["/bin/sh", "-c", shown + command_of(**probe)], capture_output=True, text=True, check=True
    )
    words = done.stdout.split("\0")[:-1]
    assert words[-2:] == ["--", given["contract"]]
    options = dict(zip(words[1:-2:2], words[2:-2:2], strict=True))
    assert options == {
        "--url": NODE.url,
        "--base-url": given["base_url"],
        "--cases": str(given["cases"]),
        "--seed": str(given["seed"]),
        **({"--serve": given["serve"]} if "serve" in given else {}),
    }


@pytest.mark.parametrize(
    ("key_env", "variables"),
    [
        ("CACP_KEY", "CACP_RUNNER_KEY_FILE="),
        ("MY_KEY", 'CACP_RUNNER_KEY_FILE= CACP_KEY="${MY_KEY-}"'),
        ("x}; touch y; ${z", "CACP_RUNNER_KEY_FILE="),
    ],
)
def test_the_key_is_that_of_the_run(key_env: str, variables: str) -> None:
    line = command_of(NODE.model_copy(update={"key_env": key_env}))
    assert line.startswith(f"{variables} cacp probe ")


def test_other_steps_stay_as_they_are() -> None:
    profile = VerifyProfile.model_validate({"steps": [{"name": "a", "cmd": "make"}], "env": {}})
    assert with_commands(profile, NODE, None) == profile
    assert shlex.split(command_of(contract_id=None, contract="n"))[-1] == "n"
