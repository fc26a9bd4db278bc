"""What `cacp comply run` tests."""

import json
from pathlib import Path

import pytest
import typer

from cli.comply_options import LimitOptions, NodeOptions, SubjectOptions
from cli.comply_subject import suites_for, targets_of
from comply.http import HttpTarget


@pytest.mark.parametrize(
    ("subject", "suites"),
    [
        (SubjectOptions(agents=["echo"]), ["acp", "acp-v2"]),
        (SubjectOptions(command="cat"), ["wire"]),
        (SubjectOptions(url="http://127.0.0.1:1"), ["cacp-2.0", "json-rpc-2.0"]),
    ],
)
def test_each_subject_has_its_suites(subject: SubjectOptions, suites: list[str]) -> None:
    assert suites_for(subject) == suites


@pytest.mark.parametrize(
    "subject", [SubjectOptions(), SubjectOptions(command="cat", url="http://127.0.0.1:1")]
)
def test_there_is_one_subject(subject: SubjectOptions) -> None:
    with pytest.raises(typer.Exit):
        suites_for(subject)


def test_a_node_is_called_with_the_keys_of_the_options() -> None:
    node = NodeOptions(key="a", sync_key="b", repo="r", endpoint2="http://127.0.0.1:2")
    (target,) = targets_of(SubjectOptions(url="http://127.0.0.1:1"), node, LimitOptions())()
    assert isinstance(target, HttpTarget)
    assert (target.keys["first"], target.keys["second"], target.keys["sync"]) == ("a", None, "b")
    assert (target.repo, target.repo2, target.endpoint2) == ("r", "frontend-app", node.endpoint2)


def test_wrong_options_end_the_command_before_anything_runs(tmp_path: Path) -> None:
    settings = tmp_path / "agents.json"
    settings.write_text(json.dumps({"agent_servers": {}}))
    for subject in (
        SubjectOptions(command="'"),
        SubjectOptions(agents=["echo"], settings=settings),
        SubjectOptions(agents=["echo"], settings=tmp_path / "none"),
    ):
        with pytest.raises(typer.Exit):
            targets_of(subject, NodeOptions(), LimitOptions())
