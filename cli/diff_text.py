"""Changes of files as people read them before they are made: lines added and taken away, without
secrets."""

import difflib
import re
from collections.abc import Iterator

# Linear in the length of a line, which may be anybody's: each word is tried once, from its start.
_SECRET_NAME = re.compile(
    r"""(?ix) ((?<![\w.-])(?=[\w.-]*?(?:key|token|secret|passw|credential|auth))[\w.-]++
    ["']?\s*[:=]\s*) (["'])(?!\$?\{|~|/)(?:(?!\2)[^\\]|\\.)+\2"""
)
_TOKEN = re.compile(r"(?<![\w/.~+-])(?=[\w+-]*\d)(?=[\w+-]*[A-Za-z])[\w+-]{20,}=*(?![\w/.])")
MASK = GAP = "…"


def masked(line: str) -> str:
    """A line without what may be a secret: keys, tokens, and values with the name of one.

    >>> masked('"args": ["mcp", "--key-file", "~/.config/a.key"], "API_KEY": "abc"')
    '"args": ["mcp", "--key-file", "~/.config/a.key"], "API_KEY": "…"'
    >>> masked("Bearer cacp_sk_live_0123456789abcdef")
    'Bearer …'
    """
    line = _SECRET_NAME.sub(rf"\1\2{MASK}\2", line)
    return _TOKEN.sub(MASK, line)


def diff_lines(before: str | None, after: str | None) -> Iterator[str]:
    """The lines that a change adds (`+`) and takes away (`-`), each with a line around it, and a
    line `…` between places that are apart."""
    lines = difflib.unified_diff(
        (before or "").splitlines(), (after or "").splitlines(), n=1, lineterm=""
    )
    # The first two lines name the files, the third is where the first place is.
    for number, line in enumerate(lines):
        if number > 2:
            yield GAP if line.startswith("@@") else masked(line)
