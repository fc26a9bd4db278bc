"""Regexes of `.jsont` files: those of ECMAScript, because other runners read the files too.

A pattern means what `new RegExp(pattern)` makes of it (ECMA-262, §22.2 and Annex B.1.2), but for
two things: text is read by code points, and an escaped letter that means nothing (`\\A`, `\\Z`,
`\\p`) is refused, because it comes from another regex language. The pattern is translated for a
matcher with bounds: a search takes at most `SECONDS`, and repetitions are limited.
"""

import re
from collections.abc import Iterator
from functools import lru_cache

import regex

SECONDS = 1.0
"""How long one search may take, in seconds of this process."""
REPEATED = 100_000
"""How many characters, at most, the counted repetitions of a pattern may spell out."""

_GROUPS = re.compile(r"\\.|\[(?:\\.|[^\\\]])*\]|\((?!\?)|\(\?<(?![=!])([^>]*)>", re.DOTALL)
_OPENING = re.compile(r"\((?:\?(?::|=|!|<=|<!|<([^>]*)>))?")
_QUANTIFIER = re.compile(r"(?:[*+?]|\{(\d+)(?:,(\d*))?\})\??")
_IDENTIFIER = re.compile(r"[^\W\d][\w$]*|\$[\w$]*")
_CONTROL = {"t": "\t", "n": "\n", "v": "\v", "f": "\f", "r": "\r"}
_SPACES = r"\t-\r \xa0\u1680\u2000-\u200a\u2028\u2029\u202f\u205f\u3000\ufeff"
_NOT_SPACES = (
    r"\x00-\x08\x0e-\x1f!-\x9f\xa1-\u167f\u1681-\u1fff\u200b-\u2027\u202a-\u202e"
    r"\u2030-\u205e\u2060-\u2fff\u3001-\ufefe\uff00-\U0010ffff"
)
_SETS = {name: f"\\{name}" for name in "dDwW"} | {"s": _SPACES, "S": _NOT_SPACES}
"""The members of a class that these escapes mean; the others mean the same under the flag ASCII."""


class PatternError(ValueError):
    """A pattern that is not an ECMAScript regex, or asks too much; the message says which."""


def occurs(pattern: str, text: str) -> bool:
    """Whether the pattern is anywhere in the text. Raises PatternError."""
    try:
        return compiled(pattern).search(text, timeout=SECONDS) is not None
    except TimeoutError:
        raise PatternError(
            f"the regex {_short(pattern)} takes more than {SECONDS:g} s on {len(text)} characters"
        ) from None


@lru_cache(4096)
def compiled(pattern: str) -> "regex.Pattern[str]":
    """Raises PatternError."""
    try:
        return regex.compile(translated(pattern), regex.ASCII | regex.VERSION0)
    except RecursionError:
        raise PatternError(f"{_short(pattern)}: its groups are nested too deep") from None
    except regex.error as error:
        raise PatternError(f"{_short(pattern)} is not a regex: {error}") from None


def translated(pattern: str) -> str:
    """The pattern in the language of the matcher. Raises PatternError."""
    return _Translation(pattern).whole()


class _Translation:
    def __init__(self, pattern: str) -> None:
        self.text = pattern
        self.at = 0
        self.out: list[str] = []
        self.names = [group[1] for group in _GROUPS.finditer(pattern) if group[0][0] == "("]
        """The name of each group, or None, in their order."""
        self.groups = 0
        """How many capturing groups are before this place."""
        self.outer: list[tuple[int, bool, int]] = []
        """For each open group: the size of what is before it, whether it may be repeated, and its
        number; 0 for one that captures nothing."""
        self.size = 0
        """How many characters the innermost open group spells out."""
        self.last: int | None = None
        """The same of what a quantifier here would repeat; None when there is nothing."""

    def error(self, why: str) -> PatternError:
        problem = f"{_short(self.text)} is not an ECMAScript regex: {why}, at {self.at}"
        return PatternError(problem)

    def whole(self) -> str:
        while self.at < len(self.text):
            self.token(self.text[self.at])
        if self.outer:
            raise self.error("a group is not closed")
        return "".join(self.out)

    def token(self, char: str) -> None:
        quantifier = _QUANTIFIER.match(self.text, self.at)
        if quantifier is not None:
            self.repeat(quantifier)
        elif char == "(":
            self.open()
        elif char == ")":
            self.close()
        elif char == "[":
            self.at += 1
            self.atom(self.char_class())
        elif char == "\\":
            self.at += 1
            self.escape()
        else:
            self.at += 1
            if char in "^$|":
                self.assertion(r"\Z" if char == "$" else char)
            else:
                self.atom(r"[^\n\r\u2028\u2029]" if char == "." else _literal(char))

    def atom(self, text: str, size: int = 1) -> None:
        self.out.append(text)
        self.size += size
        self.last = size

    def assertion(self, text: str) -> None:
        self.out.append(text)
        self.last = None

    def repeat(self, quantifier: re.Match[str]) -> None:
        if self.last is None:
            raise self.error("nothing to repeat")
        least, most = quantifier[1], quantifier[2]
        if least and most and int(least) > int(most):
            raise self.error("a repetition whose minimum exceeds its maximum")
        times = max(int(most or least or 1), 1)
        if self.last * times > REPEATED:
            raise self.error(f"repetitions of more than {REPEATED} characters")
        self.out.append(quantifier[0])
        self.size += self.last * (times - 1)
        self.last = None
        self.at = quantifier.end()

    def open(self) -> None:
        opening = _OPENING.match(self.text, self.at)
        assert opening is not None
        if opening[0] == "(" and self.text.startswith("?", opening.end()):
            raise self.error("an unknown kind of group")
        name = opening[1]
        if name is not None and not _IDENTIFIER.fullmatch(name):
            raise self.error(f"a group can't be called {name!r}")
        self.out.append("(" if name is not None else opening[0])
        captures = opening[0] == "(" or name is not None
        self.groups += captures
        repeatable = not opening[0].startswith(("(?<=", "(?<!"))
        self.outer.append((self.size, repeatable, self.groups if captures else 0))
        self.size, self.last = 0, None
        self.at = opening.end()

    def close(self) -> None:
        if not self.outer:
            raise self.error("a closing bracket without an opening one")
        before, repeatable, _ = self.outer.pop()
        inside = max(self.size, 1)
        self.at += 1
        self.size = before
        self.atom(")", inside)
        if not repeatable:
            self.last = None

    # --- escapes --------------------------------------------------------------------------------

    def escape(self) -> None:
        """What follows a backslash outside a class."""
        char = self.text[self.at : self.at + 1]
        if char in ("b", "B"):
            self.at += 1
            self.assertion(f"\\{char}")
        elif char and char in _SETS:
            self.at += 1
            self.atom(f"[{_SETS[char]}]")
        elif char and char in "123456789":
            number = re.compile(r"\d+").match(self.text, self.at)
            assert number is not None
            self.back_to(range(int(number[0]), int(number[0]) + 1), number)
        elif char == "k" and any(self.names):
            name = re.compile(r"k<([^>]*)>").match(self.text, self.at)
            if name is None:
                raise self.error("\\k should be followed by <name>")
            self.back_to([at for at, group in enumerate(self.names, 1) if group == name[1]], name)
        else:
            self.atom(_literal(self.character()))

    def back_to(self, groups: "range | list[int]", reference: re.Match[str]) -> None:
        """A group that has matched nothing yet, or is still open, is the empty text there."""
        if not groups or groups[-1] > len(self.names):
            raise self.error(f"the pattern has no group \\{reference[0]}")
        self.at = reference.end()
        closed = [group for group in groups if all(group != number for _, _, number in self.outer)]
        self.atom("(?:" + "".join(f"(?({group})\\{group})" for group in closed) + ")")

    def character(self) -> str:
        """The one character that an escape stands for, in a class or outside."""
        here = self.text[self.at : self.at + 1]
        self.at += 1
        if here in _CONTROL:
            return _CONTROL[here]
        if here == "0" and not self.text[self.at : self.at + 1].isdecimal():
            return "\0"
        if here == "c" and re.match(r"[A-Za-z]", self.text[self.at :][:1]):
            self.at += 1
            return chr(ord(self.text[self.at - 1]) % 32)
        if here == "x":
            return chr(self.hexadecimal(2))
        if here == "u":
            return self.unit()
        if not here:
            raise self.error("a backslash at the end")
        if here.isascii() and here.isalnum():
            raise self.error(
                f"\\{here} is not an escape; allowed are \\d \\D \\w \\W \\s \\S \\b \\B \\t \\n "
                "\\v \\f \\r \\0 \\cX \\xHH \\uHHHH \\k<name> and punctuation"
            )
        return here

    def unit(self) -> str:
        """`\\uHHHH`, and the second of a surrogate pair with its first."""
        first = self.hexadecimal(4)
        if 0xD800 <= first < 0xDC00 and self.text.startswith("\\u", self.at):
            start = self.at
            self.at += 2
            second = self.hexadecimal(4)
            if 0xDC00 <= second < 0xE000:
                return chr(0x10000 + ((first - 0xD800) << 10) + second - 0xDC00)
            self.at = start
        return chr(first)

    def hexadecimal(self, digits: int) -> int:
        text = self.text[self.at : self.at + digits]
        if not re.fullmatch(f"[0-9A-Fa-f]{{{digits}}}", text):
            raise self.error(f"{digits} hexadecimal digits should follow")
        self.at += digits
        return int(text, 16)

    # --- classes --------------------------------------------------------------------------------

    def char_class(self) -> str:
        """What follows an opening square bracket."""
        negated = self.text.startswith("^", self.at)
        self.at += negated
        members = list(self.members())
        if not members:
            return "(?s:.)" if negated else "(?!)"
        return f"[{'^' if negated else ''}{''.join(members)}]"

    def members(self) -> Iterator[str]:
        while (first := self.member()) is not None:
            if not re.match(r"-[^\]]", self.text[self.at :][:2]):
                yield _SETS[first[1]] if first[0] else _literal(first[1])
                continue
            self.at += 1
            last = self.member()
            assert last is not None
            if first[0] or last[0]:
                yield _SETS[first[1]] if first[0] else _literal(first[1])
                yield _literal("-")
                yield _SETS[last[1]] if last[0] else _literal(last[1])
            elif first[1] > last[1]:
                raise self.error("a range whose start is after its end")
            else:
                yield f"{_literal(first[1])}-{_literal(last[1])}"

    def member(self) -> tuple[bool, str] | None:
        """The name of a set, or a character; None at the end of the class."""
        here = self.text[self.at : self.at + 1]
        if not here:
            raise self.error("a class is not closed")
        self.at += 1
        if here != "\\":
            return None if here == "]" else (False, here)
        escaped = self.text[self.at : self.at + 1]
        if escaped and escaped in _SETS:
            self.at += 1
            return True, escaped
        if escaped == "b":
            self.at += 1
            return False, "\b"
        return False, self.character()


def _short(pattern: str) -> str:
    return pattern if len(pattern) <= 100 else f"{pattern[:99]}…"


def _literal(char: str) -> str:
    """The character itself, whatever it means to the matcher."""
    if char.isalnum() or char == "_":
        return char
    code = ord(char)
    return f"\\x{code:02x}" if code < 0x100 else f"\\u{code:04x}" if code < 0x10000 else char
