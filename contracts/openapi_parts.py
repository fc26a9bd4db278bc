"""The parts of OpenAPI operations: parameters, bodies by media type, responses, security."""

from collections.abc import Iterator, Mapping
from typing import Any

from contracts.model import Located, Parameter, ParameterPlace, Part
from contracts.reading import ContentReading, at, shown

PLACES: Mapping[str, ParameterPlace] = {
    "path": "path",
    "query": "query",
    "header": "header",
    "cookie": "cookie",
}
STYLES: Mapping[str, str] = {
    "path": "simple",
    "query": "form",
    "header": "simple",
    "cookie": "form",
}
"""How parameters of a place are serialised unless they say otherwise."""
_BY_THE_PROTOCOL = frozenset({"accept", "content-type", "authorization"})
"""Headers that OpenAPI says elsewhere: what is said of them as parameters doesn't count."""
_MEDIA_WORDS = frozenset({"schema", "example", "examples"})


def parameters_of(reading: ContentReading, place: Located) -> list[Parameter]:
    """The parameters of a list at a place; those that can't be read are noted."""
    if not isinstance(place.schema, list):
        reading.wrong(place, f'"parameters" is a list; this is {shown(place.schema)}.')
        return []
    parameters = (_parameter(reading, at(place, n)) for n in range(len(place.schema)))
    return [parameter for parameter in parameters if parameter is not None]


def _parameter(reading: ContentReading, use: Located) -> Parameter | None:
    place = reading.follow(use)
    if place is None or (given := reading.members(place, "A parameter")) is None:
        return None
    name, where = given.get("name"), PLACES.get(str(given.get("in")))
    if not isinstance(name, str) or not name:
        reading.wrong(place, 'A parameter has a "name".')
        return None
    if where is None:
        why = f'"in" is one of {", ".join(PLACES)}; this is {shown(given.get("in"))}.'
        reading.wrong(place, why)
        return None
    if where == "header" and name.lower() in _BY_THE_PROTOCOL:
        return None
    schema, media = _described(reading, place)
    required = given.get("required") is True or where == "path"
    style = _style(given, where) if media is None else f"content {media}"
    return Parameter(name, where, required, schema, use.path, style)


def _described(reading: ContentReading, place: Located) -> tuple[Located, str | None]:
    """The schema of a parameter or header, and its media type if it is given by `content`."""
    given = place.schema
    if "schema" in given:
        return at(place, "schema"), None
    if isinstance(given.get("content"), dict) and given["content"]:
        media = next(iter(given["content"]))
        schema = _media_schema(reading, at(place, "content", media))
        return schema, media.strip().lower()
    return Located(True, place.path, place.file), None


def _style(given: Mapping[str, Any], where: str) -> str | None:
    """A style other than that of its place: `deepObject`, and `+explode` if it explodes."""
    usual = STYLES[where]
    style = given.get("style") if isinstance(given.get("style"), str) else usual
    explode = given.get("explode")
    explodes = explode if isinstance(explode, bool) else style == "form"
    if style == usual and explodes == (usual == "form"):
        return None
    return f"{style}+explode" if explodes else style


def with_path_parameters(
    reading: ContentReading, parameters: list[Parameter], route: str, place: Located
) -> tuple[Parameter, ...]:
    """The parameters of an operation, one for each placeholder of its route.

    Those of the path that its route has no placeholder for are left out.
    """
    names = dict.fromkeys(placeholders(route))
    stray = [
        parameter
        for parameter in parameters
        if parameter.place == "path" and parameter.name not in names
    ]
    for parameter in stray:
        use = Located(parameter.schema.schema, parameter.path)
        reading.warn(use, f"{route} has no {{{parameter.name}}}, so this parameter doesn't count.")
    declared = {parameter.name for parameter in parameters if parameter.place == "path"}
    bare = [name for name in names if name not in declared]
    for name in bare:
        reading.warn(place, f"{{{name}}} has no parameter, so it may be any text.")
    return (
        *(
            parameter
            for parameter in parameters
            if parameter.place != "path" or parameter.name in names
        ),
        *(Parameter(name, "path", True, Located(True, place.path), place.path) for name in bare),
    )


def placeholders(route: str) -> list[str]:
    """The names of a route's placeholders, in order: `/a/{x}` → `["x"]`."""
    names = []
    for part in route.split("{")[1:]:
        name, closed, _ = part.partition("}")
        if closed and "/" not in name:
            names.append(name)
    return names


def unnamed(route: str) -> str:
    """A route with unnamed placeholders: `/users/{id}` → `/users/{}`."""
    first, *others = route.split("{")
    text = first
    for part in others:
        name, closed, rest = part.partition("}")
        text += f"{{}}{rest}" if closed and "/" not in name else f"{{{part}"
    return text


def request_body(reading: ContentReading, use: Located) -> tuple[Mapping[str, Located], bool]:
    """The schemas of a request body by media type, and whether it is required."""
    place = reading.follow(use)
    if place is None or reading.members(place, "A request body") is None:
        return {}, False
    if "content" not in place.schema:
        reading.wrong(place, 'A request body has a "content", by media type.')
        return {}, False
    return by_media(reading, at(place, "content")), place.schema.get("required") is True


def by_media(reading: ContentReading, place: Located) -> Mapping[str, Located]:
    """The schemas of a `content`, by media type in lower case."""
    given = reading.members(place, '"content"')
    if given is None:
        return {}
    return {
        " ".join(media.lower().split()): _media_schema(reading, at(place, media)) for media in given
    }


def _media_schema(reading: ContentReading, use: Located) -> Located:
    place = reading.follow(use)
    if place is None or (given := reading.members(place, "A media type")) is None:
        return Located(True, use.path, use.file)
    for name in given:
        if name not in _MEDIA_WORDS and not name.startswith("x-"):
            reading.leave(at(place, name))
    return at(place, "schema") if "schema" in given else Located(True, place.path, place.file)


def responses(reading: ContentReading, place: Located) -> Mapping[str, Part]:
    """The responses of an operation by status: `200`, `4XX` or `default`."""
    given = reading.members(place, '"responses"')
    if given is None:
        return {}
    parts = {}
    for status in given:
        if str(status).startswith("x-"):
            continue
        name = status_name(str(status))
        if name is None:
            why = f'{shown(status)} is no status: it is one such as "200", "4XX" or "default".'
            reading.wrong(at(place, status), why)
        elif (part := response(reading, at(place, status))) is not None:
            parts[name] = part
    return parts


def status_name(given: str) -> str | None:
    """A status as responses are named by it; None if it is none."""
    text = given.upper()
    if text == "DEFAULT":
        return "default"
    known = len(text) == 3 and text[0] in "12345" and (text[1:] == "XX" or text[1:].isdecimal())
    return text if known and text.isascii() else None


def response(reading: ContentReading, use: Located) -> Part | None:
    place = reading.follow(use)
    if place is None or (given := reading.members(place, "A response")) is None:
        return None
    headers = tuple(_headers(reading, at(place, "headers"))) if "headers" in given else ()
    bodies = by_media(reading, at(place, "content")) if "content" in given else {}
    return Part(use.path, headers, bodies, bool(bodies))


def _headers(reading: ContentReading, place: Located) -> Iterator[Parameter]:
    for name in reading.members(place, '"headers"') or {}:
        use = at(place, name)
        header = reading.follow(use)
        if header is None or reading.members(header, "A header") is None:
            continue
        if name.lower() != "content-type":
            schema, media = _described(reading, header)
            style = _style(header.schema, "header") if media is None else f"content {media}"
            needed = header.schema.get("required") is True
            yield Parameter(name, "header", needed, schema, use.path, style)


def security(
    reading: ContentReading, place: Located, schemes: Mapping[str, Any]
) -> tuple[Mapping[str, frozenset[str]], ...] | None:
    """The alternatives of a `security`, each a mapping of schemes to scopes. None for bad ones."""
    if not isinstance(place.schema, list):
        reading.wrong(place, f'"security" is a list; this is {shown(place.schema)}.')
        return None
    alternatives = []
    for number, given in enumerate(place.schema):
        here = at(place, number)
        if not isinstance(given, dict) or not all(_is_names(names) for names in given.values()):
            reading.wrong(here, 'A security requirement is like {"oauth": ["read"], "key": []}.')
            continue
        for name in given.keys() - schemes.keys():
            reading.misfit(here, f"components.securitySchemes defines no {shown(name)}.")
        alternatives.append({name: frozenset(scopes) for name, scopes in given.items()})
    return tuple(alternatives)


def _is_names(value: Any) -> bool:
    return isinstance(value, list) and all(isinstance(name, str) for name in value)


def merged(shared: list[Parameter], own: list[Parameter]) -> list[Parameter]:
    """The parameters of an operation: its own stand for those of its path of the same name."""
    by_name: dict[tuple[str, str], Parameter] = {}
    for parameter in (*shared, *own):
        name = parameter.name.lower() if parameter.place == "header" else parameter.name
        by_name[parameter.place, name] = parameter
    return list(by_name.values())


def unread_members(place: Located, known: frozenset[str]) -> Iterator[Located]:
    """What else an object says than what is known of it and extensions."""
    for name in place.schema:
        if name not in known and not str(name).startswith("x-"):
            yield at(place, name)
