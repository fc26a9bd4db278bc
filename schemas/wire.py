"""The compact result text of an agent (`cacp-wire-format.md`): parse, check and emit.

A line is `FIELD:value`. A *block* reaches from one head to the next: `STATUS` heads a `Report`,
`TASK` a `Dispatch`. Where the specification is silent, these rules hold:

- A known field counts wherever a line begins with its name, in any case, and a colon: also after
  prose, lists, blank lines and fences. Decoration (quote and list marks, numbers, headings, bold,
  code marks, symbols, the cells of a table, terminal escapes) is not part of the line.
- Unknown fields count in upper case only, so that `Note: ...` and `https://...` stay prose. They do
  not count after a fence, nor after a blank line with prose behind it.
- A value continues on the following lines: on lines that are indented or items of a list, and for
  text on all lines up to a blank one. It is made one line, with `; ` before an item.
- The last block counts. If it is malformed, that is an error: no earlier block replaces it. Fields
  that stand directly before a late head belong to its block.
- A report that says `ok` or `no_changes` is refused when the text contradicts it
  (`schemas.wire_outcome`): an earlier failure that it doesn't mention, a line that reports one.
- FILES_* and text fields that occur twice are joined. STATUS, TESTS and BUILD may occur twice with
  the same value.
- What has one meaning only is read, with a warning where its form is odd. What has several is
  refused; nothing is guessed or left out.
- An empty value means that the field is absent; a head must have a value.

`wire_text` finds the fields, `wire_values` and `wire_reader` read them, `wire_outcome` and
`wire_doubt` look for contradictions. Parsing is linear in the length of its input.
"""

from schemas.wire_emit import emit
from schemas.wire_fields import from_fields, to_fields
from schemas.wire_message import (
    Dispatch,
    Message,
    Outcome,
    ParsedMessage,
    Report,
    Status,
    Tests,
    WireError,
    WireWarning,
)
from schemas.wire_prompt import PROMPT
from schemas.wire_reader import parse, parse_report

__all__ = [
    "PROMPT",
    "Dispatch",
    "Message",
    "Outcome",
    "ParsedMessage",
    "Report",
    "Status",
    "Tests",
    "WireError",
    "WireWarning",
    "emit",
    "from_fields",
    "parse",
    "parse_report",
    "to_fields",
]
