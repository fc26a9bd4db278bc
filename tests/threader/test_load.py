"""Loading manifests: every problem at once, each with its place (agent-threader-v2 §7)."""

import json
from pathlib import Path
from typing import Any

import pytest

from tests.threader.projects import Bench
from threader.errors import ManifestProblems
from threader.load import inside, load_project


def problems(path: Path) -> list[str]:
    with pytest.raises(ManifestProblems) as caught:
        load_project(path)
    return caught.value.problems


def test_a_good_manifest_loads(tmp_path: Path) -> None:
    project = load_project(Bench(tmp_path / "p", ["A"]).save())
    assert project.workspace == tmp_path / "p" / "work"
    assert project.state_dir == tmp_path / "p" / ".threader" / "run-1"


def test_all_problems_come_at_once(tmp_path: Path) -> None:
    bench = Bench(
        tmp_path / "p",
        [
            {"id": "A", "depends_on": ["B"], "verify_profile": "nope"},
            {"id": "B", "depends_on": ["A", "ghost"], "context_refs": ["missing.md"]},
            {"id": "b", "prompt_ref": "../outside.md", "retry_policy": {"retry_on": ["bogus"]}},
        ],
        workspace="nowhere",
    )
    found = "\n".join(problems(bench.save()))
    for part in (
        "A -> B -> A",
        "B depends on ghost",
        "2 tasks are called b",
        "bogus is not a failure class",
        "the file missing.md does not exist",
        "../outside.md leads out",
        "verify_profile nope is not in verify_profiles.json (none)",
        "the folder nowhere does not exist",
    ):
        assert part in found
    assert str(tmp_path) not in found, "no path of this machine"


@pytest.mark.parametrize(
    ("text", "says"),
    [
        ("{", "line 1 column"),
        ("[]", "should be an object"),
        ('{"manifest_version": "2.0", "run_id": "r"}', "tasks: required"),
    ],
)
def test_broken_files(tmp_path: Path, text: str, says: str) -> None:
    (tmp_path / "m.json").write_text(text)
    assert says in problems(tmp_path / "m.json")[0]
    assert "No such file" in problems(tmp_path / "none.json")[0]


def test_a_steps_folder_stays_inside(tmp_path: Path) -> None:
    bench = Bench(tmp_path / "p", ["A"])
    step: dict[str, Any] = {"name": "t", "cmd": "true", "timeout_sec": 1, "cwd": "../.."}
    bench.profiles["none"] = {"steps": [step]}
    assert "leads out of the workspace" in problems(bench.save())[0]
    bench.save()
    (bench.root / "verify_profiles.json").write_text(json.dumps({"profiles": {"none": {"x": 1}}}))
    assert any("profiles.none.x" in line for line in problems(bench.root / "manifest.json"))


PROBE: dict[str, Any] = {"name": "probe", "probe": {"base_url": "http://127.0.0.1:8000"}}
NODE = {"url": "http://127.0.0.1:8080", "project_id": "p", "agent_id": "a"}


def test_a_probe_needs_a_contract_of_a_node(tmp_path: Path) -> None:
    bench = Bench(tmp_path / "p", ["A", {"id": "B", "contract_id": "c1"}])
    bench.profiles["none"] = {"steps": [PROBE]}
    assert problems(bench.save()) == [
        "tasks.0.verify_profile: none probes a contract, and the manifest names no node that has "
        "it",
        "tasks.0.verify_profile: none probes the task's contract: give A a contract_id, or name "
        "one there",
        "tasks.1.verify_profile: none probes a contract, and the manifest names no node that has "
        "it",
    ]
    bench.manifest["node"] = NODE
    bench.manifest["tasks"].pop(0)
    project = load_project(bench.save())
    [step] = project.profile_of(project.manifest.tasks[0]).steps
    assert str(step.cmd).endswith("-- c1")


def test_inside(tmp_path: Path) -> None:
    assert inside(tmp_path, "a/../b") == tmp_path / "b"
    assert inside(tmp_path, "../b") is None


def test_wrong_fields_hide_no_other_problem(tmp_path: Path) -> None:
    tasks: list[str | dict[str, Any]] = [
        {"id": "A", "depends_on": ["B"], "timeout_sec": "soon", "verify_profile": 7},
        {"id": "B", "depends_on": ["A"], "retry_policy": {"retry_on": [5]}, "odd": 1},
        {"id": "C", "prompt_ref": "nope.md"},
    ]
    bench = Bench(tmp_path / "p", tasks, policy={"concurrency": 0})
    bench.manifest["run_id"] = "../x"
    found = problems(bench.save())
    assert [line.partition(": ")[0] for line in found] == [
        "manifest run_id",
        "manifest tasks.0.timeout_sec",
        "manifest tasks.0.verify_profile",
        "manifest tasks.1.retry_policy.retry_on.0",
        "manifest tasks.1.odd",
        "manifest policy.concurrency",
        "tasks",
        "tasks.2.prompt_ref",
    ]
    assert "A -> B -> A" in found[6]


@pytest.mark.parametrize("tasks", [None, 5, [5], [{}], {"a": 1}])
def test_what_is_no_list_of_tasks(tmp_path: Path, tasks: Any) -> None:
    bench = Bench(tmp_path / "p", [])
    bench.manifest["tasks"] = tasks
    assert all(line.startswith("manifest tasks") for line in problems(bench.save()))
