"""Which project or contract a person means: by its id, its name, or the beginning of its id."""

import difflib
from collections.abc import Mapping

from schemas.plain import one_line

SHOWN = 3
"""How many of several matches a message names."""


class NoSuchName(ValueError):
    """What was given names nothing, or more than one thing. The message says what to do."""


def chosen(wanted: str, names: Mapping[str, str], kind: str = "project") -> str:
    """The id that `wanted` stands for: an id, else a name (also in other case), else the beginning
    of one id.

    `names` has the name of each by id. Raises NoSuchName.

    >>> chosen("coupons", {"01a2": "Coupons", "01b3": "Login"})
    '01a2'
    >>> chosen("01b", {"01a2": "Coupons", "01b3": "Login"})
    '01b3'
    """
    wanted = wanted.strip()
    if wanted in names:
        return wanted
    same = [id for id, name in names.items() if name == wanted]
    alike = same or [id for id, name in names.items() if name.casefold() == wanted.casefold()]
    if len(alike) > 1:
        kinds = " or ".join(f"{name}s" for name in kind.split(" or "))
        how = f"{len(alike)} {kinds} are named {one_line(wanted, 60)}"
        raise NoSuchName(f"{how}: {_some(alike)}; give an id, or its beginning")
    begun = alike or [id for id in names if wanted and id.startswith(wanted)]
    if len(begun) > 1:
        how = f"{len(begun)} ids begin with {one_line(wanted, 60)}"
        raise NoSuchName(f"{how}: {_some(begun)}; give more characters, or a name")
    if not begun:
        near = difflib.get_close_matches(wanted, {*names.values()}, n=1, cutoff=0.6)
        hint = f"; did you mean {one_line(near[0], 60)}?" if near else ""
        raise NoSuchName(
            f"no {kind} here is named {one_line(wanted, 60)}, and no id begins with it{hint}"
        )
    return begun[0]


def _some(ids: list[str]) -> str:
    more = ", …" if len(ids) > SHOWN else ""
    return ", ".join(one_line(id) for id in ids[:SHOWN]) + more
