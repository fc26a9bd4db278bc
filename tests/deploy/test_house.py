"""The files around the code say what is so: CI, hooks, the dev container, AGENTS.md."""

import json
import os
import re
import subprocess
import sys
import tomllib
from pathlib import Path

import pytest
import yaml

from tests.architecture.source import ROOT

MAKEFILE = (ROOT / "Makefile").read_text()
TARGETS = set(re.findall(r"^([a-z-]+):.*##", MAKEFILE, re.MULTILINE))
GITHUB = ROOT / ".github"
WORKFLOWS = sorted((GITHUB / "workflows").glob("*.yml"))
FORMS = [path for path in (GITHUB / "ISSUE_TEMPLATE").glob("*.yml") if path.stem != "config"]
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
CHANGELOG = """\
# Changelog

## Unreleased

- c

## 0.2.0 (2026-12-01)

- b

## 0.1.0 (2026-11-01)

- a
"""


def test_agents_md_has_every_target_of_use() -> None:
    told = set(re.findall(r"^\| `make ([a-z-]+)`", (ROOT / "AGENTS.md").read_text(), re.MULTILINE))
    assert told == TARGETS - {"help", "install", "format", "clean"}


@pytest.mark.parametrize(
    "file",
    [
        "README.md",
        "CONTRIBUTING.md",
        "SECURITY.md",
        "AGENTS.md",
        ".pre-commit-config.yaml",
        ".devcontainer/devcontainer.json",
        *(str(path.relative_to(ROOT)) for path in GITHUB.rglob("*.*")),
        *(str(path.relative_to(ROOT)) for path in (ROOT / "docs").rglob("*.md")),
    ],
)
def test_the_targets_that_a_file_names_are_there(file: str) -> None:
    text = (ROOT / file).read_text()
    code = " ".join("".join(parts) for parts in re.findall(r"`(.*?)`|(?:run|entry): (.*)", text))
    assert set(re.findall(r"\bmake ([a-z-]+)", code)) <= TARGETS


def test_ci_runs_on_each_python_that_the_package_says() -> None:
    ci = yaml.safe_load((GITHUB / "workflows/ci.yml").read_text())
    said = re.findall(r"Python :: (3\.\d+)", "\n".join(PROJECT["classifiers"]))
    assert ci["jobs"]["test"]["strategy"]["matrix"]["python"] == said
    assert {"run": ".ci/run"} in ci["jobs"]["test"]["steps"]


@pytest.mark.parametrize("file", WORKFLOWS, ids=lambda file: file.stem)
def test_a_workflow_may_do_little(file: Path) -> None:
    """On a push of anybody's code it reads; only a release, by a tag, writes."""
    workflow = yaml.safe_load(file.read_text())
    writes = "write" if file.stem == "release" else "read"
    assert workflow["permissions"] == {"contents": writes}
    for job in workflow["jobs"].values():
        assert job["timeout-minutes"]


def test_a_release_has_the_changelogs_section_of_its_version(tmp_path: Path) -> None:
    """The release workflow's own step, on a changelog with two versions."""
    release = yaml.safe_load((GITHUB / "workflows/release.yml").read_text())["jobs"]["release"]
    [script] = [step["run"] for step in release["steps"] if "> notes.md" in step.get("run", "")]
    (tmp_path / "pyproject.toml").write_text('version = "0.2.0"\n')
    (tmp_path / "CHANGELOG.md").write_text(CHANGELOG)

    def run(tag: str) -> int:
        variables = {"GITHUB_REF_NAME": tag, "PATH": os.environ["PATH"]}
        words = ["bash", "-eo", "pipefail", "-c", script]
        return subprocess.run(words, cwd=tmp_path, env=variables).returncode

    assert run("v0.2.0") == 0
    assert (tmp_path / "notes.md").read_text() == "\n- b\n\n"
    assert run("v0.1.0") != 0
    (tmp_path / "pyproject.toml").write_text('version = "0.3.0"\n')
    assert run("v0.3.0") != 0


@pytest.mark.parametrize("form", FORMS, ids=lambda file: file.stem)
def test_an_issue_form_is_one(form: Path) -> None:
    """What GitHub demands of a form: a name, a description, and fields with an id and a label."""
    said = yaml.safe_load(form.read_text())
    assert said["name"]
    assert said["description"]
    fields = [field for field in said["body"] if field["type"] != "markdown"]
    assert all(field["attributes"]["label"] for field in fields)
    assert len({field["id"] for field in fields}) == len(fields) > 0


def test_the_dev_container_has_what_the_project_needs() -> None:
    text = (ROOT / ".devcontainer/devcontainer.json").read_text()
    container = json.loads(re.sub(r"^\s*//.*$", "", text, flags=re.MULTILINE))
    hadolint = Path(sys.executable).with_name("hadolint")
    dockerfile = ROOT / ".devcontainer" / container["build"]["dockerfile"]
    done = subprocess.run([hadolint, dockerfile], capture_output=True, text=True)
    assert (done.returncode, done.stdout) == (0, "")
    venv = container["containerEnv"]["VENV"]
    assert container["postCreateCommand"] == f"make {venv}/.installed-dev"
