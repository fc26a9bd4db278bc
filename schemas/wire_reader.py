"""Reads a message from the blocks of a text, with warnings for odd forms (`schemas.wire`)."""

from collections.abc import Mapping, Sequence
from typing import Any, cast

from schemas.wire_message import (
    FIELDS,
    Message,
    ParsedMessage,
    Report,
    WireError,
    WireWarning,
    allowed,
    make_message,
    shortened,
)
from schemas.wire_outcome import contradiction, overlooked
from schemas.wire_text import HEADS, LISTS, REPORT_FIELDS, FieldBlock, FieldEntry, blocks
from schemas.wire_values import DONE, ONE_WORD, FieldWord, field_word, names_field, paths

WARNINGS_MAX = 50


def parse(text: str) -> ParsedMessage[Message] | None:
    """The last report or dispatch in `text`; None if it holds neither. Raises WireError."""
    text_blocks = blocks(text, HEADS)
    return BlockReader(text_blocks).read() if text_blocks else None


def parse_report(text: str) -> ParsedMessage[Report] | None:
    """The last report in `text`, whatever dispatches surround it. Raises WireError."""
    text_blocks = blocks(text, ("STATUS",))
    return cast(ParsedMessage[Report], BlockReader(text_blocks).read()) if text_blocks else None


class BlockReader:
    """Reads the last of some blocks; the earlier ones are compared with it."""

    def __init__(self, text_blocks: Sequence[FieldBlock]) -> None:
        *self._earlier, self._block = text_blocks
        self._warnings = [
            WireWarning(line=line, field=field, message=message)
            for line, field, message in self._block.notes
        ]

    def read(self) -> ParsedMessage[Message]:
        """Raises WireError."""
        known: dict[str, Any] = {}
        extra: dict[str, str] = {}
        fields: dict[str, list[FieldEntry]] = {}
        for entry in self._block.entries:
            fields.setdefault(entry.name, []).append(entry)
        head = cast(str, self._block.head)
        for name, entries in fields.items():
            if name not in FIELDS[head]:
                extra[name] = self._text(name, entries)
            elif name in LISTS:
                known[name.lower()] = self._paths(name, entries)
            elif name in ONE_WORD:
                known[name.lower()] = self._word(name, entries)
            elif value := self._text(name, entries):
                known[name.lower()] = value
        lines = {name: entries[0].line.number for name, entries in fields.items()}
        message = make_message(head, known | {"extra": extra}, lines)
        if isinstance(message, Report):
            self._check_outcome(message, lines)
        self._check_earlier(lines)
        return ParsedMessage(message, self._sorted_warnings())

    def _check_outcome(self, report: Report, lines: Mapping[str, int]) -> None:
        """Compare STATUS with TESTS, BUILD and the rest of the text. Raises WireError when a report
        of finished work is contradicted."""
        if report.status in DONE:
            for name in report.failing:
                problem = f"says fail, so the work is not done, though STATUS is {report.status}"
                self._warn(lines[name], name, problem)
            open_ends = {"TESTS": report.tests, "BUILD": report.build}
            if lines.keys() == {"STATUS"}:
                open_ends["STATUS"] = None
            lacking = {name for name, outcome in open_ends.items() if outcome is None}
            failing = bool(report.failing)
            conflict = contradiction(self._earlier, self._block, lacking, failing=failing)
            if conflict is not None:
                raise WireError(conflict.field, conflict.problem, conflict.allowed, conflict.line)
        for number, name in overlooked(self._block):
            self._warn(number, name, "is named here without a colon, and was ignored")

    def _check_earlier(self, lines: Mapping[str, int]) -> None:
        """Warn of blocks before the last one. Raises WireError when a field could belong to either
        of two."""
        counts = f"the block on line {self._block.number} counts"
        reports = [block.number for block in self._earlier if block.head == "STATUS"]
        if reports:
            more = f", and {len(reports) - 1} more" if len(reports) > 1 else ""
            self._warn(reports[0], None, f"an earlier report begins here{more}; {counts}")
        if reports and "TASK" in lines:
            for name in lines.keys() & set(REPORT_FIELDS):
                problem = (
                    f"may belong to the report on line {reports[-1]} or to the dispatch before it"
                )
                raise WireError(name, problem, "one of the two in a text", lines[name])
        if self._earlier and self._earlier[-1].head is None:
            line = self._earlier[-1].number
            self._warn(line, None, f"these fields are separate from the report; {counts}")

    def _word(self, name: str, entries: list[FieldEntry]) -> str | None:
        """The value of STATUS, TESTS or BUILD; None when it is empty."""
        known: tuple[FieldEntry, FieldWord] | None = None
        for entry in entries:
            if not entry.value and name not in HEADS:
                continue
            word = field_word(name, entry.value)
            if word is None:
                raise _wrong_value(name, entry.value, entry.line.number)
            if str(word) != entry.value.lower():
                self._warn(entry.line.number, name, f"{shortened(entry.value)} is read as {word}")
            if known is None:
                known = entry, word
            elif word.word != known[1].word or None is not word.ran != known[1].ran:
                raise _conflict(entry, known[0])
        return None if known is None else str(known[1])

    def _paths(self, name: str, entries: list[FieldEntry]) -> tuple[str, ...]:
        listed: list[str] = []
        known: set[str] = set()
        for entry in entries:
            before = len(listed)
            for piece in entry.pieces:
                if names_field(piece.text):
                    raise _wrong_value(name, piece.text, piece.number)
                is_item = piece.listed and piece is not entry.line
                values, odd, unclear = paths(piece.text, listed=is_item)
                if unclear is not None:
                    raise _wrong_value(name, unclear, piece.number)
                listed += [path for path in values if path not in known]
                kept = frozenset(values)
                for part in odd:
                    meant = (
                        "a path as it stands" if part in kept else ", ".join(values) or "no path"
                    )
                    self._warn(piece.number, name, f"{shortened(part)} is read as {meant}")
            known.update(listed[before:])
        return tuple(listed)

    def _text(self, name: str, entries: list[FieldEntry]) -> str:
        """The value of a text field, as one line."""
        for entry in entries:
            if len(entry.pieces) > 1:
                problem = f"continues to line {entry.pieces[-1].number}; it was made one line"
                self._warn(entry.line.number, name, problem)
        parts = list(dict.fromkeys(entry.value for entry in entries if entry.value))
        if len(entries) > 1:
            if name in HEADS and len(parts) > 1:
                raise _conflict(entries[1], entries[0])
            problem = f"is on line {entries[0].line.number} too; the two were joined"
            self._warn(entries[1].line.number, name, problem)
        return "; ".join(parts)

    def _warn(self, line: int, field: str | None, message: str) -> None:
        self._warnings.append(WireWarning(line=line, field=field, message=message))

    def _sorted_warnings(self) -> tuple[WireWarning, ...]:
        warnings = sorted(self._warnings, key=lambda warning: warning.line)
        if len(warnings) > WARNINGS_MAX:
            more = f"and {len(warnings) - WARNINGS_MAX + 1} more warnings, from this line on"
            last = WireWarning(line=warnings[WARNINGS_MAX - 1].line, field=None, message=more)
            return (*warnings[: WARNINGS_MAX - 1], last)
        return tuple(warnings)


def _wrong_value(name: str, value: str, line: int) -> WireError:
    holds = "holds another field: " if names_field(value) else "is "
    return WireError(name, f"{holds}{shortened(value)}", allowed(name), line)


def _conflict(entry: FieldEntry, first: FieldEntry) -> WireError:
    problem = f"is on line {first.line.number} too, with another value"
    return WireError(entry.name, problem, "one line for it", entry.line.number)
