"""What is sent to an operation before requests at random: each edge of what is valid, and each
constraint broken once."""

import json
from collections.abc import Iterator
from dataclasses import replace
from itertools import islice, zip_longest
from typing import Any, NamedTuple

from contracts.model import Parameter
from proof.cases import MULTIPART, RequestDraft, Requests, is_raw
from proof.edges import edge_values
from proof.exchange import FORM, RuleBreach, ValueCheck
from proof.messages import WireRequest, is_json
from proof.parameters import EVERY, readings, written
from proof.plain_values import drawn_values
from proof.probe_subject import Spoiled
from proof.strategies import NoSuchValue
from proof.violations import Readings, Violations, shown, violations

EDGES_MAX = 100
VIOLATIONS_MAX = 200
"""Requests to one operation that break a constraint, beyond those at random."""
MALFORMED = b'{"'
TARGET_MAX = 4000
"""Characters of a parameter; servers refuse longer ones for their length alone."""
DRAWN = 10


class _Site(NamedTuple):
    """A value of a request: a parameter's or a body's, with a draft that is sound otherwise."""

    where: str
    check: ValueCheck
    draft: RequestDraft
    parameter: Parameter | None

    def filled(self, value: Any) -> RequestDraft:
        if self.parameter is None:
            return replace(self.draft, body=value)
        key = (self.parameter.place, self.parameter.name)
        return replace(self.draft, parameters={**self.draft.parameters, key: value})


class Enumerated:
    """The requests to one operation that are not drawn at random."""

    def __init__(self, requests: Requests) -> None:
        self._requests = requests
        media_types: list[str | None] = [*requests.media] or [None]
        drafts = [self._draft(media) for media in media_types]
        self._drafts = [draft for draft in drafts if draft is not None]
        self.unbroken: list[str] = []
        """The constraints that no request breaks, once `broken` was called."""

    def edges(self) -> list[WireRequest]:
        """Valid requests with one value at an edge."""
        made: dict[WireRequest, None] = {}
        sites = list(self._sites())
        drawn = [
            [site.filled(value) for value in edge_values(site.check.schema, self._readings(site))]
            for site in sites
        ]
        # Of each value some, if there are too many.
        for drafts in zip_longest(*drawn):
            for draft in drafts:
                request = None if draft is None else self._requests.sound(draft)
                if request is not None:
                    made.setdefault(request)
        return list(islice(made, EDGES_MAX))

    def broken(self) -> list[Spoiled]:
        """Requests with one constraint broken each, of everything some before more of the same."""
        made: dict[WireRequest, Spoiled] = {}
        for spoiled in self._broken_wholes():
            made.setdefault(spoiled.request, spoiled)
        of_sites = [self._broken_values(site) for site in self._sites()]
        for row in zip_longest(*of_sites):
            for spoiled in row:
                if spoiled is not None:
                    made.setdefault(spoiled.request, spoiled)
        return list(islice(made.values(), VIOLATIONS_MAX))

    def _draft(self, media: str | None) -> RequestDraft | None:
        """A draft that is sound, with a body of a media type."""
        plain = self._requests.plain_draft(media)
        if plain is not None and self._requests.sound(plain) is not None:
            return plain
        try:
            drawn = drawn_values(self._requests.drafts(media), 0, DRAWN)
        except NoSuchValue:
            return None
        return next((d for d in drawn if self._requests.sound(d) is not None), None)

    def _sites(self) -> Iterator[_Site]:
        if not self._drafts:
            return
        for parameter, check in self._requests.free:
            where = f"{parameter.place} {parameter.name}"
            yield _Site(where, check, self._drafts[0], parameter)
        for draft in self._drafts:
            if draft.media is not None and self._is_judged(draft.media):
                check = self._requests.check.request.bodies[draft.media]
                yield _Site("body", check, draft, None)

    def _is_judged(self, media: str) -> bool:
        """Whether what a body of a media type says can be wrong."""
        check = self._requests.check.request.bodies[media]
        return not is_raw(media) or (media.startswith("text/") and check.types.whole == {"string"})

    def _readings(self, site: _Site) -> Readings:
        """What a receiver may read at a site, of the values that can be written there."""

        def read(value: Any) -> list[Any]:
            request = self._requests.request(site.filled(value))
            if request is None:
                return []
            if site.parameter is not None:
                return self._of_parameter(site.parameter, site.check, value)
            if site.draft.media in (FORM, MULTIPART):
                return _of_form(site, value)
            return [value]

        return read

    def _of_parameter(self, parameter: Parameter, check: ValueCheck, value: Any) -> list[Any]:
        pairs = written(parameter, value)
        if sum(len(text) for _, text in pairs) > TARGET_MAX:
            return []
        return list(readings(parameter, pairs, check.types.whole, check.types.members))

    def _broken_wholes(self) -> Iterator[Spoiled]:
        """Requests that lack something, or whose body is no JSON."""
        requests = self._requests
        for draft in self._drafts[:1]:
            for parameter, _ in requests.free:
                if parameter.required and parameter.place != "path":
                    key = (parameter.place, parameter.name)
                    rest = {name: v for name, v in draft.parameters.items() if name != key}
                    yield from self._spoiled(requests.request(replace(draft, parameters=rest)))
            if requests.media and requests.check.request.part.body_required:
                yield from self._spoiled(requests.request(replace(draft, media=None)))
        for draft in self._drafts:
            request = requests.request(draft)
            if request is not None and is_json(draft.media or ""):
                yield from self._spoiled(replace(request, body=MALFORMED))

    def _broken_values(self, site: _Site) -> Iterator[Spoiled]:
        read = self._readings(site)
        broken: Violations = violations(site.check.schema, read)
        # In a text all types look the same, or like no type at all.
        is_text = site.parameter is not None or not is_json(site.draft.media or "")
        unbroken = [pair for pair in broken.unbroken if not is_text or pair[1] != "type"]
        self.unbroken += shown(unbroken, site.where)
        for value in broken.values:
            request = self._requests.request(site.filled(value))
            if request is None:
                continue
            if site.draft.media == MULTIPART and site.parameter is None:
                misfit = site.check.validator.misfits(read(value)[0])[0]
                wrong = RuleBreach("body_schema", f"body{misfit.where}", misfit.why)
                yield Spoiled(request, wrong)
            else:
                yield from self._spoiled(request)

    def _spoiled(self, request: WireRequest | None) -> Iterator[Spoiled]:
        breaches = [] if request is None else self._requests.breaches(request)
        if request is not None and breaches:
            yield Spoiled(request, breaches[0])


def _of_form(site: _Site, value: Any) -> list[Any]:
    """What a form may be read as; a part of several may be the JSON of a list or object."""
    if not isinstance(value, dict):
        return []
    whole = Parameter("", "query", True, site.check.located, ())
    kinds = site.check.types.members
    more: dict[str, Any] = {}
    if site.draft.media == MULTIPART:
        parts = {n: v for n, v in value.items() if v is None or isinstance(v, dict | list)}
        is_text = {name: "string" in kinds.get(name, EVERY) for name in parts}
        more = {n: json.dumps(v) if is_text[n] else v for n, v in parts.items()}
        value = {name: part for name, part in value.items() if name not in parts}
    read = readings(whole, written(whole, value), frozenset({"object"}), kinds)
    return [{**reading, **more} for reading in [*read, *([] if value else [{}])]]
