"""Finds the blocks of field lines in a text; their values are read later (`schemas.wire`).

A person sees a field wherever a line begins with a field's name, however decorated, and a colon,
whatever precedes it. So only the next head ends a block: a field after a list, a blank line, prose
or the end of a fence belongs to it too.

Every function here is linear in the length of its input.
"""

import re
import unicodedata
from collections.abc import Collection
from dataclasses import dataclass, field
from typing import NamedTuple

from schemas.plain import HIDDEN, NOISE
from schemas.wire_doubt import Passed, topic
from schemas.wire_values import ONE_WORD, is_word

LISTS = ("FILES_CREATED", "FILES_MODIFIED", "FILES_DELETED")
REPORT_FIELDS = ("STATUS", *LISTS, "TESTS", "BUILD", "LEARNED", "ERROR", "QUESTION")
DISPATCH_FIELDS = ("TASK", "CONTEXT", "ACCEPTANCE", "SCOPE", "VERIFY", "DONE")
HEADS = ("STATUS", "TASK")
NAME = re.compile(r"[A-Z][A-Z0-9_]+")
BREAK = re.compile(r"\r++\n?|\n")
SEEN_BREAK = re.compile("[\v\f\x85\u2028\u2029]")
"""Characters that are shown as the end of a line, though lines are not counted by them."""

_KNOWN = frozenset(REPORT_FIELDS + DISPATCH_FIELDS)
_OWN = {"STATUS": frozenset(REPORT_FIELDS), "TASK": _KNOWN, None: _KNOWN}
_COLON = re.compile("[:\uff1a\ufe55\u2236\ua789\u02d0]")
_LEAD = re.compile(
    r"""(?P<indent>[\s>|]*+)
        (?P<item>(?:[-+*•‣◦▪·–—]|[0-9]{1,3}[.)])\s++(?:\[[\sxX✓]\]\s++)?+)?+
    """,
    re.VERBOSE,
)
_DECORATION = re.compile(r"(?:[\W\d_]++|(?<=<)[a-z]{1,10}+(?=>))*+")
_MARKS = "*_`\"'~"
_REMARK = re.compile(r"\s*[(\[][^()\[\]]*[)\]]\s*$")
_SEPARATOR = re.compile(r"[\s_-]+")
_UNKNOWN = re.compile(r"[A-Z][A-Z0-9_]*+(?:[ -][A-Z0-9_]++)*+")
_FENCE = re.compile(r"[\s>|]*+(?:`{3,}+|~{3,}+)(?P<info>[^`:]*+)$")
_LABEL = re.compile(r"[A-Za-z][\w-]*+:(?:\s|$)")
_NAME_MAX = 80


class Line(NamedTuple):
    """A line of the text: its indent in columns, and whether it is an item of a list.

    `name` is the field that it begins with, in upper case, or None. `upper`: the name was written
    in upper case.
    """

    number: int
    text: str
    indent: int
    listed: bool
    name: str | None = None
    upper: bool = False


@dataclass
class FieldEntry:
    """A field, and the lines of its value. `apart`: an unknown field that is separate from its
    block; it belongs to no block, unless a head follows directly."""

    name: str
    line: Line
    pieces: list[Line]
    apart: bool = False

    @property
    def value(self) -> str:
        """The value as one line."""
        parts: list[str] = []
        for piece in self.pieces:
            joint = "; " if piece.listed and piece is not self.line else " "
            parts += [joint, piece.text] if parts else [piece.text]
        return "".join(parts)

    def continues_on(self, line: Line, *, after_blank: bool, headed: bool) -> bool:
        """Whether a line without a field name continues this value."""
        started = bool(self.pieces)
        if self.name in ONE_WORD:
            return not started and (not after_blank or is_word(line.text))
        if line.listed:
            return not (after_blank and started) or self.pieces[-1].listed
        if after_blank:
            return line.indent > self.line.indent and not started
        if line.indent > self.line.indent:
            return True
        if not headed or _LABEL.match(line.text):
            return False
        if self.name not in LISTS:
            return True
        awaited = not self.line.text or self.pieces[-1].text.endswith(",")
        return awaited and ("," in line.text or " " not in line.text)


class Note(NamedTuple):
    """Something in an unusual form at a line."""

    number: int
    field: str | None
    message: str


@dataclass
class FieldBlock:
    """The fields of a report or dispatch, in their order.

    `head` is STATUS or TASK, or None for fields that are separated from the head after them.
    `quoted`: the head is in a fence or after a quote mark, as in an example. `passed`, in the last
    block only, holds all lines of the text that belong to no field.
    """

    head: str | None = None
    entries: list[FieldEntry] = field(default_factory=list)
    notes: list[Note] = field(default_factory=list)
    quoted: bool = False
    passed: list[Passed] = field(default_factory=list)

    @property
    def number(self) -> int:
        """The line on which it begins."""
        return self.entries[0].line.number


def blocks(text: str, heads: Collection[str]) -> list[FieldBlock]:
    """The blocks of a text, in order, up to the last with one of `heads`; empty without one."""
    scan = _Scan(heads)
    bare = NOISE.sub("", SEEN_BREAK.sub("\u2028", text.removeprefix("\ufeff")))
    for number, raw in enumerate(BREAK.split(bare), 1):
        for part in raw.split("\u2028"):
            scan.read(number, part)
    scan.close()
    scan.block.passed = scan.passed
    return scan.closed if scan.block.head else []


class _Scan:
    """Reads line after line.

    `run` is the index of the first field that nothing separates from the next line: a late head
    takes these fields. `gap` is the number of a line that belongs to no field. `under` is the
    one-word field, or the heading, below which such a line stands.
    """

    def __init__(self, heads: Collection[str]) -> None:
        self.heads = heads
        self.closed: list[FieldBlock] = []
        self.block = FieldBlock()
        self.head_at = 0
        self.run = 0
        self.open: FieldEntry | None = None
        self.after_blank = False
        self.apart = False
        self.gap: int | None = None
        self.fenced = False
        self.under: str | None = None
        self.awaited = False
        self.passed: list[Passed] = []

    def read(self, number: int, raw: str) -> None:
        if not raw.strip("> \t") or raw.isspace():
            self.after_blank = True
            self.run = len(self.block.entries)
            return
        line = line_of(number, raw)
        if line.name is None and (fence := _FENCE.match(raw)):
            self.fenced = bool(fence["info"].strip()) or not self.fenced
            self._part()
            self.apart = True
        elif line.name in HEADS:
            self._head(line, line.name, quoted=self.fenced or raw.lstrip().startswith(">"))
        elif line.name is not None and self._is_field(line):
            own = line.name in _OWN[self.block.head]
            self._add(line, line.name, apart=self.apart and not own)
        else:
            self._other(line if line.name is None else unnamed(number, raw))
        self.after_blank = False

    def close(self) -> None:
        """End the current block."""
        kept = []
        for entry in self.block.entries:
            if not entry.apart and (self.block.head is not None or entry.name in REPORT_FIELDS):
                kept.append(entry)
                continue
            self.passed.append(Passed(entry.line.number, f"{entry.name}: {entry.line.text}"))
            rest = (piece for piece in entry.pieces if piece is not entry.line)
            self.passed += [Passed(piece.number, piece.text, topic(entry.name)) for piece in rest]
        self.block.entries = kept
        if self.block.entries:
            self.closed.append(self.block)

    def _is_field(self, line: Line) -> bool:
        """Whether a line with a field name is a field of this block, not an item of a value."""
        if line.name in _OWN[self.block.head]:
            return True
        if line.name in _KNOWN and not line.upper:
            return False
        if self.open is None or not line.listed or self.open.name in ONE_WORD:
            return True
        return self.open.line.listed and line.indent <= self.open.line.indent

    def _head(self, line: Line, name: str, *, quoted: bool) -> None:
        if name not in self.heads:
            self.passed.append(Passed(line.number, line.text))
            self._part()
            self.apart = True
            return
        run = self.run
        if self.block.head is not None and run <= self.head_at:
            if name == self.block.head:
                self._add(line, name)
                return
            run = len(self.block.entries)
        late = self.block.entries[run:]
        del self.block.entries[run:]
        self.close()
        for entry in late:
            entry.apart = False
        self.block = FieldBlock(name, late, quoted=quoted)
        self.head_at, self.run, self.apart, self.gap = len(late), 0, False, None
        self._add(line, name)

    def _add(self, line: Line, name: str, *, apart: bool = False) -> None:
        if self.gap and not apart:
            self._note(self.gap, "this belongs to no field and was ignored")
        if not apart:
            self.gap = None
        within = self.open
        if within and line.listed and not within.line.listed and within.name not in ONE_WORD:
            self._note(
                line.number, f"is within the list of {within.name}, and is read as a field", name
            )
        self.under, self.awaited = (name if name in ONE_WORD else None), False
        self.open = FieldEntry(name, line, [line] if line.text else [], apart)
        self.block.entries.append(self.open)

    def _other(self, line: Line) -> None:
        """A line without a field name: it continues a value, or belongs to no field."""
        if not any(char.isalnum() for char in line.text):
            self._pass(line)
            self._part()
            return
        headed = self.block.head is not None
        if self.open is not None and self.open.continues_on(
            line, after_blank=self.after_blank, headed=headed
        ):
            self.open.pieces.append(line)
            if not line.listed and line.indent <= self.open.line.indent:
                self.run = len(self.block.entries)
            return
        self._pass(line)
        if headed and self.gap is None:
            self.gap = line.number
            if self.open is not None and not self.after_blank:
                self._note(line.number, "this belongs to no known field and was ignored")
                self.gap = 0
        self.apart |= self.after_blank
        self._part()

    def _pass(self, line: Line) -> None:
        """Keep a line that belongs to no field, with what it stands below."""
        within = self.awaited or line.listed or line.indent > 0 or not self.after_blank
        named = topic(line.text)
        self.under = named or (self.under if within else None)
        self.awaited = named is not None
        self.passed.append(Passed(line.number, line.text, self.under))

    def _part(self) -> None:
        """Separate the fields before this line from those after it."""
        if self.block.head is None and self.block.entries:
            self.close()
            self.block = FieldBlock()
        self.open = None
        self.run = len(self.block.entries)

    def _note(self, number: int, message: str, name: str | None = None) -> None:
        self.block.notes.append(Note(number, name, message))


def line_of(number: int, raw: str) -> Line:
    """A line, with the field that it begins with, however decorated.

    A name counts when it is known, in any case and with blanks or hyphens for underscores, or when
    it is written in upper case. In a row of a table it is the first cell.
    """
    lead = _LEAD.match(raw)
    prefix = _DECORATION.match(raw, lead.end() if lead else 0)
    start = prefix.end() if prefix else 0
    decoration = raw[:start]
    row = "|" in decoration
    colon = _COLON.search(raw, start)
    if row and (pipe := raw.find("|", start)) >= 0 and not (colon and colon.start() < pipe):
        end, behind = pipe, pipe + 1
    elif colon:
        end, behind = colon.start(), colon.end()
    else:
        return unnamed(number, raw)
    if end - start > _NAME_MAX:
        return unnamed(number, raw)
    mark = decoration[len(decoration.rstrip(_MARKS)) :]
    written = raw[start:end]
    shown = unicodedata.normalize("NFKC", HIDDEN.sub("", written))
    name, upper = _named(_REMARK.sub("", shown), mark)
    if name is None:
        return unnamed(number, raw)
    around = "| \t" if row else None
    value = raw[behind:].strip(around)
    closing = mark[::-1]
    if mark and closing not in written:
        rest = value.removeprefix(closing)
        value = (rest if rest != value else value.removesuffix(closing)).strip(around)
    return unnamed(number, raw)._replace(text=value, name=name, upper=upper)


def unnamed(number: int, raw: str) -> Line:
    """A line that begins with no field."""
    lead = _LEAD.match(raw)
    assert lead is not None
    indent = len(lead["indent"].replace(">", "").expandtabs(4))
    return Line(number, raw[lead.end() :].strip(), indent, lead["item"] is not None)


def _named(written: str, mark: str) -> tuple[str | None, bool]:
    """The name of a field in upper case, or None; and whether it was written in upper case."""
    end = len(written)
    while end and not (written[end - 1].isalnum() or written[end - 1] == "_"):
        end -= 1
    bare = written[:end].rstrip("_") if "_" in mark else written[:end]
    name = _SEPARATOR.sub("_", bare).upper().strip("_")
    if name in _KNOWN:
        return name, bare == bare.upper()
    if len(bare) > 1 and _UNKNOWN.fullmatch(bare):
        return re.sub("[ -]", "_", bare), True
    return None, False
