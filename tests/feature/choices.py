"""How a follower fills the params that a call leaves open: by what the text says of each, and by
its sheet."""

import json
import re
from collections.abc import Iterator
from typing import Any

from tests.feature.reading import Json, WrittenCall, objects
from tests.feature.sheet import Sheet


def builds(told: WrittenCall) -> bool:
    """Whether the call reports what its caller has built: it names the files."""
    return "files" in told.fill


def judges(told: WrittenCall) -> bool:
    """Whether its caller agrees to something, or not."""
    return any(re.search(r"\bagree\b", about) for about in told.fill.values())


def answers(told: WrittenCall) -> bool:
    """Whether the call answers a question."""
    return any(re.search(r"\bthe answer\b", about) for about in told.fill.values())


def chosen(told: WrittenCall, sheet: Sheet) -> Json:
    """The params of the call, whole. A dot in an open param's name leads into an object."""
    params: Json = json.loads(json.dumps(told.params))
    for name, about in told.fill.items():
        value = _value(name, about, told.about, sheet)
        if value is not None:
            *path, last = name.split(".")
            place = params
            for step in path:
                place = place.setdefault(step, {})
            place[last] = value
    return params


def _value(name: str, about: str, text: str, sheet: Sheet) -> Any:
    """What to put into an open param; None to leave it out. `text` is what the call is about."""
    lacks = lacking(sheet.needs, interface(text) or {})
    repaired = sheet.software.repaired
    choices: list[tuple[str, Any]] = [
        (r"action: .*\bagree\b", "request_change" if lacks else "agree"),
        (r"\bcomment: ", f"We need {json.dumps(lacks)}" if lacks else None),
        (r"\bwhat you want instead\b", lacks or None),
        (r"\bwhole new content\b", revised(text)),
        (r"\bwhat you changed\b", "As you asked"),
        (r"\bsuccess or failure\b", "success" if repaired else "failure"),
        (r"\bwhat you tested\b", "All parts together" if repaired else sheet.software.fault),
        (r"\bpaths\b", list(sheet.files)),
        (r"\bwhat the answer is: ", "decision"),
        (r'\{"answer": ', {"answer": answer(text, sheet)}),
        (r"\bthe answer\b", answer(text, sheet)),
        (r"\bwhat the other parties should know\b", f"{sheet.repo} is done"),
    ]
    fitting = (value for pattern, value in choices if re.search(pattern, f"{name}: {about}"))
    return next(fitting, None)


def answer(text: str, sheet: Sheet) -> str | None:
    """Its answer to the question in a text; None when it doesn't know."""
    return next((answer for word, answer in sheet.answers.items() if word in text), None)


def interface(text: str) -> Json | None:
    """The interface that a text shows, if it shows one as a whole."""
    label = re.search(r"(?im)^.*\bcontent:?$", text)
    return next(iter(objects(text[label.end() :])), None) if label else None


def revised(text: str) -> Json | None:
    """The interface in a text, with the changes that others suggest."""
    whole = interface(text)
    for part in text.split("Suggested change:")[1:]:
        whole = merged(whole or {}, next(iter(objects(part)), {}))
    return whole


def merged(whole: Json, change: Json) -> Json:
    """`whole` with the members of `change`, at every level."""
    inner = {
        name: merged(whole[name], value)
        for name, value in change.items()
        if isinstance(value, dict) and isinstance(whole.get(name), dict)
    }
    return whole | change | inner


def lacking(needs: Json, given: Json) -> Json:
    """The part of `needs` that is not in `given`."""
    return dict(_lacking(needs, given))


def _lacking(needs: Json, given: Json) -> Iterator[tuple[str, Any]]:
    for name, value in needs.items():
        inner = given.get(name)
        if isinstance(value, dict) and isinstance(inner, dict):
            if rest := lacking(value, inner):
                yield name, rest
        elif inner != value:
            yield name, value
