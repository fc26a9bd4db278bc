"""Requests with one thing wrong at random, which a provider refuses."""

from collections.abc import Iterator, Mapping
from dataclasses import replace
from typing import TYPE_CHECKING, Any, Literal

from contracts.model import Parameter
from proof.cases import RequestDraft, Requests
from proof.enumerated import MALFORMED
from proof.exchange import FORM, ValueCheck
from proof.messages import WireRequest, is_json
from proof.parameters import Unwritable, written
from proof.probe_subject import Spoiled
from proof.wrong_values import PLAIN, UNKNOWN

if TYPE_CHECKING:
    from hypothesis.strategies import SearchStrategy

PLACES_MAX = 200
BOUNDS_MAX = 40
LENGTH_MAX = 10_000
TRIES = 5
Way = Literal["without", "text", "value", "malformed", "no body"]


def invalid(requests: Requests) -> "SearchStrategy[Spoiled] | None":
    """Requests with one thing wrong; None if nothing can be wrong with them."""
    from hypothesis import reject
    from hypothesis import strategies as st

    ways = list(_ways(requests))
    if not ways:
        return None
    drafts = {media: requests.drafts(media) for media in (None, *requests.media)}

    @st.composite
    def drawn(draw: Any) -> Spoiled:
        way, what = draw(st.sampled_from(ways))
        draft = draw(drafts[what if way in ("value", "malformed") else None])
        if requests.sound(draft) is None:
            return reject()
        request = _spoilt(requests, draw, draft, way, what)
        breaches = [] if request is None else requests.breaches(request)
        return Spoiled(request, breaches[0]) if request and breaches else reject()

    return drawn()


def _ways(requests: Requests) -> Iterator[tuple[Way, Any]]:
    """How a request may be spoilt, and what of it."""
    for parameter, schema in requests.free:
        if parameter.required and parameter.place != "path":
            yield "without", parameter
        if texts := _wrong_texts(requests, parameter, schema):
            yield "text", (parameter, texts)
    for media in requests.media:
        if is_json(media):
            yield "malformed", media
        if is_json(media) or media == FORM:
            # Most of what can be wrong is in a body.
            yield from (("value", media), ("value", media), ("value", media))
    if requests.media and requests.check.request.part.body_required:
        yield "no body", None


def _spoilt(
    requests: Requests, draw: Any, draft: RequestDraft, way: Way, what: Any
) -> WireRequest | None:
    """A request of a draft, spoilt in one way; None if it can't be written."""
    from hypothesis import strategies as st

    if way == "without":
        rest = {key: v for key, v in draft.parameters.items() if key != (what.place, what.name)}
        return requests.request(replace(draft, parameters=rest))
    if way == "text":
        parameter, texts = what
        values = {
            **draft.parameters,
            (parameter.place, parameter.name): draw(st.sampled_from(texts)),
        }
        return requests.request(replace(draft, parameters=values))
    if way == "no body":
        return requests.request(replace(draft, media=None))
    if way == "value":
        return _spoilt_body(requests, draw, draft, what)
    request = requests.request(draft)
    return None if request is None else replace(request, body=MALFORMED)


def _spoilt_body(
    requests: Requests, draw: Any, draft: RequestDraft, media: str
) -> WireRequest | None:
    """A request whose body is wrong in one place; None if it didn't come to be wrong."""
    check = requests.check.request.bodies[media]
    values = [*PLAIN, *_edges(check.schema)]
    for _ in range(TRIES):
        body = _other(draw, draft.body, values)
        if not check.validator.accepts(body):
            return requests.request(replace(draft, body=body))
    return None


def _wrong_texts(requests: Requests, parameter: Parameter, schema: ValueCheck) -> list[Any]:
    """Values that are wrong for a parameter."""
    wrong = []
    for value in (*PLAIN, *_edges(schema.schema)):
        try:
            pairs = written(parameter, value)
        except Unwritable:
            continue
        if pairs and requests.check.request.parameter_breaches(parameter, schema, pairs):
            wrong.append(value)
    return wrong


def _other(draw: Any, value: Any, values: list[Any]) -> Any:
    """A value of which one part is another, is gone, or is added."""
    from hypothesis import strategies as st

    path = draw(st.sampled_from(list(_places(value))))
    how = draw(st.sampled_from(["other", "other", "gone", "more"]))
    if how == "gone" and path:
        return _changed(value, path, _GONE)
    if how == "more" and isinstance(_at(value, path), dict):
        return _changed(value, (*path, UNKNOWN), 1)
    return _changed(value, path, draw(st.sampled_from(values)))


_GONE = object()


def _places(value: Any) -> Iterator[tuple[str | int, ...]]:
    """The places in a value, the outer ones first."""
    waiting: list[tuple[tuple[str | int, ...], Any]] = [((), value)]
    for path, part in waiting:
        yield path
        steps = list(part.items() if isinstance(part, dict) else ())
        steps += enumerate(part) if isinstance(part, list) else ()
        if len(waiting) < PLACES_MAX:
            waiting += [((*path, step), inner) for step, inner in steps]


def _at(value: Any, path: tuple[str | int, ...]) -> Any:
    for step in path:
        value = value[step]
    return value


def _changed(value: Any, path: tuple[str | int, ...], new: Any) -> Any:
    if not path:
        return new
    step, rest = path[0], path[1:]
    if isinstance(value, list):
        inner = _changed(value[int(step)], rest, new)
        middle = [] if inner is _GONE else [inner]
        return [*value[: int(step)], *middle, *value[int(step) + 1 :]]
    inner = _changed(value.get(step), rest, new)
    if inner is _GONE:
        return {name: part for name, part in value.items() if name != step}
    return {**value, step: inner}


def _edges(schema: Mapping[str, Any]) -> list[Any]:
    """Values at and beyond the bounds that a schema has anywhere."""
    numbers: set[float] = set()
    lengths: set[int] = set()
    waiting: list[Any] = [schema]
    while waiting and len(numbers) + len(lengths) < BOUNDS_MAX:
        part = waiting.pop()
        if isinstance(part, Mapping):
            for name, value in part.items():
                if name in _BOUNDS and isinstance(value, int | float):
                    numbers |= {value - 1, value, value + 1}
                elif name in _LENGTHS and isinstance(value, int) and value < LENGTH_MAX:
                    lengths |= {max(0, value - 1), value + 1}
                elif isinstance(value, Mapping | list):
                    waiting.append(value)
        elif isinstance(part, list):
            waiting += part
    return [*sorted(numbers), *("x" * length for length in sorted(lengths))]


_BOUNDS = frozenset({"minimum", "maximum", "exclusiveMinimum", "exclusiveMaximum", "multipleOf"})
_LENGTHS = frozenset({"minLength", "maxLength"})
