"""Parses the text of a `.proto` file.

proto-schema-parser is imported here and not before: import this module inside a function.
"""

import re
from typing import Any, NoReturn

from antlr4.error.ErrorListener import ErrorListener
from proto_schema_parser import ast
from proto_schema_parser.parser import Parser

from schemas.plain import one_line

WHY_MAX = 200
_TOKENS = re.compile(
    r"""(?P<comment>//[^\n]*|/\*.*?(?:\*/|\Z))
      | (?P<string>"(?:\\.|[^"\\\n])*"?|'(?:\\.|[^'\\\n])*'?)
      | (?P<number>(?<![\w.])0(?:[xX][0-9a-fA-F]+|[0-7]+)(?![\w.]))
    """,
    re.VERBOSE | re.DOTALL,
)
_NOT_SPACE = re.compile(r"[^\s]")


class InvalidText(Exception):
    """A text that is no `.proto` file; says where and why."""


class UnreadText(Exception):
    """A text that may be valid, and that is not read; says why."""


class _FirstError(ErrorListener):  # type: ignore[misc]
    """Ends the parsing at the first error, with its line and column."""

    def syntaxError(
        self, recognizer: Any, symbol: Any, line: int, column: int, msg: str, e: Any
    ) -> NoReturn:
        # What could stand there instead is a list of every keyword.
        why = re.sub(r" expecting \{.*", "", msg, flags=re.DOTALL)
        raise InvalidText(f"Line {line}, column {column + 1}: {one_line(why, WHY_MAX)}.")


def parse(text: str) -> ast.File:
    """The syntax tree of a file. Raises InvalidText, UnreadText."""

    def listen(recognizer: Any) -> None:
        recognizer.removeErrorListeners()
        recognizer.addErrorListener(_FirstError())

    try:
        return Parser(setup_lexer=listen, setup_parser=listen).parse(_plain(text))
    except InvalidText as error:
        if re.search(r"^\s*edition\s*=", text, re.MULTILINE):
            raise UnreadText(f"Not all of editions is read. {error}") from None
        raise
    except RecursionError:
        raise InvalidText("It is nested too deeply.") from None
    except (AttributeError, IndexError, TypeError, ValueError) as error:
        raise UnreadText(one_line(error, WHY_MAX)) from None


def weight(text: str) -> int:
    """The characters of a text that are no comments and no blanks: parsing takes by them."""
    return len(
        "".join(_TOKENS.sub(lambda token: "" if token["comment"] else token[0], text).split())
    )


def _plain(text: str) -> str:
    """The text with blanks for comments, which the parser takes only between statements, and with
    decimal numbers, which it takes alone. Lines stay what they are, and so do most columns."""
    return _TOKENS.sub(_plain_token, text)


def _plain_token(match: re.Match[str]) -> str:
    token = match[0]
    if match["comment"]:
        return _NOT_SPACE.sub(" ", token)
    if match["number"]:
        return str(int(token, 16 if token[1] in "xX" else 8)).ljust(len(token))
    return token
