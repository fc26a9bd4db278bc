"""`cacp call`: any method of a node, from a shell."""

import json
import sys
from collections.abc import Iterator
from typing import Annotated, Any

import typer

from cli.client import DEFAULT_URL, CallRefused, connected
from cli.operator_key import OperatorOption, operators_key
from cli.options import JsonOption, KeyOption, UrlOption
from cli.terminal import REFUSED, USAGE, fail, print_json
from schemas.plain import one_line

OPEN = "…"
"""Stands for a value that is yet to be decided, in the commands that `cacp next` shows."""
METHOD_NOT_FOUND = -32601
INVALID_PARAMS = -32602


def _completed(incomplete: str) -> list[str]:
    from cli.method_help import beginning_with

    return beginning_with(incomplete)


def call(
    method: Annotated[
        str,
        typer.Argument(
            metavar="METHOD",
            help="A method of docs/methods.md; `cacp call METHOD --help` explains it.",
            autocompletion=_completed,
        ),
    ],
    params: Annotated[
        list[str] | None,
        typer.Argument(
            metavar="PARAMS",
            help="Pairs name=text and name:=JSON, or one JSON object, or - to read the object from "
            "standard input.",
        ),
    ] = None,
    url: UrlOption = DEFAULT_URL,
    key: KeyOption = None,
    operator: OperatorOption = False,
    as_json: JsonOption = False,
) -> None:
    """Call a method of a node and print its result as JSON.

    An error is one line on stderr; with --json also its JSON-RPC object, on stdout. `cacp call
    METHOD --help` shows what a method does, with its params and an example; shells complete the
    names of methods after `cacp --install-completion`.

    \b
    Examples:
      cacp call cacp/contract/propose --help
      cacp call cacp/project/list summary:=true
      cacp call cacp/project/create name=Coupons objective=Discounts \\
          repos:='[{"name": "api", "role": "backend", "language": "go"}]'
      cacp call cacp/contract/propose - < contract.json
      cacp call --operator acp/handoff action=list role=coordinator
    """
    try:
        given = read_params(params or [])
    except ValueError as error:
        raise typer.BadParameter(str(error), param_hint="PARAMS") from None
    with connected(url, operators_key(url) if operator else key) as node:
        try:
            result = node.call(method, given)
        except CallRefused as error:
            if as_json:
                body = {"code": error.code, "message": error.message, "data": error.data}
                print_json({"error": body})
            typer.echo(f"error {error.code}: {one_line(error.message)}", err=True)
            for hint in _hints(method, params or [], given, error):
                typer.echo(hint, err=True)
            raise typer.Exit(REFUSED) from None
    print_json(result)


class CallCommand(typer.core.TyperCommand):
    """`cacp call`, whose --help after a METHOD is the help of that method."""

    def parse_args(self, ctx: Any, args: list[str]) -> list[str]:
        wanted = method_of_help(args)
        if wanted is not None:
            from cli.method_help import help_text, methods, unknown_method

            if wanted not in methods():
                fail(USAGE, unknown_method(wanted))
            typer.echo(help_text(wanted))
            raise typer.Exit
        rest: list[str] = super().parse_args(ctx, args)
        return rest


def method_of_help(args: list[str]) -> str | None:
    """The method whose help these arguments ask for; None when they ask for none.

    >>> method_of_help(["cacp/project/list", "--help"]), method_of_help(["--help"])
    ('cacp/project/list', None)
    """
    if not {"--help", "-h"} & set(args):
        return None
    words = [word for word in args if not word.startswith("-")]
    return words[0] if words and args[0] == words[0] else None


def _hints(
    method: str, words: list[str], given: dict[str, Any], error: CallRefused
) -> Iterator[str]:
    """Lines that say how to correct a refused call."""
    from cli.method_help import methods, unknown_method, unknown_params

    if error.code == METHOD_NOT_FOUND and method not in methods():
        yield unknown_method(method)
    if error.code == INVALID_PARAMS:
        yield from unknown_params(method, given)
        yield from (
            f"{name}=… is text; write {name}:=… for JSON"
            for name in mistaken_for_text(words, error.data)
        )


def read_params(words: list[str]) -> dict[str, Any]:
    """The params that the words of a command line give. Raises ValueError.

    >>> read_params(["name=Coupons", "repos:=[]"])
    {'name': 'Coupons', 'repos': []}
    """
    if words == ["-"]:
        return _object(sys.stdin.read())
    if len(words) == 1 and words[0].lstrip().startswith(("{", "[")):
        return _object(words[0])
    params: dict[str, Any] = {}
    for word in words:
        name, equals, value = word.partition("=")
        if not equals or not name.rstrip(":"):
            raise ValueError(f"{one_line(word, 60)}: should be name=text, name:=JSON or an object")
        if value == OPEN:
            raise ValueError(f"{one_line(name, 60)}: {OPEN} stands for a value that you decide")
        if name.endswith(":"):
            name = name[:-1]
            params[name] = _decode(value, name)
            if isinstance(params[name], dict) and OPEN in params[name].values():
                raise ValueError(f"{one_line(name, 60)}: {OPEN} stands for a value that you decide")
        else:
            params[name] = value
    return params


def mistaken_for_text(words: list[str], data: Any) -> list[str]:
    """The names of the params that were given as text, and refused for being text.

    `data` is that of the JSON-RPC error.

    >>> problems = [{"path": "wait", "problem": "should be a number"}]
    >>> mistaken_for_text(["wait=1", "limit:=5"], {"errors": problems})
    ['wait']
    """
    from schemas.problems import NOT_TEXT

    names = {word.partition("=")[0] for word in words}
    problems = data.get("errors") if isinstance(data, dict) else None
    return [
        one_line(problem["path"])
        for problem in problems or []
        if problem["path"] in names and problem["problem"] in NOT_TEXT
    ]


def _object(text: str) -> dict[str, Any]:
    value = _decode(text, "params")
    if not isinstance(value, dict):
        raise ValueError('params should be a JSON object, such as {"limit": 10}')
    return value


def _decode(text: str, name: str) -> Any:
    try:
        return json.loads(text)
    except RecursionError:
        raise ValueError(f"{name}: nested too deeply") from None
    except ValueError as error:
        raise ValueError(f"{name}: not JSON: {error}") from None
