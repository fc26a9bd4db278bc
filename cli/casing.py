"""One casing for what commands print with --json: camelCase, as CACP's params and results are.

CACP 2.0 itself names the members of contracts, packets and repos in snake_case; commands print
them in camelCase too. What another specification defines keeps that specification's names: ACP
messages and handoffs, ADP listings, the reports of `cacp wire`, `cacp thread` and `cacp comply`.
`cacp call` prints results as the node gives them.
"""

from typing import Any

OPAQUE = frozenset({"content", "currentContent", "details", "payload", "params"})
"""Members that hold what agents wrote: their names are the agents' own."""


def camel(value: Any) -> Any:
    """The value with the names of all members in camelCase, except within `OPAQUE` members.

    >>> camel({"repo_id": 1, "content": {"cart_id": 2}})
    {'repoId': 1, 'content': {'cart_id': 2}}
    """
    if isinstance(value, list | tuple):
        return [camel(item) for item in value]
    if not isinstance(value, dict):
        return value
    named = {camel_name(name): member for name, member in value.items()}
    return {name: member if name in OPAQUE else camel(member) for name, member in named.items()}


def camel_name(name: str) -> str:
    """
    >>> camel_name("change_notes")
    'changeNotes'
    """
    first, *rest = name.split("_")
    return first + "".join(word[:1].upper() + word[1:] for word in rest)
