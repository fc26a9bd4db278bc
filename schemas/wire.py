"""The compact result text of an agent (`cacp-wire-format.md`): parse, check and emit.

A line is `FIELD:value`. A *block* is a run of such lines, and its head says what it is: `STATUS`
heads a `Report`, `TASK` a `Dispatch`. Where the specification is silent, this holds:

- Known field names count in any case, unknown ones in upper case only, so that `Note: …` and
  `https://…` stay prose. The values of STATUS, TESTS and BUILD count in any case too.
- Quote marks, list marks, headings, bold, code marks and terminal escapes around a line are
  decoration.
- Any other line ends the block. So does a blank line, unless the block goes on behind it with an
  upper-case field of its own that it still lacks. A second head starts a new block.
- The last block with a head is the one that counts. If it is malformed, that is an error: an
  earlier report doesn't stand in for it. A block without a head is incomplete and passed over.
- FILES_* lines hold paths between commas and add up. Any other field stands once.
- An empty value means that the field is absent; a head must have a value.

Every function here is linear in the length of its input.
"""

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Annotated, Any, Literal, NamedTuple, get_args

from pydantic import (
    BaseModel,
    BeforeValidator,
    ConfigDict,
    Field,
    StringConstraints,
    ValidationError,
    model_validator,
)

from schemas.plain import NOISE


def _lower(value: Any) -> Any:
    return value.lower() if isinstance(value, str) else value


_Status = Literal[
    "ok",
    "fail",
    "partial",
    "needs_decision",
    "no_changes",
    "decomposed",
    "rejected",
    "retry",
    "fixture_gap",
]
_Outcome = Literal["pass", "fail", "skip"]
Status = Annotated[_Status, BeforeValidator(_lower)]
Outcome = Annotated[_Outcome, BeforeValidator(_lower)]
STATUSES: tuple[str, ...] = get_args(_Status)
OUTCOMES: tuple[str, ...] = get_args(_Outcome)


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


class Dispatch(_Frozen):
    """What an agent is asked to do. `extra` keeps unknown fields by upper-case name, in order."""

    task: Annotated[str, StringConstraints(min_length=1)]
    context: str | None = None
    acceptance: str | None = None
    scope: str | None = None
    verify: str | None = None
    done: str | None = None
    extra: dict[str, str] = Field(default_factory=dict)


Message = Report | Dispatch

_MODELS: dict[str, type[Report] | type[Dispatch]] = {"STATUS": Report, "TASK": Dispatch}
_OWN = {
    head: tuple(name.upper() for name in model.model_fields if name != "extra")
    for head, model in _MODELS.items()
}
_KNOWN = frozenset(_OWN["STATUS"] + _OWN["TASK"])
_LISTS = ("FILES_CREATED", "FILES_MODIFIED", "FILES_DELETED")
_ONE_LINE = "one line of text without control characters or blanks at its ends"
_PATHS = "a list of paths without commas, control characters or blanks at their ends"
_ALLOWED = {
    "STATUS": ", ".join(STATUSES),
    "TESTS": f"{', '.join(OUTCOMES)}, with an optional count as in pass:12",
    "BUILD": ", ".join(OUTCOMES),
} | dict.fromkeys(_LISTS, _PATHS)

_BREAK = re.compile(r"\r++\n?|\n")
_BLANK = re.compile(r"[\s>]*+")
_NAME = re.compile(r"[A-Z][A-Z0-9_]+")
# Linear, as `schemas.plain` is.
_LINE = re.compile(
    r"""[\s>]*+                                         # indent, quote
        (?:(?:[-+*•]|\#{1,6}|[0-9]{1,3}[.)])\s++)?+     # list item, heading
        (?P<mark>\*{1,3}+|`{1,3}+)?+                    # bold, code
        (?P<name>[A-Za-z][A-Za-z0-9_]++)
        (?P<colon>(?P=mark)[ \t]*+:|[ \t]*+:(?P=mark)?+)
    """,
    re.VERBOSE,
)


def parse(text: str) -> Message | None:
    """The last report or dispatch in `text`; None if it holds neither. Raises WireError."""
    return _read(_last_block(text, frozenset(_MODELS)))


def parse_report(text: str) -> Report | None:
    """The last report in `text`, whatever dispatches stand around it. Raises WireError."""
    message = _read(_last_block(text, frozenset({"STATUS"})))
    return message if isinstance(message, Report) else None


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
        if not _NAME.fullmatch(name) or name in own or name in _MODELS:
            allowed = "two or more of A-Z, 0-9 and _, beginning with a letter, not a known field"
            raise WireError(repr(name), "can't name an extra field", allowed)
        lines.append(f"{name}:{_carried(name, value)}")
    return "\n".join(lines)


def to_fields(message: Message) -> dict[str, Any]:
    """One flat JSON object: every known field and the extra ones, by lower-case name."""
    known = message.model_dump(mode="json", exclude={"extra"})
    return known | {name.lower(): value for name, value in message.extra.items()}


def from_fields(fields: Mapping[str, Any]) -> Message:
    """The inverse of `to_fields`; absent and null fields are alike. Raises WireError."""
    values: dict[str, Any] = {}
    extra: dict[str, Any] = {}
    head = next((head for head in _MODELS if head.lower() in fields), None)
    if head is None:
        raise WireError("STATUS", "is missing, and so is TASK", "one of the two")
    for name, value in fields.items():
        if name != name.lower() or not _NAME.fullmatch(name.upper()):
            raise WireError(repr(name), "is no field name", "lower-case names, as in files_created")
        if value is None:
            continue
        if name.upper() in _OWN[head]:
            values[name] = value
        else:
            extra[name.upper()] = value
    return _message(head, values | {"extra": extra}, {})


class _Line(NamedTuple):
    """`FIELD:value` at a line of the text; `upper` if the name was written in upper case."""

    number: int
    name: str
    value: str
    upper: bool


@dataclass
class _Block:
    """A run of field lines. `head` is STATUS, TASK or None while neither was seen."""

    head: str | None = None
    fields: dict[str, list[_Line]] = field(default_factory=dict)

    def takes(self, line: _Line, *, after_blank: bool) -> bool:
        """Whether `line` belongs to this block."""
        if line.name in _MODELS:
            return not self.fields or (self.head is None and not after_blank)
        own = _KNOWN if self.head is None else _OWN[self.head]
        if after_blank and self.fields:
            lacking = line.name in own and line.name not in self.fields
            return self.head is not None and lacking and line.upper
        return line.upper or line.name in own

    def add(self, line: _Line) -> None:
        if line.name in _MODELS:
            self.head = line.name
        self.fields.setdefault(line.name, []).append(line)


def _last_block(text: str, heads: frozenset[str]) -> _Block | None:
    last = None
    for block in _blocks(text):
        if block.head in heads:
            last = block
    return last


def _blocks(text: str) -> Iterator[_Block]:
    block = _Block()
    after_blank = False
    bare = NOISE.sub("", text.removeprefix("\ufeff"))
    for number, raw in enumerate(_BREAK.split(bare), 1):
        if _BLANK.fullmatch(raw):
            after_blank = True
            continue
        line = _line(number, raw)
        if line is None or not block.takes(line, after_blank=after_blank):
            yield block
            block = _Block()
        if line is not None and block.takes(line, after_blank=after_blank):
            block.add(line)
        after_blank = False
    yield block


def _line(number: int, raw: str) -> _Line | None:
    match = _LINE.match(raw)
    if match is None:
        return None
    value = raw[match.end() :].strip()
    mark = match["mark"]
    if mark and mark not in match["colon"]:
        value = value.removesuffix(mark).rstrip()
    name = match["name"]
    return _Line(number, name.upper(), value, name == name.upper())


def _read(block: _Block | None) -> Message | None:
    if block is None or block.head is None:
        return None
    values: dict[str, Any] = {}
    extra: dict[str, str] = {}
    for name, lines in block.fields.items():
        if name in _LISTS and block.head == "STATUS":
            parts = (part.strip() for line in lines for part in line.value.split(","))
            values[name.lower()] = tuple(part for part in parts if part)
            continue
        if len(lines) > 1:
            problem = f"stands on line {lines[0].number} already"
            raise WireError(name, problem, "one line for it", lines[1].number)
        if name not in _OWN[block.head]:
            extra[name] = lines[0].value
        elif lines[0].value or name in _MODELS:
            values[name.lower()] = lines[0].value
    numbers = {name: lines[0].number for name, lines in block.fields.items()}
    return _message(block.head, values | {"extra": extra}, numbers)


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
    broken = NOISE.search(value) or _BREAK.search(value) or value != value.strip()
    if broken or not (value or empty):
        raise WireError(name, f"is {_short(value)}", _ALLOWED.get(name, _ONE_LINE))
    return value


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
