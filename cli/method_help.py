"""What `cacp call` shows of the methods: help, completion, and what a misspelt name may mean."""

import difflib
import json
from collections.abc import Iterable
from functools import cache
from pathlib import Path
from typing import Any

from schemas.plain import one_line

Json = dict[str, Any]
INDEX = Path(__file__).with_name("methods.json")
NEAR = 3
"""How many similar names a suggestion has at most."""


@cache
def methods() -> dict[str, Json]:
    """Every method of this release by name: `summary`, `access`, `params` and `example`."""
    listed: dict[str, Json] = json.loads(INDEX.read_text())
    return listed


def near(name: str, names: Iterable[str]) -> list[str]:
    """The names that `name` may be meant for, the most similar first: misspelt, or without what
    stands before its last slash.

    >>> near("contract/propse", ["cacp/contract/propose", "acp/send"])
    ['cacp/contract/propose']
    """
    known = list(names)
    wanted = name.casefold()
    by_form = {form: whole for whole in known for form in _forms(whole)}
    matches = difflib.get_close_matches(wanted, [*by_form], n=2 * NEAR, cutoff=0.8)
    ends = [whole for whole in known if whole.casefold().endswith(f"/{wanted}")]
    return list(dict.fromkeys([*ends, *(by_form[form] for form in matches)]))[:NEAR]


def beginning_with(text: str) -> list[str]:
    """The methods whose names begin so, for a shell's completion."""
    return [name for name in methods() if name.startswith(text)]


def unknown_method(name: str) -> str:
    """A sentence for a name that is no method."""
    likely = near(name, methods())
    if likely:
        return f"{one_line(name, 100)} is not a method; did you mean {' or '.join(likely)}?"
    return f"{one_line(name, 100)} is not a method; docs/methods.md and `cacp openrpc` list them"


def unknown_params(method: str, given: Iterable[str]) -> list[str]:
    """A sentence for each given param that the method doesn't have."""
    known = methods().get(method)
    if known is None:
        return []
    names = [param["name"] for param in known["params"]]
    lines = []
    for name in given:
        if name not in names:
            likely = near(name, names) or near(name.replace("_", ""), names)
            hint = f"did you mean {likely[0]}?" if likely else f"it has: {', '.join(names) or '-'}"
            lines.append(f"{method} has no param {one_line(name, 100)}; {hint}")
    return lines


def help_text(name: str) -> str:
    """The help of a method that exists."""
    method = methods()[name]
    lines = [f"Usage: cacp call {name} [PARAMS]", "", method["summary"], ""]
    lines.append(f"Access: {method['access']}.")
    if method["params"]:
        lines += ["", "Params:", *_param_lines(method["params"])]
    lines += ["", "Example:", f"  {method['example']}"]
    if any(param["type"] != "text" for param in method["params"]):
        lines += ["", "name=text gives text, name:=JSON any other value."]
    return "\n".join(lines)


def _param_lines(params: list[Json]) -> list[str]:
    size = max(len(param["name"]) for param in params)
    lines = []
    for param in params:
        state = "required" if param["required"] else "optional"
        if "default" in param:
            state = f"default {json.dumps(param['default'])}"
        lines.append(f"  {param['name']:<{size}}  {param['type']} ({state})")
        if param["about"]:
            lines.append(f"  {'':<{size}}  {param['about']}")
    return lines


def _forms(name: str) -> list[str]:
    """A name, and its ends after each slash.

    >>> _forms("cacp/contract/get")
    ['cacp/contract/get', 'contract/get', 'get']
    """
    parts = name.casefold().split("/")
    return ["/".join(parts[place:]) for place in range(len(parts))]
