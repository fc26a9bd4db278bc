"""The changes between two contents of a contract, and what each means for the provider and for the
consumer.

Every change is reduced to one question: is what the new content allows within what the old one
allowed (`narrows`), and the reverse (`widens`)? Which side that breaks follows from who sends: of a
response the provider, of a request the consumer. A side is broken when what it built to the old
content fails with the other side at the new content.
"""

import json
from collections.abc import Mapping
from typing import Any, Literal, NamedTuple

import orjson

from schemas.contract_diff import Effect

Direction = Literal["request", "response"] | None
"""Who sends: the consumer a request, the provider a response. None where that is not certain."""

CHANGES_MAX = 200
"""Changes that are listed; the rest are counted."""
VALUES_MAX = 50_000
"""Values that are compared: beyond them a change is `too_large`, and what it means unknown."""
DEPTH_MAX = 100
TEXT_MAX = 200
PATH_MAX = 300

Path = tuple[str | int, ...]


class Variance(NamedTuple):
    """Whether a change narrows what is allowed, widens it, does both (it allows the same) or
    neither. None is unknown."""

    narrows: bool | None
    widens: bool | None


ALIKE = Variance(True, True)
NARROWER = Variance(True, False)
WIDER = Variance(False, True)
OTHER = Variance(False, False)
UNCLEAR = Variance(None, None)

_EFFECTS: Mapping[bool | None, Effect] = {True: "compatible", False: "breaking", None: "unknown"}
_WHY = {
    ("request", NARROWER): "It allows less: what consumers send today may be refused.",
    ("request", WIDER): "It allows more: a provider as built today may refuse it.",
    (
        "response",
        NARROWER,
    ): "It promises more: a provider as built today may not keep it.",
    ("response", WIDER): "It promises less: a consumer as built today may not expect it.",
}
_WHY_ANYWHERE = {
    ALIKE: "What is built today still fits.",
    OTHER: "What is built today, on either side, doesn't fit any more.",
    NARROWER: "It allows less than before; whom that breaks depends on who sends it.",
    WIDER: "It allows more than before; whom that breaks depends on who sends it.",
}
UNDECIDED = "Its effect can't be decided from the content."


class SemanticChange(NamedTuple):
    """A change at one path. `before` and `after` are JSON, cut to `TEXT_MAX` characters; None where
    there is nothing."""

    path: str
    rule: str
    provider: Effect
    consumer: Effect
    before: str | None
    after: str | None
    why: str


class ChangeLog:
    """Collects the changes of one comparison, within its bounds."""

    def __init__(self) -> None:
        self.changes: list[SemanticChange] = []
        self.more = 0
        self._left = VALUES_MAX
        self._too_large = False

    def add(
        self,
        path: Path,
        rule: str,
        before: Any = None,
        after: Any = None,
        variance: Variance = UNCLEAR,
        direction: Direction = None,
        why: str | None = None,
    ) -> None:
        """Note a change. None stands for no value; a JSON null is given as `NULL`."""
        if len(self.changes) >= CHANGES_MAX:
            self.more += 1
            return
        provider, consumer = _by_side(variance, direction)
        self.changes.append(
            SemanticChange(
                path_text(path),
                rule,
                _EFFECTS[provider],
                _EFFECTS[consumer],
                _text(before),
                _text(after),
                why or _why(variance, direction),
            )
        )

    def may_go_on(self, path: Path) -> bool:
        """Whether one more value may be compared; the first one too many is noted as a change."""
        self._left -= 1
        if self._left >= 0 and len(path) <= DEPTH_MAX:
            return True
        if not self._too_large:
            self._too_large = True
            self.add(path, "too_large", why="The contents are too large to be compared in full.")
        return False

    def structure(self, before: Any, after: Any, path: Path) -> None:
        """Note what differs by path alone, of content whose meaning is not known."""
        if not self.may_go_on(path) or same(before, after):
            return
        if isinstance(before, dict) and isinstance(after, dict):
            for name in [*before, *(name for name in after if name not in before)]:
                self._member(before, after, name, (*path, name))
        elif isinstance(before, list) and isinstance(after, list):
            for place in range(min(len(before), len(after))):
                if self._too_large:
                    return
                self.structure(before[place], after[place], (*path, place))
            self._rest_of_lists(before, after, path)
        else:
            self.add(path, "value_changed", shown(before), shown(after))

    def _member(self, before: Any, after: Any, name: str, path: Path) -> None:
        if name not in after:
            self.add(path, "value_removed", before=shown(before[name]))
        elif name not in before:
            self.add(path, "value_added", after=shown(after[name]))
        else:
            self.structure(before[name], after[name], path)

    def _rest_of_lists(self, before: list[Any], after: list[Any], path: Path) -> None:
        for place in range(len(after), len(before)):
            self.add((*path, place), "value_removed", before=shown(before[place]))
        for place in range(len(before), len(after)):
            self.add((*path, place), "value_added", after=shown(after[place]))


class _Null:
    """A JSON null in a change, where None stands for no value."""


NULL = _Null()


def shown(value: Any) -> Any:
    """A value as `ChangeLog.add` takes it."""
    return NULL if value is None else value


def same(before: Any, after: Any) -> bool:
    """Whether two values are certainly the same JSON."""
    if not isinstance(before, dict | list) or not isinstance(after, dict | list):
        return isinstance(before, bool) == isinstance(after, bool) and bool(before == after)
    try:
        # Python takes 1 and true for equal, so the texts are compared too.
        return before == after and text_of(before) == text_of(after)
    except RecursionError:
        return False


def path_text(path: Path) -> str:
    """A JSON path, cut to `PATH_MAX` characters.

    >>> path_text(("responses", "200", "content", "application/json", "tags", 0))
    '$.responses["200"].content["application/json"].tags[0]'
    """
    text = "$"
    for step in path:
        if isinstance(step, str) and step[:PATH_MAX].isidentifier() and step.isascii():
            text += f".{step[:PATH_MAX]}"
        else:
            cut = step[:PATH_MAX] if isinstance(step, str) else step
            text += f"[{json.dumps(cut, ensure_ascii=False)}]"
        if len(text) > PATH_MAX:
            return f"{text[: PATH_MAX - 1]}…"
    return text


def _by_side(variance: Variance, direction: Direction) -> tuple[bool | None, bool | None]:
    """Whether what the provider and the consumer have built still fits."""
    narrows, widens = variance
    if direction == "response":
        return widens, narrows
    if direction == "request":
        return narrows, widens
    both = narrows if narrows == widens else None
    return both, both


def _why(variance: Variance, direction: Direction) -> str:
    known = _WHY.get((direction or "", variance)) or _WHY_ANYWHERE.get(variance)
    if known is None and variance != UNCLEAR and direction is not None:
        return "One side no longer says or reads it; whether the other relied on it is unknown."
    return known or UNDECIDED


def _text(value: Any) -> str | None:
    if value is None:
        return None
    text = "null" if value is NULL else _json(value)
    return text if len(text) <= TEXT_MAX else f"{text[: TEXT_MAX - 1]}…"


def _json(value: Any) -> str:
    """The beginning of a value's JSON, at least."""
    if isinstance(value, str):
        return json.dumps(value[:TEXT_MAX], ensure_ascii=False)
    if isinstance(value, dict) and len(value) > TEXT_MAX:
        value = dict(list(value.items())[:TEXT_MAX])
    if isinstance(value, list):
        value = value[:TEXT_MAX]
    try:
        return json.dumps(value, ensure_ascii=False)
    except (RecursionError, ValueError):
        return "…"


def text_of(value: Any) -> str:
    """A text that is the same for equal values, of any JSON."""
    try:
        return orjson.dumps(value, option=orjson.OPT_SORT_KEYS).decode()
    except orjson.JSONEncodeError:
        # It knows no halves of characters, no numbers beyond 2^64, and no deep nesting.
        try:
            return json.dumps(value, sort_keys=True)
        except RecursionError:
            return "…"
