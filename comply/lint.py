"""Everything that is wrong with a test file, for its author: `cacp comply lint`."""

from collections.abc import Iterator
from pathlib import Path

from pydantic import BaseModel, JsonValue, ValidationError

from comply.setup import BadSetup, setup_steps
from comply.source import NotATest, Place, Problem, Source, bad_patterns, invalid_fields, parse
from comply.template import names
from schemas.jsont import ComplianceTest, JsontStep

BUILT_IN = frozenset(
    {
        *("endpoint", "endpoint2"),
        *("sandbox", "protocolVersionDefault", "clientCapabilitiesDefault", "mcpServer"),
        "authMethod",
        *("unique", "repo", "repo2", "peerRepo", "large", "soon"),
    }
)
"""Variables that every test has; see docs/comply.md."""


def lint(text: str, folder: Path) -> list[Problem]:
    """All problems of a test file in `folder`, in the order of its lines."""
    try:
        source = parse(text)
    except NotATest as error:
        return [error.problem]
    problems = [
        Problem(source.line(place), f"{place[-1]!r} is here twice") for place in source.twice
    ]
    try:
        test = ComplianceTest.model_validate(source.value)
    except ValidationError as error:
        problems += invalid_fields(source, error)
    else:
        problems += _metadata(test)
        problems += _foreign_preconditions(test, source)
        problems += bad_patterns(source)
        problems += _steps(test, source, folder)
        reported = {
            f"preconditions.{number}.{condition.foreign}"
            for number, condition in enumerate(test.preconditions)
        }
        unknown = _unknown_fields(source.value, ComplianceTest, (), source)
        problems += [
            problem for problem in unknown if problem.text.partition(":")[0] not in reported
        ]
    return sorted(problems, key=lambda problem: problem.line)


def _metadata(test: ComplianceTest) -> Iterator[Problem]:
    if not test.description:
        yield Problem(1, "description is missing: describe what the test verifies", "warning")
    if not test.docs:
        yield Problem(1, "docs: link the clause that the test checks", "warning")


def _foreign_preconditions(test: ComplianceTest, source: Source) -> Iterator[Problem]:
    for number, condition in enumerate(test.preconditions):
        if condition.foreign is not None:
            text = f"preconditions.{number}: only other runners know {condition.foreign}: NA here"
            yield Problem(source.line(("preconditions", number)), text, "warning")


def _steps(test: ComplianceTest, source: Source, folder: Path) -> Iterator[Problem]:
    """A set-up that can't be loaded, and variables that nothing sets."""
    try:
        before = setup_steps(test.setup, folder)
    except BadSetup as error:
        yield Problem(source.line(("setup",)), f"setup: {error}")
        before = []
    steps = source.value["steps"] if isinstance(source.value, dict) else None
    known = BUILT_IN.union(*map(_captured_by, before))
    for number, step in enumerate(test.steps):
        raw = steps[number] if isinstance(steps, list) else None
        for name in dict.fromkeys(names(raw)):
            if name not in known:
                yield Problem(source.line(("steps", number)), f"${{{name}}} is set by no step")
        known |= _captured_by(step)


def _captured_by(step: JsontStep) -> set[str]:
    """The variables that a step sets."""
    if step.new_session is not None:
        return {step.new_session.capture}
    return {capture.var for capture in step.expect.captures} if step.expect else set()


def _unknown_fields(
    value: JsonValue, model: type[BaseModel], place: Place, source: Source
) -> Iterator[Problem]:
    """Fields that this runner ignores: meant for another runner, or misspelt."""
    if not isinstance(value, dict):
        return
    fields = {info.alias or name: info for name, info in model.model_fields.items()}
    for name, item in value.items():
        field_place = (*place, name)
        if name not in fields:
            path = ".".join(map(str, field_place))
            yield Problem(source.line(field_place), f"{path}: unknown, so ignored", "warning")
            continue
        inner = _model_of(fields[name].annotation)
        if inner is not None:
            items = item if isinstance(item, list) else [item]
            for number, element in enumerate(items):
                deeper = (*field_place, number) if isinstance(item, list) else field_place
                yield from _unknown_fields(element, inner, deeper, source)


def _model_of(annotation: object) -> type[BaseModel] | None:
    """The model in `X`, `X | None` or `list[X]`."""
    if isinstance(annotation, type) and issubclass(annotation, BaseModel):
        return annotation
    models = (_model_of(argument) for argument in getattr(annotation, "__args__", ()))
    return next((model for model in models if model is not None), None)
