"""A table in a TOML text, added or taken out. Comments and order of the rest stay.

Pure: text in, text out. Each result is read again: if anything else would change, it is refused.
"""

import re
import tomllib
from typing import Any

Path = tuple[str, ...]

_HEADER = re.compile(r"[ \t]*\[")


def table(text: str, path: Path) -> Any:
    """The value at a path; None when there is none. Raises ValueError, which names the line."""
    try:
        value: Any = tomllib.loads(text)
    except RecursionError:
        raise ValueError("should have less depth") from None
    for name in path:
        value = value.get(name) if isinstance(value, dict) else None
    return value


def with_table(text: str, path: Path, body: str) -> str:
    """The text with a table at its end, in the place of the one that it has. `body` holds the lines
    below the header. Raises ValueError when the text is not TOML or has another form there.

    >>> with_table("a = 1\\n", ("b", "c"), "d = 2\\n")
    'a = 1\\n\\n[b.c]\\nd = 2\\n'
    """
    added = f"[{'.'.join(path)}]\n{body}"
    wanted = table(added, path)
    if table(text, path) == wanted:
        return text
    rest = without_table(text, path)
    if rest and not rest.endswith("\n"):
        rest += "\n"
    made = f"{rest}\n{added}" if rest else added
    expected = tomllib.loads(rest)
    _parent(expected, path)[path[-1]] = wanted
    return _checked(made, expected, path)


def without_table(text: str, path: Path) -> str:
    """The text without a table, its subtables, and the empty lines before it. Raises ValueError as
    `with_table`.

    >>> without_table("a = 1\\n\\n[b.c]\\nd = 2\\n", ("b", "c"))
    'a = 1\\n'
    """
    if table(text, path) is None:
        return text
    kept: list[str] = []
    waiting: list[str] = []
    within = False
    for line in text.splitlines(keepends=True):
        if _HEADER.match(line):
            header = _names(line)
            within = header is not None and header[: len(path)] == path
            if within:
                while kept and not kept[-1].strip():
                    kept.pop()
            else:
                # A comment right above a header belongs to it.
                kept += waiting
        waiting = [*waiting, line] if within and _is_blank(line) else []
        if not within:
            kept.append(line)
    if any(line.strip() for line in waiting):
        kept += waiting
    made = "".join(kept)
    expected = tomllib.loads(text)
    del _parent(expected, path)[path[-1]]
    return _checked(made, expected, path)


def section(text: str, path: Path) -> str:
    """The lines of a table below its header, if `with_table` could have written it; else "".

    Raises ValueError as `with_table`.
    """
    value = table(text, path)
    header = re.search(rf"^[ \t]*\[{re.escape('.'.join(path))}\][^\n]*\n", text, re.MULTILINE)
    if value is None or header is None:
        return ""
    rest = text[header.end() :]
    following = re.search(r"^[ \t]*\[", rest, re.MULTILINE)
    return rest[: following.start()] if following else rest


def _names(line: str) -> Path | None:
    """The names in a header; None for a line that only looks like one."""
    try:
        value: Any = tomllib.loads(line)
    except ValueError:
        return None
    names = []
    while isinstance(value, dict) and value:
        (name,) = value
        names.append(name)
        value = value[name]
    return tuple(names)


def _is_blank(line: str) -> bool:
    return not line.strip() or line.lstrip().startswith("#")


def _parent(value: dict[str, Any], path: Path) -> dict[str, Any]:
    for name in path[:-1]:
        inner = value.setdefault(name, {})
        if not isinstance(inner, dict):
            raise _other_form(path)
        value = inner
    return value


def _pruned(value: Any) -> Any:
    """The value without empty tables: whether a parent is written out makes no difference."""
    if not isinstance(value, dict):
        return value
    inner = {name: _pruned(item) for name, item in value.items()}
    return {name: item for name, item in inner.items() if item != {}}


def _checked(made: str, expected: dict[str, Any], path: Path) -> str:
    """The text, if it has the expected value. Raises ValueError otherwise."""
    try:
        same = _pruned(tomllib.loads(made)) == _pruned(expected)
    except ValueError:
        same = False
    if not same:
        raise _other_form(path)
    return made


def _other_form(path: Path) -> ValueError:
    title = f"[{'.'.join(path)}]"
    return ValueError(
        f"{path[0]} should be written as tables, such as {title}: change {title} by hand"
    )
