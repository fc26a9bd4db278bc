"""What a party suggests instead of a version, as content that can be compared with it."""

from typing import Any


def suggested_content(content: dict[str, Any], suggested: Any) -> dict[str, Any] | None:
    """The content that a suggested change asks for; None when that can't be told.

    A suggestion is of any form. One that has every member of the content stands for the whole
    content; one that has some of them is laid over it, member by member, and a null removes one
    (RFC 7396). Others, such as prose, are not read as content.

    >>> suggested_content({"path": "/a", "body": {"n": 1}}, {"body": {"m": 2}})
    {'path': '/a', 'body': {'n': 1, 'm': 2}}
    """
    if not isinstance(suggested, dict) or content.keys().isdisjoint(suggested):
        return None
    if content.keys() <= suggested.keys():
        return suggested
    laid_over: dict[str, Any] = _laid_over(content, suggested, 100)
    return laid_over


def _laid_over(content: Any, change: Any, levels: int) -> Any:
    if not isinstance(change, dict) or not isinstance(content, dict) or not levels:
        return change
    merged = dict(content)
    for name, value in change.items():
        if value is None:
            merged.pop(name, None)
        else:
            merged[name] = _laid_over(merged.get(name), value, levels - 1)
    return merged
