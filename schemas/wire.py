"""The compact result text of an agent (`cacp-wire-format.md`): parse, check and emit.

A line is `FIELD:value`. A *block* is what stands from one head to the next, and its head says what
it is: `STATUS` heads a `Report`, `TASK` a `Dispatch`. Where the specification is silent, this
holds; `schemas.wire_text` finds the fields, `schemas.wire_values` reads what is oddly written.

- A known field counts wherever a line begins with its name, in any case, and a colon: behind prose,
  lists, blank lines and fences too. What decorates the line (quote and list marks, numbers,
  headings, bold, code marks, symbols, the cells of a table, terminal escapes) is no part of it.
- Unknown fields count in upper case only, so that `Note: ...` and `https://...` stay prose, and not
  behind a fence, or prose behind a blank line.
- A value goes on over the lines behind it: what is indented or an item of a list, and for text what
  no blank line parts from it. It is made one line, with `; ` before an item.
- The last block counts. If it is malformed, that is an error: an earlier one doesn't stand in for
  it. Fields that stand right before a late head are of its block.
- A report that says `ok` or `no_changes` is refused when the text speaks against it
  (`schemas.wire_outcome`): what failed before and it doesn't name, a line that tells of failure.
- FILES_* add up, and so does text. STATUS, TESTS and BUILD may be said twice if it is the same.
- What can't be misread is read, with a warning; what can is refused, and never guessed or left out.
- An empty value means that the field is absent; a head must have a value.

Every function here is linear in the length of its input.
"""

import re
from collections.abc import Mapping, Sequence
from typing import Annotated, Any, Generic, NamedTuple, TypeVar, cast

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
from schemas.plain import NOISE
from schemas.wire_outcome import contradiction, overlooked
from schemas.wire_text import (
    BREAK,
    DISPATCH_FIELDS,
    HEADS,
    LISTS,
    NAME,
    REPORT_FIELDS,
    SEEN_BREAK,
    Block,
    Entry,
    blocks,
)
from schemas.wire_values import DONE, ONE_WORD, OUTCOMES, STATUSES, names_field, paths, said


def _lower(value: Any) -> Any:
    return value.lower() if isinstance(value, str) else value


Status = Annotated[values.Status, BeforeValidator(_lower)]
Outcome = Annotated[values.Outcome, BeforeValidator(_lower)]


class WireError(ValueError):
    """Text that is no valid report or dispatch, or a value that a line can't carry.

    `field` is the upper-case name, `line` counts from 1 (None when the input isn't text), and
    `allowed` says in words what would be right.
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
    """The value of TESTS: an outcome and how many tests ran, if told. `pass:12` reads as one."""

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
            raise ValueError("the count is a number of at most nine digits")
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
        """What of TESTS and BUILD says fail: then the work is not done, whatever STATUS says."""
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
    """What was read though it isn't as it should be. `line` counts from 1; `field` is the
    upper-case name, None for a line that belongs to no field."""

    line: int
    field: str | None = None
    message: str

    def __str__(self) -> str:
        return f"line {self.line}: {f'{self.field} ' if self.field else ''}{self.message}"


Message = Report | Dispatch
_M = TypeVar("_M", bound=Message)


class Parsed(NamedTuple, Generic[_M]):
    """A report or dispatch as it was read from a text."""

    message: _M
    warnings: tuple[WireWarning, ...]


_MODELS: dict[str, type[Report] | type[Dispatch]] = {"STATUS": Report, "TASK": Dispatch}
_OWN = {"STATUS": REPORT_FIELDS, "TASK": DISPATCH_FIELDS}
_ONE_LINE = "one line of text without control characters or blanks at its ends"
_PATHS = "a list of paths without commas, control characters or blanks at their ends"
_ALLOWED = {
    "STATUS": ", ".join(STATUSES),
    "TESTS": f"{', '.join(OUTCOMES)}, with an optional count as in pass:12",
    "BUILD": ", ".join(OUTCOMES),
} | dict.fromkeys(LISTS, _PATHS)
_WARNINGS_MAX = 50
_TOLD = "warnings"


def parse(text: str) -> Parsed[Message] | None:
    """The last report or dispatch in `text`; None if it holds neither. Raises WireError."""
    found = blocks(text, HEADS)
    return _Reading(found).parsed() if found else None


def parse_report(text: str) -> Parsed[Report] | None:
    """The last report in `text`, whatever dispatches stand around it. Raises WireError."""
    found = blocks(text, ("STATUS",))
    return cast(Parsed[Report], _Reading(found).parsed()) if found else None


def emit(message: Message) -> str:
    """The canonical text, without a newline at its end: `parse(emit(x)) == x`.

    Raises WireError for a value that one line can't carry.
    """
    own = _OWN["STATUS" if isinstance(message, Report) else "TASK"]
    lines = []
    for name in own:
        value = getattr(message, name.lower())
        if value not in (None, ()):
            lines.append(f"{name}:{_value(name, value)}")
    for name, value in message.extra.items():
        if not NAME.fullmatch(name) or name in own or name in _MODELS:
            allowed = "two or more of A-Z, 0-9 and _, beginning with a letter, not a known field"
            raise WireError(repr(name), "can't name an extra field", allowed)
        lines.append(f"{name}:{_carried(name, value)}")
    text = "\n".join(lines)
    _check_read_back(message, text)
    return text


def to_fields(message: Message, warnings: Sequence[WireWarning] | None = None) -> dict[str, Any]:
    """One flat JSON object: every known field and the extra ones, by lower-case name; and
    `warnings`, if they are given, where an extra field of that name is told as one more."""
    fields = message.model_dump(mode="json", exclude={"extra"})
    fields |= {name.lower(): value for name, value in message.extra.items()}
    if warnings is not None:
        own = fields.get(_TOLD)
        told = [] if own is None else [{"line": None, "field": _TOLD.upper(), "message": own}]
        fields[_TOLD] = [one.model_dump() for one in warnings] + told
    return fields


def from_fields(fields: Mapping[str, Any]) -> Message:
    """The inverse of `to_fields`; absent and null fields are alike. Raises WireError."""
    given: dict[str, Any] = {}
    extra: dict[str, Any] = {}
    head = next((head for head in _MODELS if head.lower() in fields), None)
    if head is None:
        raise WireError("STATUS", "is missing, and so is TASK", "one of the two")
    for name, value in fields.items():
        if name != name.lower() or not NAME.fullmatch(name.upper()):
            raise WireError(repr(name), "is no field name", "lower-case names, as in files_created")
        if name == _TOLD and isinstance(value, list):
            own = [one for one in value if isinstance(one, dict) and one.get("line") is None]
            extra |= {_TOLD.upper(): one.get("message") for one in own}
        elif value is None:
            continue
        elif name.upper() in _OWN[head]:
            given[name] = value
        else:
            extra[name.upper()] = value
    return _message(head, given | {"extra": extra}, {})


class _Reading:
    """Makes a message of the last of some blocks, and keeps what is odd about it."""

    def __init__(self, found: Sequence[Block]) -> None:
        *self.earlier, self.block = found
        self.warnings = [
            WireWarning(line=line, field=field, message=message)
            for line, field, message in self.block.notes
        ]

    def parsed(self) -> Parsed[Message]:
        """Raises WireError."""
        given: dict[str, Any] = {}
        extra: dict[str, str] = {}
        fields: dict[str, list[Entry]] = {}
        for entry in self.block.entries:
            fields.setdefault(entry.name, []).append(entry)
        head = cast(str, self.block.head)
        for name, entries in fields.items():
            if name not in _OWN[head]:
                extra[name] = self._text(name, entries)
            elif name in LISTS:
                given[name.lower()] = self._paths(name, entries)
            elif name in ONE_WORD:
                given[name.lower()] = self._word(name, entries)
            elif value := self._text(name, entries):
                given[name.lower()] = value
        numbers = {name: entries[0].line.number for name, entries in fields.items()}
        message = _message(head, given | {"extra": extra}, numbers)
        if isinstance(message, Report):
            self._compare(message, numbers)
        self._look_back(numbers)
        return Parsed(message, self._told())

    def _compare(self, report: Report, numbers: Mapping[str, int]) -> None:
        """Hold STATUS against TESTS and BUILD, and against all else that the text says. Raises
        WireError."""
        if report.status in DONE:
            for name in report.failing:
                problem = f"says fail, so the work is not done, though STATUS is {report.status}"
                self._warn(numbers[name], name, problem)
            open_ends = {"TESTS": report.tests, "BUILD": report.build}
            if numbers.keys() == {"STATUS"}:
                open_ends["STATUS"] = None
            lacking = {name for name, outcome in open_ends.items() if outcome is None}
            found = contradiction(self.earlier, self.block, lacking, failing=bool(report.failing))
            if found is not None:
                raise WireError(found.field, found.problem, found.allowed, found.line)
        for number, name in overlooked(self.block):
            self._warn(number, name, "is named here, but not with a colon; it was passed over")

    def _look_back(self, numbers: Mapping[str, int]) -> None:
        """Tell of what stands before the block. Raises WireError when it can't be told which of two
        has a field."""
        counts = f"the block on line {self.block.number} counts"
        reports = [one.number for one in self.earlier if one.head == "STATUS"]
        if reports:
            more = f", and {len(reports) - 1} more" if len(reports) > 1 else ""
            self._warn(reports[0], None, f"an earlier report stands here{more}; {counts}")
        if reports and "TASK" in numbers:
            for name in numbers.keys() & set(REPORT_FIELDS):
                problem = f"is of the report on line {reports[-1]}, or of the dispatch before it"
                raise WireError(name, problem, "one of the two in a text", numbers[name])
        if self.earlier and self.earlier[-1].head is None:
            line = self.earlier[-1].number
            self._warn(line, None, f"this stands apart from the report; {counts}")

    def _word(self, name: str, entries: list[Entry]) -> str | None:
        known: tuple[Entry, values.Said] | None = None
        for entry in entries:
            if not entry.value and name not in HEADS:
                continue
            found = said(name, entry.value)
            if found is None:
                raise self._wrong(name, entry.value, entry.line.number)
            if str(found) != entry.value.lower():
                self._warn(entry.line.number, name, f"{_short(entry.value)} is read as {found}")
            if known is None:
                known = entry, found
            elif found.word != known[1].word or None is not found.ran != known[1].ran:
                raise _twice(entry, known[0])
        return None if known is None else str(known[1])

    def _paths(self, name: str, entries: list[Entry]) -> tuple[str, ...]:
        found: list[str] = []
        known: set[str] = set()
        for entry in entries:
            before = len(found)
            for piece in entry.pieces:
                if names_field(piece.text):
                    raise self._wrong(name, piece.text, piece.number)
                listed = piece.listed and piece is not entry.line
                read, odd, unclear = paths(piece.text, listed=listed)
                if unclear is not None:
                    raise self._wrong(name, unclear, piece.number)
                found += [path for path in read if path not in known]
                kept = frozenset(read)
                for part in odd:
                    meant = "a path as it stands" if part in kept else ", ".join(read) or "no path"
                    self._warn(piece.number, name, f"{_short(part)} is read as {meant}")
            known.update(found[before:])
        return tuple(found)

    def _text(self, name: str, entries: list[Entry]) -> str:
        """What a field of text says, on one line."""
        for entry in entries:
            if len(entry.pieces) > 1:
                told = f"goes on to line {entry.pieces[-1].number}; it was made one line"
                self._warn(entry.line.number, name, told)
        parts = list(dict.fromkeys(entry.value for entry in entries if entry.value))
        if len(entries) > 1:
            if name in HEADS and len(parts) > 1:
                raise _twice(entries[1], entries[0])
            told = f"stands on line {entries[0].line.number} already; they were joined"
            self._warn(entries[1].line.number, name, told)
        return "; ".join(parts)

    def _wrong(self, name: str, value: str, line: int) -> WireError:
        holds = "holds another field: " if names_field(value) else "is "
        return WireError(name, f"{holds}{_short(value)}", _ALLOWED[name], line)

    def _warn(self, line: int, field: str | None, message: str) -> None:
        self.warnings.append(WireWarning(line=line, field=field, message=message))

    def _told(self) -> tuple[WireWarning, ...]:
        told = sorted(self.warnings, key=lambda one: one.line)
        if len(told) > _WARNINGS_MAX:
            more = f"and {len(told) - _WARNINGS_MAX + 1} more warnings, from this line on"
            last = WireWarning(line=told[_WARNINGS_MAX - 1].line, field=None, message=more)
            return (*told[: _WARNINGS_MAX - 1], last)
        return tuple(told)


def _twice(entry: Entry, first: Entry) -> WireError:
    problem = f"stands on line {first.line.number} already, and says something else"
    return WireError(entry.name, problem, "one line for it", entry.line.number)


def _message(head: str, values: dict[str, Any], numbers: Mapping[str, int]) -> Message:
    try:
        return _MODELS[head].model_validate(values)
    except ValidationError as error:
        where, *inner = error.errors()[0]["loc"]
        name = str(inner[0] if where == "extra" else where).upper()
        value = values["extra"][name] if where == "extra" else values.get(name.lower())
        allowed = _ALLOWED.get(name, _ONE_LINE)
        raise WireError(name, f"is {_short(value)}", allowed, numbers.get(name)) from None


def _value(name: str, value: str | Tests | tuple[str, ...]) -> str:
    if not isinstance(value, tuple):
        return _carried(name, str(value), empty=False)
    for path in value:
        if "," in path:
            raise WireError(name, f"has {_short(path)}", _ALLOWED[name])
        _carried(name, path, empty=False)
    return ",".join(value)


def _carried(name: str, value: str, *, empty: bool = True) -> str:
    """`value` itself, if a line gives it back unchanged."""
    lines = BREAK.search(value) or SEEN_BREAK.search(value)
    broken = NOISE.search(value) or lines or value != value.strip()
    if broken or not (value or empty):
        raise WireError(name, f"is {_short(value)}", _ALLOWED.get(name, _ONE_LINE))
    return value


def _check_read_back(message: Message, text: str) -> None:
    """Raises WireError for a value that reads as another than it is, such as a path named none."""
    try:
        found = parse(text)
    except WireError as error:
        raise WireError(error.field, "has a value that can't be read back", error.allowed) from None
    known = _flat(found.message) if found else {}
    for name, value in _flat(message).items():
        if known.get(name) != value:
            problem = f"is {_short(value)}, which reads as {_short(known.get(name))}"
            raise WireError(name, problem, "a value that no reader takes for another")


def _flat(message: Message) -> dict[str, Any]:
    own = {name.upper(): getattr(message, name) for name in type(message).model_fields}
    del own["EXTRA"]
    return own | message.extra


def _short(value: Any) -> str:
    if value is None:
        return "missing"
    text = repr(value)
    return text if len(text) <= 60 else f"{text[:59]}…"


_EXAMPLE = Report(
    status="ok",
    files_created=("src/middleware/jwt.go", "src/middleware/jwt_test.go"),
    files_modified=("go.mod",),
    tests=Tests(outcome="pass", count=12),
    build="pass",
    learned="JWT tokens need 24h expiry for mobile clients",
)

PROMPT = f"""\
End your work with one report, the last thing you write. It is a block of FIELD:value lines,
one line to a field, with nothing between the lines:

{emit(_EXAMPLE)}

- STATUS is required. It is one of {", ".join(STATUSES)}.
- FILES_CREATED, FILES_MODIFIED and FILES_DELETED list paths, with commas between them.
- TESTS and BUILD are one of {", ".join(OUTCOMES)}. TESTS may add a count, as in pass:12.
- LEARNED is what the next agent should know, ERROR is what went wrong, and QUESTION is what
  someone must decide before you can go on. Each is one line of text.
- Leave out a field that has nothing to say.

Your task may come in the same form, with the fields {", ".join(_OWN["TASK"])}.
"""
"""What to tell an agent, so that `parse` reads its report."""
