"""How parameters are written into requests and read from them (OpenAPI's styles)."""

import json
from collections.abc import Iterable, Iterator, Mapping
from typing import Any
from urllib.parse import quote

from contracts.model import Parameter

Pairs = list[tuple[str, str]]
Kinds = Mapping[str, frozenset[str]]
"""The types of members by name."""
_DELIMITERS = {"form": ",", "simple": ",", "spaceDelimited": " ", "pipeDelimited": "|"}
_USUAL = {"path": "simple", "query": "form", "header": "simple", "cookie": "form"}


class Unwritable(ValueError):
    """A value that a parameter can't carry."""


def written(parameter: Parameter, value: Any) -> Pairs:
    """The names and texts that carry a value: one pair, but for lists and objects of a query.

    Raises `Unwritable`.
    """
    style, explode = _style(parameter)
    if style == "content":
        return [(parameter.name, json.dumps(value))]
    if style == "deepObject" and isinstance(value, dict):
        return [(f"{parameter.name}[{name}]", _text(part)) for name, part in value.items()]
    by_name = explode and parameter.place in ("query", "cookie")
    if isinstance(value, list):
        texts = [_text(part) for part in value]
        if by_name:
            return [(parameter.name, text) for text in texts]
        if not texts or any(_delimiter(style) in text for text in texts):
            raise Unwritable("a list that is written into one text has elements, without its comma")
        return [(parameter.name, _delimiter(style).join(texts))]
    if isinstance(value, dict):
        texts_of = {name: _text(part) for name, part in value.items()}
        if by_name:
            return list(texts_of.items())
        flat = [f"{k}={v}" for k, v in texts_of.items()] if explode else _flat(texts_of)
        if not flat or any("," in text for text in (*texts_of, *texts_of.values())):
            raise Unwritable("an object that is written into one text has members, without commas")
        return [(parameter.name, ",".join(flat))]
    return [(parameter.name, _text(value))]


def path_text(parameter: Parameter, value: Any) -> str:
    """The text of a path parameter, percent-encoded. Raises `Unwritable`."""
    ((_, text),) = written(parameter, value) or [("", "")]
    if text in ("", ".", ".."):
        raise Unwritable("a part of a path is not empty, and no way to another part")
    return quote(text, safe="")


def readings(
    parameter: Parameter, pairs: Pairs, kinds: frozenset[str], members: Kinds | None = None
) -> Iterator[Any]:
    """What the pairs of a request may mean as the value of a parameter, the likeliest first.

    A text may be a number or a text; which is known only by its schema, whose types are `kinds`,
    and those of its members are `members`. Nothing if the parameter is not there.
    """
    style, explode = _style(parameter)
    texts = [text for name, text in pairs if name == parameter.name]
    if "object" in kinds:
        parts = _parts(parameter, pairs, texts, style, explode)
        if parts:
            yield {
                name: _of_kind(given, (members or {}).get(name)) for name, given in parts.items()
            }
            yield {name: given[-1] for name, given in parts.items()}
    if not texts:
        return
    if style == "content":
        try:
            yield json.loads(texts[0])
        except ValueError:
            yield texts[0]
        return
    if kinds - {"array", "object"} and len(texts) == 1:
        yield from _as_scalars(texts[0])
    if "array" in kinds:
        split = texts[0].split(_delimiter(style)) if len(texts) == 1 and not explode else texts
        yield [_typed(text) for text in split]
        yield list(split)
    yield texts[0]


def _as_scalars(text: str) -> Iterator[Any]:
    typed = _typed(text)
    if not isinstance(typed, str):
        yield typed
    yield text


def _of_kind(texts: list[str], kinds: frozenset[str] | None) -> Any:
    """The value of a member, of the types that it may have; None if nobody knows them."""
    if kinds is not None and "array" in kinds and (len(texts) > 1 or kinds <= {"array", "null"}):
        return [_typed(text) for text in texts]
    return texts[-1] if kinds is not None and "string" in kinds else _typed(texts[-1])


def _parts(
    parameter: Parameter, pairs: Pairs, texts: list[str], style: str, explode: bool
) -> Mapping[str, list[str]]:
    """The members of an object, as texts."""
    split: Iterable[tuple[str, str]] = pairs
    if style == "deepObject":
        start = f"{parameter.name}["
        split = (
            (name.removeprefix(start).removesuffix("]"), text)
            for name, text in pairs
            if name.startswith(start) and name.endswith("]")
        )
    elif not explode or parameter.place not in ("query", "cookie"):
        flat = texts[0].split(",") if texts else []
        split = zip(flat[::2], flat[1::2], strict=False)
        if explode:
            named = (part.partition("=") for part in flat)
            split = ((name, text) for name, equals, text in named if equals)
    parts: dict[str, list[str]] = {}
    for name, text in split:
        parts.setdefault(name, []).append(text)
    return parts


def _style(parameter: Parameter) -> tuple[str, bool]:
    usual = _USUAL[parameter.place]
    if parameter.style is None:
        return usual, usual == "form"
    if parameter.style.startswith("content "):
        return "content", False
    style, _, explode = parameter.style.partition("+")
    return style, bool(explode)


def _delimiter(style: str) -> str:
    return _DELIMITERS.get(style, ",")


def _flat(texts: Mapping[str, str]) -> list[str]:
    return [part for name, text in texts.items() for part in (name, text)]


def _text(value: Any) -> str:
    if isinstance(value, str):
        return value
    if value is None or isinstance(value, dict | list):
        raise Unwritable("a parameter's text is a number, a boolean or a text")
    return json.dumps(value)


def _typed(text: str) -> Any:
    """A number or boolean that a text spells, else the text."""
    if text in ("true", "false"):
        return text == "true"
    plain = text.removeprefix("-")
    if not plain[:1].isdigit() or not plain.isascii() or len(text) > 400:
        return text
    try:
        return json.loads(text)
    except ValueError:
        return text


EVERY = frozenset({"null", "boolean", "integer", "number", "string", "array", "object"})


class TypesOf:
    """The types that the values of a schema that stands alone may have, as far as it says so.

    Each definition is looked into once, so the work is linear in the schema.
    """

    def __init__(self, schema: Mapping[str, Any]) -> None:
        self._definitions: Mapping[str, Any] = schema.get("$defs", {})
        self._known: dict[str, frozenset[str]] = {}
        self._passed: set[str] = set()
        self.whole = self._types(schema)
        self.members = self._members(schema)
        """Those of the members that it describes, by name."""

    def _types(self, schema: Any) -> frozenset[str]:
        if not isinstance(schema, Mapping):
            return EVERY
        kind = schema.get("type", EVERY)
        kinds = frozenset([kind] if isinstance(kind, str) else kind)
        if isinstance(ref := schema.get("$ref"), str):
            kinds &= self._target(ref)
        for part in schema.get("allOf", ()):
            kinds &= self._types(part)
        for word in ("anyOf", "oneOf"):
            if schema.get(word):
                kinds &= frozenset().union(*map(self._types, schema[word]))
        return kinds

    def _target(self, ref: str) -> frozenset[str]:
        if ref not in self._known:
            # One that refers to itself may have any type, until it says more.
            self._known[ref] = EVERY
            self._known[ref] = self._types(self._definition(ref))
        return self._known[ref]

    def _members(self, schema: Any) -> Kinds:
        if not isinstance(schema, Mapping):
            return {}
        kinds = {name: self._types(part) for name, part in schema.get("properties", {}).items()}
        inner = [part for word in ("allOf", "anyOf", "oneOf") for part in schema.get(word, ())]
        if isinstance(ref := schema.get("$ref"), str) and ref not in self._passed:
            self._passed.add(ref)
            inner.append(self._definition(ref))
        for part in inner:
            kinds = {**self._members(part), **kinds}
        return kinds

    def _definition(self, ref: str) -> Any:
        return self._definitions.get(ref.removeprefix("#/$defs/"))
