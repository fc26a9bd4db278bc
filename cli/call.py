"""`cacp call`: any method of a node, from a shell."""

import json
import sys
from typing import Annotated, Any

import typer

from cli.client import DEFAULT_URL, KeyOption, Refused, UrlOption, connected
from cli.terminal import REFUSED, JsonOption, print_json
from schemas.plain import one_line


def call(
    method: Annotated[str, typer.Argument(metavar="METHOD", help="As docs/methods.md lists it.")],
    params: Annotated[
        list[str] | None,
        typer.Argument(
            metavar="[PARAMS]...",
            help="A JSON object, - to read one from standard input, or pairs: "
            "name=text, name:=JSON.",
        ),
    ] = None,
    url: UrlOption = DEFAULT_URL,
    key: KeyOption = None,
    as_json: JsonOption = False,
) -> None:
    """Call a method of a node and print its result as JSON.

    With --json, an error goes to stdout too, as its JSON-RPC object.

    \b
    Examples:
      cacp call cacp/project/list summary:=true
      cacp call cacp/project/create name=Coupons objective='Coupons at checkout' \\
          repos:='[{"name": "backend-api", "role": "backend", "language": "python"}]'
      cacp call cacp/contract/propose - < contract.json
    """
    try:
        given = read_params(params or [])
    except ValueError as error:
        raise typer.BadParameter(str(error), param_hint="PARAMS") from None
    with connected(url, key) as node:
        try:
            result = node.call(method, given)
        except Refused as error:
            if as_json:
                body = {"code": error.code, "message": error.message, "data": error.data}
                print_json({"error": body})
            typer.echo(f"error {error.code}: {one_line(error.message)}", err=True)
            for name in mistaken_for_text(params or [], error.data):
                typer.echo(f"{name}=… is text; write {name}:=… for JSON", err=True)
            raise typer.Exit(REFUSED) from None
    print_json(result)


def read_params(words: list[str]) -> dict[str, Any]:
    """Params from the words of a command line. Raises ValueError with what would be right.

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
        if name.endswith(":"):
            name = name[:-1]
            params[name] = _decode(value, name)
        else:
            params[name] = value
    return params


def mistaken_for_text(words: list[str], data: Any) -> list[str]:
    """The params given as text, of which the refusal says that they should be of another type.

    >>> problems = [{"path": "wait", "problem": "should be a number"}]
    >>> mistaken_for_text(["wait=1", "limit:=5"], {"errors": problems})
    ['wait']
    """
    from schemas.problems import NOT_TEXT

    names = {word.partition("=")[0] for word in words}
    problems = data.get("errors") if isinstance(data, dict) else None
    return [
        one_line(one["path"])
        for one in problems or []
        if one["path"] in names and one["problem"] in NOT_TEXT
    ]


def _object(text: str) -> dict[str, Any]:
    found = _decode(text, "params")
    if not isinstance(found, dict):
        raise ValueError('params should be a JSON object, such as {"limit": 10}')
    return found


def _decode(text: str, name: str) -> Any:
    try:
        return json.loads(text)
    except RecursionError:
        raise ValueError(f"{name}: nested too deeply") from None
    except ValueError as error:
        raise ValueError(f"{name}: not JSON: {error}") from None
