"""Differences by place alone, of content whose meaning is not known."""

from typing import Any

from contracts.changes import UNDECIDED, WORDS_ONLY, ChangeLog
from contracts.json_text import same, shown
from contracts.model import Path
from contracts.schema_keywords import ANNOTATIONS
from contracts.work import Work

DEPTH_MAX = 100
DEFAULT = "What it means to leave the value out has changed."
_NAMED = frozenset(
    {"properties", "patternProperties", "$defs", "definitions", "schemas", "paths", "responses"}
)
"""Members whose own members are named by the author, and may be called like a keyword."""


def structure_changes(log: ChangeLog, work: Work, before: Any, after: Any, path: Path) -> None:
    """Note what differs, with unknown effect. Raises TooMuchWork."""
    work.spend()
    if same(before, after):
        return
    if len(path) > DEPTH_MAX:
        log.unknown(path, "value_changed")
    elif isinstance(before, dict) and isinstance(after, dict):
        for name in [*before, *(name for name in after if name not in before)]:
            here = (*path, name)
            if name not in after:
                log.unknown(here, "value_removed", UNDECIDED, shown(before[name]))
            elif name not in before:
                log.unknown(here, "value_added", UNDECIDED, None, shown(after[name]))
            else:
                structure_changes(log, work, before[name], after[name], here)
    elif isinstance(before, list) and isinstance(after, list):
        for place in range(max(len(before), len(after))):
            here = (*path, place)
            if place >= len(after):
                log.unknown(here, "value_removed", UNDECIDED, shown(before[place]))
            elif place >= len(before):
                log.unknown(here, "value_added", UNDECIDED, None, shown(after[place]))
            else:
                structure_changes(log, work, before[place], after[place], here)
    else:
        log.unknown(path, "value_changed", UNDECIDED, shown(before), shown(after))


def word_changes(log: ChangeLog, work: Work, before: Any, after: Any, path: Path = ()) -> None:
    """Note changes of words for readers (titles, descriptions, extensions `x-…`), and of defaults,
    wherever they stand. Raises TooMuchWork."""
    work.spend()
    if len(path) > DEPTH_MAX or before == after:
        return
    if isinstance(before, dict) and isinstance(after, dict):
        names_members = bool(path) and path[-1] in _NAMED
        for name in [*before, *(name for name in after if name not in before)]:
            was, now = before.get(name), after.get(name)
            if name == "discriminator":
                _mapping_changes(log, was, now, (*path, name, "mapping"))
            elif names_members or not _is_word(name):
                word_changes(log, work, was, now, (*path, name))
            elif not same(was, now):
                _word_change(log, (*path, name), was, now)
    elif isinstance(before, list) and isinstance(after, list) and len(before) == len(after):
        for place, (was, now) in enumerate(zip(before, after, strict=True)):
            word_changes(log, work, was, now, (*path, place))


def _mapping_changes(log: ChangeLog, before: Any, after: Any, path: Path) -> None:
    """Values of a discriminator that lead elsewhere. New ones come with alternatives."""
    was, now = (side.get("mapping") if isinstance(side, dict) else None for side in (before, after))
    if isinstance(was, dict) and isinstance(now, dict):
        for name in was.keys() & now.keys():
            if was[name] != now[name]:
                log.unknown((*path, name), "discriminator_changed", UNDECIDED, was[name], now[name])


def _is_word(name: Any) -> bool:
    return name in ANNOTATIONS or (isinstance(name, str) and name.startswith("x-"))


def _word_change(log: ChangeLog, path: Path, was: Any, now: Any) -> None:
    if path[-1] == "default":
        log.unknown(path, "default_changed", DEFAULT, was, now)
    else:
        log.add(path, "annotation_changed", WORDS_ONLY, before=was, after=now)
