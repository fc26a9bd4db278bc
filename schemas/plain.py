"""Makes text safe to show to people and models: nothing in it controls a terminal, hides or
reverses.

The only module that defines terminal escape sequences, control characters and invisible characters
(design §6). Every function here is linear in the length of its input.
"""

import re

# A possessive quantifier (*+) never gives back what it took, and a string sequence ends at the
# next escape: that keeps every pattern linear.
NOISE = re.compile(
    r"""\x1b\[[0-?]*+[ -/]*+[@-~]                       # colour, cursor (CSI)
      | \x1b[]PX^_][^\x07\x1b\r\n]*+(?:\x07|\x1b\\)     # title, hyperlink (OSC and its kin)
      | \x1b[ -/]*+[0-~]                                # character set, keypad
      | [\x00-\x08\x0b\x0c\x0e-\x1f\x7f-\x9f]           # stray control characters
      | [\ud800-\udfff]                                 # halves of characters
    """,
    re.VERBOSE,
)
"""Characters and sequences that are no text. Tabs and line ends are text."""

HIDDEN = re.compile(
    "[\r"  # goes back over what stands there
    "\u061c\u200e\u200f\u202a-\u202e\u2066-\u2069"  # another direction
    "\u2028\u2029"  # line ends that not all see
    "\u00ad\u034f\u115f\u1160\u17b4\u17b5\u180b-\u180f\u200b-\u200d\u2060-\u2065\u206a-\u206f"
    "\u3164\ufe00-\ufe0f\ufeff\uffa0\ufff0-\ufffb\U0001bca0-\U0001bca3\U0001d173-\U0001d17a"
    "\U000e0000-\U000e0fff]"  # of no width: joiners, fillers, variation selectors, tags
)
"""Characters that are invisible or rearrange the text around them (Unicode's default-ignorable
code points, bidirectional controls and separators)."""


def clean(text: object) -> str:
    """`text` without terminal control, invisible and bidirectional characters. Tabs and newlines
    stay."""
    whole = str(text)
    return whole if _is_plain(whole) else HIDDEN.sub("", NOISE.sub("", whole))


def _is_plain(text: str) -> bool:
    """Whether a text certainly has nothing to remove: ten times as fast as to look for it."""
    return text.isascii() and text.replace("\n", "").replace("\t", "").isprintable()


def one_line(text: object, width: int = 0) -> str:
    """`clean`, on one line, cut to `width` characters if one is given.

    >>> one_line("a\\n  b", 3)
    'a b'
    """
    line = " ".join(clean(text).split())
    return line if not width or len(line) <= width else line[: width - 1] + "…"


def escaped(json_text: str) -> str:
    """Equivalent JSON in which the characters that `clean` removes are escaped.

    >>> escaped('"a\\u200bb"')
    '"a\\\\u200bb"'
    """
    return json_text if _is_plain(json_text) else _IN_JSON.sub(_escape, json_text)


_IN_JSON = re.compile(f"[\x7f-\x9f\ud800-\udfff]|{HIDDEN.pattern}")


def _escape(match: re.Match[str]) -> str:
    units = match[0].encode("utf-16-be", "surrogatepass")
    return "".join(f"\\u{units[i : i + 2].hex()}" for i in range(0, len(units), 2))
