"""A contract as mocks and probes take it: its content in the inner form, and what names it."""

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import Any

from contracts.model import Interface, Located
from contracts.recognise import read
from proof.exchange import OperationCheck, operation_checks
from proof.probe_outcome import contract_digest
from schemas.plain import one_line

NAME_MAX = 60


@dataclass(frozen=True)
class AgreedContract:
    """A version of a contract. `contract_id` and `version` are None for one from a file."""

    name: str
    content: Mapping[str, Any]
    contract_type: str | None = None
    contract_id: str | None = None
    version: int | None = None
    dialect: str | None = None
    """What the content was declared to be written in; None where it is recognised."""
    completions: Mapping[str, str] | None = None
    """When each repo has declared its work on the version complete in its current round, by the
    repo's id: the node's times. None where no node was asked."""

    @cached_property
    def interface(self) -> Interface:
        return read(self.content, self.dialect, self.contract_type)

    @cached_property
    def digest(self) -> str:
        return contract_digest(self.content)

    @cached_property
    def operations(self) -> list[OperationCheck]:
        """The HTTP operations that consumers call."""
        return operation_checks(self.interface)

    @property
    def title(self) -> str:
        version = "" if self.version is None else f" (version {self.version})"
        return f"{one_line(self.name, NAME_MAX)}{version}"

    def doubts(self) -> list[str]:
        """What of the content could not be read, in one line each."""
        notes = (*self.interface.problems, *self.interface.warnings)
        lines = [f"{'/'.join(map(str, note.path)) or 'content'}: {note.why}" for note in notes]
        return [one_line(line, 300) for line in lines]


def examples_beside(interface: Interface, located: Located) -> dict[str, Any]:
    """The examples that stand beside a schema, by name: OpenAPI's `example` and `examples`."""
    root = interface.files.get(located.file) if located.file else interface.document
    holder = _at(root, located.path[:-1])
    if not isinstance(holder, Mapping) or located.path[-1:] not in (("schema",), ()):
        return {}
    named: dict[str, Any] = {}
    if located.path and "example" in holder:
        named["example"] = holder["example"]
    listed = holder.get("examples") if located.path else None
    for name, given in listed.items() if isinstance(listed, Mapping) else ():
        if isinstance(given, Mapping) and "value" in given:
            named[str(name)] = given["value"]
    return named


def unsound_examples(contract: AgreedContract) -> list[str]:
    """The examples that don't fit the schemas that they stand beside, in one line each."""
    lines = []
    for check in contract.operations:
        if check.is_endless:
            continue
        parts = (check.request, *check.responses.values())
        bodies = (schema for part in parts for schema in part.bodies.values())
        for schema in bodies:
            for name, value in examples_beside(contract.interface, schema.located).items():
                if not schema.validator.accepts(value):
                    where = "/".join(map(str, schema.located.path[:-1]))
                    lines.append(f"the example {one_line(name, NAME_MAX)} at {where} doesn't fit")
    return lines


def _at(value: Any, path: tuple[str | int, ...]) -> Any:
    for step in path:
        try:
            value = value[step]
        except (KeyError, IndexError, TypeError):
            return None
    return value
