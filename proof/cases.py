"""Requests to an operation that keep its contract, drawn by hypothesis."""

import json
import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any
from urllib.parse import quote, urlencode

from contracts.model import Located, Parameter, ParameterPlace
from proof.agreed import examples_beside
from proof.exchange import FORM, OperationCheck, RuleBreach, ValueCheck
from proof.messages import WireRequest, encoded_path, is_json
from proof.parameters import Unwritable, path_text, written
from proof.plain_values import plain_value
from proof.strategies import NoSuchValue, SchemaValues

if TYPE_CHECKING:
    from hypothesis.strategies import SearchStrategy

ParameterName = tuple[ParameterPlace, str]
_ANY = Located(True, ())
MULTIPART = "multipart/form-data"
BOUNDARY = "cacp-probe"
OF_CLIENT = frozenset(
    {
        "host", "content-length", "transfer-encoding", "connection", "upgrade", "expect", "te",
        "trailer", "keep-alive", "proxy-connection", "accept-encoding",
    }
)  # fmt: skip
"""Headers that tell how a request travels. A probe sends none that is drawn."""
_TOKEN = re.compile(r"[!#$%&'*+.^_`|~0-9A-Za-z-]+")
Known = Mapping[str, tuple[Any, ...]]
"""Values of parameters by name that are known to exist at the provider."""


class Unmakeable(Exception):
    """No request to an operation can be made; the message says why, in one line."""


@dataclass(frozen=True, slots=True)
class RequestDraft:
    """The values of a request before they are written: of parameters by place and name. A request
    without a body has no `media`."""

    parameters: Mapping[ParameterName, Any]
    media: str | None = None
    body: Any = None


class Requests:
    """Makes the requests to one operation.

    `base` stands before the routes. `known` are values that a drawn request may take, `fixed` those
    that it always takes. Raises `Unmakeable`.
    """

    def __init__(
        self, check: OperationCheck, base: str, known: Known, fixed: Mapping[str, str]
    ) -> None:
        self.check, self.base, self._known, self._fixed = check, base, known, fixed
        self.free = [
            (parameter, schema)
            for parameter, schema in check.request.parameters
            if parameter.name not in fixed and not _is_the_clients(parameter)
        ]
        for parameter, _ in self.free:
            if parameter.place in ("header", "cookie") and not _TOKEN.fullmatch(parameter.name):
                raise Unmakeable(f"no {parameter.place} can have the name {parameter.name}")
        for parameter, schema in check.request.parameters:
            if parameter.name in fixed:
                self._need_fitting(parameter, schema, fixed[parameter.name])
        self.media = self._media_types()
        self._unsent = {
            f"header {parameter.name}"
            for parameter, _ in check.request.parameters
            if _is_the_clients(parameter)
        }
        self._values = {
            (parameter.place, parameter.name): _values_of(f"{parameter.name}", schema)
            for parameter, schema in self.free
        }
        self._bodies = {
            media: _values_of(f"the body of {media}", check.request.bodies[media], is_raw(media))
            for media in self.media
        }

    def _need_fitting(self, parameter: Parameter, schema: ValueCheck, text: str) -> None:
        pairs = written(parameter, text)
        breaches = self.check.request.parameter_breaches(parameter, schema, pairs)
        if breaches:
            why = f"--value {parameter.name}: it doesn't fit its schema: {breaches[0].why}"
            raise Unmakeable(why.removesuffix("."))

    def _media_types(self) -> list[str]:
        """The media types of bodies that can be made."""
        declared = list(self.check.request.bodies)
        made = [m for m in declared if not m.endswith("xml") and m.isascii() and m.isprintable()]
        if declared and not made and self.check.request.part.body_required:
            raise Unmakeable(f"bodies of {' or '.join(declared)} can't be made")
        return made

    def plain(self) -> WireRequest | None:
        """The request of plausible values, of examples where there are; None if it isn't sound."""
        draft = self.plain_draft()
        return None if draft is None else self.sound(draft)

    def plain_draft(self, media: str | None = None) -> RequestDraft | None:
        """The plausible values of a request, with a body of a media type, else of the first that
        there is; None if they can't be made."""
        values: dict[ParameterName, Any] = {}
        try:
            for parameter, schema in self.free:
                key = (parameter.place, parameter.name)
                if known := self._known.get(parameter.name):
                    values[key] = known[-1]
                elif parameter.required or self._examples(schema):
                    values[key] = self._plain(schema)
            media = media or next(iter(self.media), None)
            body = None if media is None else self._plain_body(media)
        except NoSuchValue:
            return None
        return RequestDraft(values, media, body)

    def _plain(self, schema: ValueCheck) -> Any:
        examples = self._examples(schema)
        return examples[0] if examples else plain_value(schema.schema, 0)

    def _plain_body(self, media: str) -> Any:
        return "text" if is_raw(media) else self._plain(self.check.request.bodies[media])

    def _examples(self, schema: ValueCheck) -> list[Any]:
        examples = examples_beside(self.check.interface, schema.located)
        return [value for value in examples.values() if schema.validator.accepts(value)]

    def drafts(self, media: str | None = None) -> "SearchStrategy[RequestDraft]":
        """The values of requests, with a body of a media type if one is given. Not all of them can
        be written: see `sound`."""
        from hypothesis import strategies as st

        parameters = [(parameter, self._drawn(parameter)) for parameter, _ in self.free]
        bodies = {media: values.strategy() for media, values in self._bodies.items()}
        optional = not self.check.request.part.body_required

        @st.composite
        def drawn(draw: Any) -> RequestDraft:
            values: dict[ParameterName, Any] = {
                (parameter.place, parameter.name): draw(strategy)
                for parameter, strategy in parameters
                if parameter.required or draw(st.booleans())
            }
            if media is not None:
                return RequestDraft(values, media, draw(bodies[media]))
            if not bodies or (optional and draw(st.booleans())):
                return RequestDraft(values)
            chosen = draw(st.sampled_from(list(bodies)))
            return RequestDraft(values, chosen, draw(bodies[chosen]))

        return drawn()

    def valid(self) -> "SearchStrategy[WireRequest]":
        """Requests that keep the contract."""
        from hypothesis import reject
        from hypothesis import strategies as st

        drafts = self.drafts()

        @st.composite
        def drawn(draw: Any) -> WireRequest:
            request = self.sound(draw(drafts))
            return reject() if request is None else request

        return drawn()

    def _drawn(self, parameter: Parameter) -> "SearchStrategy[Any]":
        from hypothesis import strategies as st

        values = self._values[parameter.place, parameter.name]
        drawn = values.strategy(_letters(parameter.place))
        if known := self._known.get(parameter.name):
            return st.one_of(st.sampled_from(known), drawn)
        return drawn

    def sound(self, draft: RequestDraft) -> WireRequest | None:
        """The request of a draft if it keeps the contract as a provider reads it."""
        request = self.request(draft)
        return None if request is None or self.breaches(request) else request

    def breaches(self, request: WireRequest) -> list[RuleBreach]:
        breaches = self.check.request_breaches(request, request.path.removeprefix(self.base))
        return [breach for breach in breaches if breach.where not in self._unsent]

    def request(self, draft: RequestDraft) -> WireRequest | None:
        """The request of a draft; None if its values can't be written."""
        try:
            return self._written(draft)
        except (Unwritable, UnicodeError):
            return None

    def _written(self, draft: RequestDraft) -> WireRequest:
        route = self.check.operation.route
        path, query, headers, cookies = encoded_path(route).replace("%7B", "{"), [], [], []
        path = path.replace("%7D", "}")
        for parameter, _ in self.check.request.parameters:
            if _is_the_clients(parameter):
                continue
            key = (parameter.place, parameter.name)
            if key not in draft.parameters and parameter.name not in self._fixed:
                continue
            value = self._fixed.get(parameter.name, draft.parameters.get(key))
            if parameter.place == "path":
                name = encoded_path(f"{{{parameter.name}}}")[3:-3]
                path = path.replace(f"{{{name}}}", path_text(parameter, value))
            elif parameter.place == "query":
                query += written(parameter, value)
            elif parameter.place == "cookie":
                pairs = written(parameter, value)
                cookies += [f"{name}={quote(text, safe='')}" for name, text in pairs]
            else:
                headers += [(name, _of_header(text)) for name, text in written(parameter, value)]
        if cookies:
            headers.append(("Cookie", "; ".join(cookies)))
        if draft.media is not None:
            headers.append(("Content-Type", _content_type(draft.media)))
        body = None if draft.media is None else body_of(draft.media, draft.body)
        method = self.check.operation.method
        return WireRequest(method, self.base + path, urlencode(query), tuple(headers), body)


def _is_the_clients(parameter: Parameter) -> bool:
    """Whether a header is written by the HTTP client, whatever a contract says of it."""
    return parameter.place == "header" and parameter.name.lower() in OF_CLIENT


def is_raw(media: str) -> bool:
    """Whether a body of a media type is a text or file, and not the JSON or form of a value."""
    return not is_json(media) and media not in (FORM, MULTIPART)


def _content_type(media: str) -> str:
    if media == MULTIPART:
        return f"{media}; boundary={BOUNDARY}"
    return media.replace("*/*", "text/plain").replace("*", "plain")


def _values_of(what: str, schema: ValueCheck, is_text: bool = False) -> SchemaValues:
    try:
        return SchemaValues(schema.schema | {"type": "string"} if is_text else schema.schema)
    except NoSuchValue as error:
        why = f"no value fits the schema of {what}"
        raise Unmakeable(f"{why}: {error}" if str(error) else why) from None


def _letters(place: str) -> "SearchStrategy[str]":
    """The characters that parameters of a place are made of."""
    from hypothesis import strategies as st

    if place == "path":
        return st.characters(codec="utf-8", exclude_categories=["Cc"], exclude_characters="/\\")
    if place == "query":
        return st.characters(codec="utf-8")
    return st.characters(min_codepoint=32, max_codepoint=126)


def _of_header(text: str) -> str:
    """A text as a header carries it. Raises `Unwritable`."""
    if text != text.strip() or not all(" " <= character <= "~" for character in text):
        raise Unwritable("a header is of printable ASCII, without spaces around it")
    return text


def body_of(media: str, value: Any) -> bytes:
    """A body as it travels. Raises `Unwritable`."""
    if is_json(media):
        return json.dumps(value).encode()
    if media == FORM:
        whole = Parameter("", "query", True, _ANY, ())
        return urlencode(written(whole, value)).encode()
    if media == MULTIPART and isinstance(value, dict):
        return _multipart(value)
    if not isinstance(value, str):
        raise Unwritable("a body of text is a text")
    return value.encode()


def _multipart(value: dict[str, Any]) -> bytes:
    """A form with a part for each member. Raises `Unwritable`."""
    parts = []
    for name, member in value.items():
        if not name.isprintable() or '"' in name:
            raise Unwritable("a name in a form is plain text")
        text = member if isinstance(member, str) else json.dumps(member)
        if BOUNDARY in text:
            raise Unwritable("a part of a form has not its boundary")
        parts.append(
            f'--{BOUNDARY}\r\nContent-Disposition: form-data; name="{name}"\r\n\r\n{text}\r\n'
        )
    return f"{''.join(parts)}--{BOUNDARY}--\r\n".encode()
