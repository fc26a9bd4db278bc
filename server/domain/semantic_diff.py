"""The semantic difference of two contents of a contract: what changed, by path, and whether it
breaks the provider or the consumer.

A content is JSON of any shape. Where it has the specification's endpoint form or OpenAPI's, the
requests and responses in it are compared as descriptions (`schema_diff`); everything else is listed
as it differs, with unknown effect. Unknown never counts as fine.

`DIALECTS` is where a further dialect is added: how it is recognised, and how two contents of it are
compared.
"""

import re
from collections.abc import Callable
from typing import Any, NamedTuple

from schemas.contract_diff import Effect, Verdict
from server.domain.content_changes import (
    ALIKE,
    NARROWER,
    OTHER,
    UNCLEAR,
    WIDER,
    ChangeLog,
    Direction,
    Path,
    SemanticChange,
    same,
    shown,
)
from server.domain.schema_diff import ANNOTATIONS, WORDS_ONLY, compare_schemas, is_schema

JsonObject = dict[str, Any]

METHODS = ("get", "put", "post", "delete", "options", "head", "patch", "trace")
REQUESTS = frozenset({"request", "requestBody", "request_body"})
RESPONSES = frozenset({"response", "responseBody", "response_body"})
_MEDIA = frozenset({"content", "description", "required", "headers", "links"})
_PLACEHOLDER = re.compile(r"\{[^{}/]*\}")


class SemanticDiff(NamedTuple):
    """The changes between two contents. The verdict of all: breaking if it breaks either side,
    else unknown if any effect is. `more` counts changes that are not listed."""

    verdict: Verdict
    provider: Verdict
    consumer: Verdict
    changes: list[SemanticChange]
    more: int


class Dialect(NamedTuple):
    """A way to write contracts."""

    name: str
    is_in: Callable[[JsonObject], bool]
    compare: Callable[[ChangeLog, JsonObject, JsonObject], None]


def semantic_diff(before: JsonObject, after: JsonObject) -> SemanticDiff:
    """What changed from one content to the next. Never raises, for any JSON; its work is bounded.

    >>> diff = semantic_diff({"response": {"total": "number"}}, {"response": {"cents": "integer"}})
    >>> [(change.path, change.rule, change.provider, change.consumer) for change in diff.changes]
    ... # doctest: +NORMALIZE_WHITESPACE
    [('$.response.total', 'required_member_removed', 'compatible', 'breaking'),
     ('$.response.cents', 'required_member_added', 'breaking', 'compatible')]
    """
    log = ChangeLog()
    for dialect in DIALECTS:
        if dialect.is_in(before) and dialect.is_in(after):
            dialect.compare(log, before, after)
            break
    else:
        log.structure(before, after, ())
    provider = _verdict([change.provider for change in log.changes], log.more)
    consumer = _verdict([change.consumer for change in log.changes], log.more)
    both: list[Effect] = [
        side for change in log.changes for side in (change.provider, change.consumer)
    ]
    return SemanticDiff(_verdict(both, log.more), provider, consumer, log.changes, log.more)


def _verdict(effects: list[Effect], more: int) -> Verdict:
    if "breaking" in effects:
        return "breaking"
    if more or "unknown" in effects:
        return "unknown"
    return "compatible" if effects else "same"


# --- endpoints ------------------------------------------------------------------------------------


def _is_endpoint(content: JsonObject) -> bool:
    return isinstance(content.get("method"), str) and isinstance(content.get("path"), str)


def _endpoints(log: ChangeLog, before: JsonObject, after: JsonObject) -> None:
    if before["method"].upper() != after["method"].upper():
        log.add(("method",), "method_changed", before["method"], after["method"], OTHER)
    was, now = (_PLACEHOLDER.sub("{}", side["path"]) for side in (before, after))
    if before["path"] != after["path"]:
        # A parameter may have been renamed, or two have changed places.
        variance = OTHER if was != now else UNCLEAR
        log.add(("path",), "path_changed", before["path"], after["path"], variance)
    was_rest, now_rest = (_without(side, "method", "path") for side in (before, after))
    _operations(log, was_rest, now_rest, ())


def _without(content: JsonObject, *names: str) -> JsonObject:
    return {name: value for name, value in content.items() if name not in names}


def _operations(log: ChangeLog, before: JsonObject, after: JsonObject, path: Path) -> None:
    """Two operations: what is sent and answered, and what is said of it."""
    for name in [*before, *(name for name in after if name not in before)]:
        _part(log, name, before, after, (*path, name))


def _part(log: ChangeLog, name: str, before: JsonObject, after: JsonObject, path: Path) -> None:
    was, now = before.get(name), after.get(name)
    if name in before and name in after and same(was, now):
        return
    if name in ANNOTATIONS and isinstance(was, str | None) and isinstance(now, str | None):
        log.add(path, "annotation_changed", was, now, ALIKE, why=WORDS_ONLY)
    elif name not in before:
        log.add(path, "value_added", after=shown(now))
    elif name not in after:
        log.add(path, "value_removed", before=shown(was))
    elif name in REQUESTS:
        _bodies(log, was, now, path, "request")
    elif name in RESPONSES:
        _bodies(log, was, now, path, "response")
    elif name == "responses" and isinstance(was, dict) and isinstance(now, dict):
        _statuses(log, was, now, path)
    else:
        log.structure(was, now, path)


def _bodies(log: ChangeLog, before: Any, after: Any, path: Path, direction: Direction) -> None:
    """A request or response: described at once, or by media type as OpenAPI does."""
    if not (_has_media(before) and _has_media(after)):
        if _has_media(before) or _has_media(after):
            log.structure(before, after, path)
        else:
            compare_schemas(log, before, after, path, direction)
        return
    was, now = (side.get("required") is True for side in (before, after))
    if direction == "request" and was != now:
        rule, variance = ("became_required", NARROWER) if now else ("became_optional", WIDER)
        log.add(path, rule, None, None, variance, direction)
    for name in ("description", "headers", "links"):
        if name in before or name in after:
            _part(log, name, before, after, (*path, name))
    types, at = (before["content"], after["content"]), (*path, "content")
    for media in [*types[0], *(media for media in types[1] if media not in types[0])]:
        earlier, later = (side.get(media) for side in types)
        if _has_schema(earlier) and _has_schema(later):
            here: Path = (*at, media, "schema")
            compare_schemas(log, earlier["schema"], later["schema"], here, direction)
        else:
            _part(log, media, *types, (*at, media))


def _has_schema(media: Any) -> bool:
    return isinstance(media, dict) and "schema" in media


def _has_media(body: Any) -> bool:
    return (
        isinstance(body, dict) and isinstance(body.get("content"), dict) and body.keys() <= _MEDIA
    )


def _statuses(log: ChangeLog, before: JsonObject, after: JsonObject, path: Path) -> None:
    for status in [*before, *(status for status in after if status not in before)]:
        if status in before and status in after:
            _bodies(log, before[status], after[status], (*path, status), "response")
        else:
            _part(log, status, before, after, (*path, status))


# --- OpenAPI --------------------------------------------------------------------------------------


def _is_openapi(content: JsonObject) -> bool:
    return isinstance(content.get("openapi"), str) and isinstance(content.get("paths"), dict)


def _documents(log: ChangeLog, before: JsonObject, after: JsonObject) -> None:
    for name in [*before, *(name for name in after if name not in before)]:
        if name == "paths":
            _paths(log, before["paths"], after["paths"])
        else:
            _part(log, name, before, after, (name,))


def _paths(log: ChangeLog, before: JsonObject, after: JsonObject) -> None:
    for route in [*before, *(route for route in after if route not in before)]:
        was, now = before.get(route, {}), after.get(route, {})
        if isinstance(was, dict) and isinstance(now, dict):
            for name in [*was, *(name for name in now if name not in was)]:
                _operation(log, name, was, now, ("paths", route, name))
        else:
            log.structure(was, now, ("paths", route))


def _operation(log: ChangeLog, name: str, was: JsonObject, now: JsonObject, path: Path) -> None:
    if name.lower() not in METHODS:
        _part(log, name, was, now, path)
    elif name not in was:
        why = "A provider as built today doesn't serve it."
        log.add(path, "operation_added", None, shown(now[name]), NARROWER, "response", why)
    elif name not in now:
        why = "A consumer as built today may call it."
        log.add(path, "operation_removed", shown(was[name]), None, WIDER, "response", why)
    elif isinstance(was[name], dict) and isinstance(now[name], dict):
        _operations(log, was[name], now[name], path)
    else:
        log.structure(was[name], now[name], path)


# --- bodies alone ---------------------------------------------------------------------------------


def _is_exchange(content: JsonObject) -> bool:
    return bool((REQUESTS | RESPONSES) & content.keys())


DIALECTS = (
    Dialect("openapi", _is_openapi, _documents),
    Dialect("endpoint", _is_endpoint, _endpoints),
    Dialect("exchange", _is_exchange, lambda log, was, now: _operations(log, was, now, ())),
    Dialect(
        "json-schema", is_schema, lambda log, was, now: compare_schemas(log, was, now, (), None)
    ),
)
"""Every dialect, the one that is recognised most surely first."""
