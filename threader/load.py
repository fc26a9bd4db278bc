"""Reads a manifest and the files it names; reports every problem at once (agent-threader-v2 §7)."""

from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any, TypeVar

import orjson
from pydantic import BaseModel, ValidationError

from schemas.manifest import Manifest, ManifestTask
from schemas.problems import problem_text
from schemas.v2 import FailureClass
from schemas.verify_profile import VerifyProfile, VerifyRegistry
from threader.errors import ManifestProblems
from threader.plan import find_cycle
from threader.probe_step import with_commands

STATE_FOLDER = ".threader"
Model = TypeVar("Model", bound=BaseModel)


@dataclass(frozen=True)
class ThreadProject:
    """A valid manifest with everything it refers to. All paths are absolute."""

    manifest: Manifest
    path: Path
    workspace: Path
    profiles: dict[str, VerifyProfile]

    @property
    def root(self) -> Path:
        """The manifest's folder: prompt and context references are relative to it."""
        return self.path.parent

    @property
    def state_dir(self) -> Path:
        return self.root / STATE_FOLDER / self.manifest.run_id

    def profile_of(self, task: ManifestTask) -> VerifyProfile:
        """What verifies a task, with the commands of its probes."""
        profile = self.profiles[task.verify_profile]
        return with_commands(profile, self.manifest.node, task.contract_id)


def _read_json(path: Path, what: str) -> Any:
    try:
        return orjson.loads(path.read_bytes())
    except OSError as error:
        raise ManifestProblems([f"{what} {path.name}: {error.strerror}"]) from None
    except orjson.JSONDecodeError as error:
        where = f"line {error.lineno} column {error.colno}"
        raise ManifestProblems([f"{what} {path.name}: {where}: {error.msg}"]) from None


def _describe(error: ValidationError, what: str) -> list[str]:
    problems = error.errors(include_url=False, include_input=False)
    return [f"{what} {problem_text(item, '(top)')}" for item in problems]


def read_model(path: Path, model: type[Model], what: str) -> Model:
    """Parse a JSON file into `model`. Raises ManifestProblems naming file, path and remedy."""
    try:
        return model.model_validate(_read_json(path, what))
    except ValidationError as error:
        raise ManifestProblems(_describe(error, what)) from None


_WRONG = "(wrong)"
"""Replaces a profile name that is reported as wrong already."""


def _without_mistakes(data: Any, error: ValidationError, name: str) -> Manifest | None:
    """The manifest `data` without the fields that `error` names, to look for further problems.

    `name` is a file in its folder. None when too little is left.
    """
    top: dict[Any, Any] = {"manifest_version": "2.0", "run_id": "run", "tasks": []}
    for place in (item["loc"] for item in error.errors(include_url=False)):
        of_task = place[:1] == ("tasks",) and len(place) > 1
        holder = data["tasks"][place[1]] if of_task else data
        rest = place[2:] if of_task else place
        if not isinstance(holder, dict) or not rest:
            return None
        needed = top
        if of_task:
            needed = {"id": f"task-{place[1]}", "prompt_ref": name, "depends_on": []}
            needed |= {"timeout_sec": 1, "verify_profile": _WRONG}
        holder.pop(rest[0], None)
        if rest[0] in needed:
            holder[rest[0]] = needed[rest[0]]
    return Manifest.model_validate(data)


def _read_manifest(path: Path) -> tuple[Manifest, list[str]]:
    """The manifest without its invalid fields, and the problems of those."""
    data = _read_json(path, "manifest")
    try:
        return Manifest.model_validate(data), []
    except ValidationError as error:
        problems = _describe(error, "manifest")
        manifest = _without_mistakes(data, error, path.name)
    if manifest is None:
        raise ManifestProblems(problems)
    return manifest, problems


def inside(root: Path, reference: str) -> Path | None:
    """`reference` as a path under `root`, or None when it leads out of it."""
    path = (root / reference).resolve()
    return path if path.is_relative_to(root.resolve()) else None


def _graph_problems(manifest: Manifest) -> Iterator[str]:
    ids = [task.id for task in manifest.tasks]
    known = set(ids)
    for task_id, count in Counter(name.casefold() for name in ids).items():
        if count > 1:
            yield f"tasks: {count} tasks are called {task_id} (case does not tell them apart)"
    for index, task in enumerate(manifest.tasks):
        for dep in task.depends_on:
            if dep not in known:
                yield f"tasks.{index}.depends_on: {task.id} depends on {dep}, which is not a task"
    cycle = find_cycle(manifest.tasks)
    if cycle:
        yield f"tasks: these depend on each other in a cycle: {' -> '.join(cycle)}"


def _reference_problems(manifest: Manifest, root: Path) -> Iterator[str]:
    references = [("context_refs", ref) for ref in manifest.context_refs]
    for index, task in enumerate(manifest.tasks):
        references.append((f"tasks.{index}.prompt_ref", task.prompt_ref))
        references += [(f"tasks.{index}.context_refs", ref) for ref in task.context_refs]
    seen: set[str] = set()
    for where, ref in references:
        if ref in seen:
            continue
        seen.add(ref)
        path = inside(root, ref)
        if path is None:
            yield f"{where}: {ref} leads out of the manifest's folder"
        elif not path.is_file():
            yield f"{where}: the file {ref} does not exist beside the manifest"


def _class_problems(manifest: Manifest) -> Iterator[str]:
    known = frozenset(FailureClass)
    lists = [("policy.healable", manifest.policy.healable)]
    for index, task in enumerate(manifest.tasks):
        lists.append((f"tasks.{index}.retry_policy.retry_on", task.retry_policy.retry_on or []))
    for where, names in lists:
        for name in names:
            if name not in known:
                yield f"{where}: {name} is not a failure class; they are {', '.join(sorted(known))}"


def _profile_problems(manifest: Manifest, profiles: dict[str, VerifyProfile]) -> Iterator[str]:
    names = Counter(task.verify_profile for task in manifest.tasks)
    for name in names:
        if name not in profiles and name != _WRONG:
            known = ", ".join(sorted(profiles)) or "none"
            yield f"tasks: verify_profile {name} is not in {manifest.verify_profiles} ({known})"


def _probe_problems(manifest: Manifest, profiles: dict[str, VerifyProfile]) -> Iterator[str]:
    for index, task in enumerate(manifest.tasks):
        profile = profiles.get(task.verify_profile, VerifyProfile())
        probes = [step.probe for step in profile.steps if step.probe is not None]
        of_task = f"tasks.{index}.verify_profile: {task.verify_profile} probes"
        if probes and manifest.node is None:
            yield f"{of_task} a contract, and the manifest names no node that has it"
        if task.contract_id is None and any(probe.contract is None for probe in probes):
            yield f"{of_task} the task's contract: give {task.id} a contract_id, or name one there"


def load_project(path: Path) -> ThreadProject:
    """Load and check a manifest. Raises ManifestProblems with every problem."""
    path = path.resolve()
    manifest, problems = _read_manifest(path)
    problems += [*_graph_problems(manifest), *_class_problems(manifest)]
    problems += _reference_problems(manifest, path.parent)
    profiles: dict[str, VerifyProfile] = {}
    try:
        registry = path.parent / manifest.verify_profiles
        profiles = read_model(registry, VerifyRegistry, "verify_profiles").profiles
        problems += _profile_problems(manifest, profiles)
        problems += _probe_problems(manifest, profiles)
    except ManifestProblems as error:
        problems += error.problems
    workspace = (path.parent / manifest.workspace).resolve()
    if not workspace.is_dir():
        problems.append(
            f"workspace: the folder {manifest.workspace} does not exist beside the manifest"
        )
    for name, profile in profiles.items():
        for index, step in enumerate(profile.steps):
            if inside(workspace, step.cwd) is None:
                problems.append(
                    f"verify_profiles profiles.{name}.steps.{index}.cwd: leads out of the workspace"
                )
    if problems:
        raise ManifestProblems(problems)
    return ThreadProject(manifest, path, workspace, profiles)
