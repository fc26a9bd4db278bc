"""What waits for an agent, for people: the most urgent first, each with its command."""

import shlex
from collections.abc import Iterator, Mapping
from typing import Any

from rich.text import Text

from cli.call import OPEN
from cli.terminal import dump
from cli.times import ago
from schemas.plain import clean, one_line

Json = dict[str, Any]
URGENCIES = {"urgent": "bold red", "high": "yellow", "normal": "white", "low": "dim"}
"""Each urgency with its colour, the most urgent first."""
CHECK = "acp/handoff/check"
"""A command of its own finds out its params."""
AGE, PROJECT = 6, 16
"""Columns of an item's age, and the most of its project's name."""


def next_text(listing: Json, types: Mapping[str, Mapping[str, str]], width: int | None) -> Text:
    """The result of `cacp/attention/list` in groups by urgency.

    `types` has the type of each method's params, as `cli.method_index` writes it. An item's first
    line is cut to `width` columns; commands are whole.
    """
    items = listing["items"]
    lines: list[Text] = []
    for urgency, tone in URGENCIES.items():
        group = [item for item in items if item["urgency"] == urgency]
        if group:
            lines += [Text()] if lines else []
            lines.append(Text(f"{urgency.capitalize()} ({len(group)})", f"bold {tone}"))
            room = max(len(_project(item)) for item in group)
            for item in group:
                lines.append(_cut(_item_line(item, room), width))
                lines += [Text(f"    {command}", "cyan") for command in commands(item, types)]
                lines += [_cut(Text(f"      {hint}", "dim"), width) for hint in hints(item)]
    left = listing["total"] - len(items)
    if left > 0:
        lines += [Text(), Text(f"{left} more: cacp next --limit {listing['total']}", "dim")]
    return Text("\n").join(lines)


def commands(item: Json, types: Mapping[str, Mapping[str, str]]) -> Iterator[str]:
    """The commands that do what an item asks for; where there are several, one of them does.

    >>> step = {"method": "acp/inbox", "params": {}, "fill": {"ack": "ids"}}
    >>> list(commands({"kind": "mail", "next": [step]}, {}))
    ['cacp inbox']
    """
    if item["kind"] == "mail":
        yield "cacp inbox"
        return
    for step in item["next"]:
        if step["method"] == "acp/approve":
            yield from _approval(step["params"])
            continue
        if step["method"] == CHECK:
            yield f"cacp handoff check {shlex.quote(one_line(step['params']['handoff_id']))}"
            continue
        of_method = types.get(step["method"], {})
        params, left_open = filled(step)
        words = [word(name, value) for name, value in params.items()]
        for name in left_open:
            text = _is_text(of_method.get(name, "text"))
            words.append(f"{name}{'=' if text else ':='}{OPEN}")
        yield " ".join(["cacp call", step["method"], *words])


def filled(step: Json) -> tuple[Json, list[str]]:
    """The params of a step, with `OPEN` where a member of an object is to be decided; and the names
    of the params that are to be decided as a whole.

    >>> filled({"params": {"payload": {"a": 1}}, "fill": {"payload.b": "why", "to": "whom"}})
    ({'payload': {'a': 1, 'b': '…'}}, ['to'])
    """
    params = dict(step["params"])
    left_open: list[str] = []
    for path in step.get("fill") or {}:
        name, _, member = path.partition(".")
        if member and isinstance(params.get(name), dict):
            params[name] = {**params[name], member: OPEN}
        elif name not in params and name not in left_open:
            left_open.append(name)
    return params, left_open


def hints(item: Json) -> Iterator[str]:
    """What to put where a command leaves something open."""
    if item["kind"] not in ("mail", "approve"):
        for step in item["next"]:
            if step["method"] == CHECK:
                continue
            for name, what in (step.get("fill") or {}).items():
                yield f"{one_line(name)}: {one_line(what)}"


def word(name: str, value: Any) -> str:
    """A param as `cacp call` reads it from a shell.

    >>> word("name", "a b"), word("version", 1)
    ("'name=a b'", 'version:=1')
    """
    if isinstance(value, str) and clean(value) == value and "\n" not in value:
        return shlex.quote(f"{name}={value}")
    quoted = shlex.quote(f"{name}:={dump(value, indent=None)}")
    return quoted.replace(f"'{name}:=", f"{name}:='", 1)


def _cut(line: Text, width: int | None) -> Text:
    if width is not None:
        line.truncate(width, overflow="ellipsis")
    return line


def _item_line(item: Json, room: int) -> Text:
    return Text.assemble(
        (f"  {ago(item['since']).removesuffix(' ago').replace('just ', ''):<{AGE}}  ", "dim"),
        (f"{_project(item):<{room}}  " if room else "", "bold"),
        _summary(item),
    )


def _project(item: Json) -> str:
    return one_line(item.get("project") or "", PROJECT)


def _summary(item: Json) -> str:
    """The summary without what its line shows already, and without Markdown."""
    named = f" (project `{item.get('project')}`)"
    return one_line(item["summary"].replace(named, "").replace("`", ""))


def _approval(params: Json) -> Iterator[str]:
    yield f"cacp approve {shlex.quote(str(params.get('message_id', OPEN)))}"


def _is_text(type: str) -> bool:
    """Whether a param of this type is given as name=text."""
    return type == "text" or (" | " in type and "object" not in type and "list" not in type)
