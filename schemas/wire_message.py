"""The messages of the compact result text (`schemas.wire`): reports, dispatches, and what is wrong
with a text that holds one."""

import re
from collections.abc import Mapping
from typing import Annotated, Any, Generic, NamedTuple, TypeVar

from pydantic import (
    BaseModel,
    BeforeValidator,
    ConfigDict,
    Field,
    StringConstraints,
    ValidationError,
    model_validator,
)

from schemas import wire_values as values
from schemas.wire_text import DISPATCH_FIELDS, LISTS, REPORT_FIELDS
from schemas.wire_values import OUTCOMES, STATUSES


def _lower(value: Any) -> Any:
    return value.lower() if isinstance(value, str) else value


Status = Annotated[values.Status, BeforeValidator(_lower)]
Outcome = Annotated[values.Outcome, BeforeValidator(_lower)]


class WireError(ValueError):
    """Text that is not a valid report or dispatch, or a value that a line can't carry.

    `field` is the upper-case name, `line` counts from 1 (None when the input isn't text), and
    `allowed` describes the valid values.
    """

    def __init__(self, field: str, problem: str, allowed: str, line: int | None = None) -> None:
        self.field = field
        self.line = line
        self.allowed = allowed
        place = "" if line is None else f"line {line}: "
        super().__init__(f"{place}{field} {problem}; allowed: {allowed}")


class _Frozen(BaseModel):
    model_config = ConfigDict(frozen=True, extra="forbid")


class Tests(_Frozen):
    """The value of TESTS: an outcome, and how many tests ran if that is given, as in `pass:12`."""

    outcome: Outcome
    count: Annotated[int, Field(ge=0, le=999_999_999)] | None = None

    @model_validator(mode="before")
    @classmethod
    def _from_text(cls, value: Any) -> Any:
        if not isinstance(value, str):
            return value
        outcome, colon, count = value.partition(":")
        if not colon:
            return {"outcome": outcome}
        if not re.fullmatch("[0-9]{1,9}", count):
            raise ValueError(f"the count is {shortened(count)}, not 1 to 9 digits")
        return {"outcome": outcome, "count": int(count)}

    def __str__(self) -> str:
        return self.outcome if self.count is None else f"{self.outcome}:{self.count}"


class Report(_Frozen):
    """What an agent answers. `extra` keeps unknown fields by upper-case name, in their order."""

    status: Status
    files_created: tuple[str, ...] = ()
    files_modified: tuple[str, ...] = ()
    files_deleted: tuple[str, ...] = ()
    tests: Tests | None = None
    build: Outcome | None = None
    learned: str | None = None
    error: str | None = None
    question: str | None = None
    extra: dict[str, str] = Field(default_factory=dict)

    @property
    def failing(self) -> tuple[str, ...]:
        """Those of TESTS and BUILD that say fail: the work is not done then, whatever STATUS is."""
        outcomes = {"TESTS": self.tests and self.tests.outcome, "BUILD": self.build}
        return tuple(name for name, outcome in outcomes.items() if outcome == "fail")


class Dispatch(_Frozen):
    """What an agent is asked to do. `extra` keeps unknown fields by upper-case name, in order."""

    task: Annotated[str, StringConstraints(min_length=1)]
    context: str | None = None
    acceptance: str | None = None
    scope: str | None = None
    verify: str | None = None
    done: str | None = None
    extra: dict[str, str] = Field(default_factory=dict)


class WireWarning(_Frozen):
    """Something in the text that was understood though it is not in the form it should have.

    `line` counts from 1; `field` is the upper-case name, None for a line that belongs to no field.
    """

    line: int
    field: str | None = None
    message: str

    def __str__(self) -> str:
        return f"line {self.line}: {f'{self.field} ' if self.field else ''}{self.message}"


Message = Report | Dispatch
_M = TypeVar("_M", bound=Message)


class ParsedMessage(NamedTuple, Generic[_M]):
    """A report or dispatch as it was read from a text."""

    message: _M
    warnings: tuple[WireWarning, ...]


MODELS: dict[str, type[Report] | type[Dispatch]] = {"STATUS": Report, "TASK": Dispatch}
"""The message that each head begins."""
FIELDS = {"STATUS": REPORT_FIELDS, "TASK": DISPATCH_FIELDS}
"""The known fields of a message, by its head."""

_ONE_LINE = "one line of text without control characters or blanks at its ends"
_PATHS = "a list of paths without commas, control characters or blanks at their ends"
_ALLOWED = {
    "STATUS": ", ".join(STATUSES),
    "TESTS": f"{', '.join(OUTCOMES)}, with an optional count as in pass:12",
    "BUILD": ", ".join(OUTCOMES),
} | dict.fromkeys(LISTS, _PATHS)


def allowed(name: str) -> str:
    """What a field's value may be, in words."""
    return _ALLOWED.get(name, _ONE_LINE)


def shortened(value: Any) -> str:
    """A value as an error shows it: quoted, at most 60 characters."""
    if value is None:
        return "missing"
    text = repr(value)
    return text if len(text) <= 60 else f"{text[:59]}…"


def make_message(head: str, members: dict[str, Any], lines: Mapping[str, int]) -> Message:
    """The message of `members`, by lower-case name. `lines` has the line of each upper-case field.

    Raises WireError.
    """
    try:
        return MODELS[head].model_validate(members)
    except ValidationError as error:
        where, *inner = error.errors()[0]["loc"]
        name = str(inner[0] if where == "extra" else where).upper()
        value = members["extra"][name] if where == "extra" else members.get(name.lower())
        problem = f"is {shortened(value)}"
        raise WireError(name, problem, allowed(name), lines.get(name)) from None
