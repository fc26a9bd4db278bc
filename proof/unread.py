"""What of a contract nobody can hold an answer against, so that no answer proves it."""

from collections.abc import Iterator, Mapping

from contracts.model import Interface, Located, Path
from contracts.refs import Resolver
from contracts.schema_check import FORMS
from contracts.subschemas import subschemas
from proof.exchange import FORM, OperationCheck, ValueCheck, reads_as_json
from proof.messages import WireAnswer, fits_media, media_of
from schemas.plain import one_line

SHOWN_MAX = 200
_APART = ("$defs", "definitions")


def unread_schema(interface: Interface, check: ValueCheck) -> Iterator[str]:
    """What of a schema is not checked: references that lead nowhere, keywords of a wrong form, and
    patterns in another language's syntax. Each in one line."""
    resolver = Resolver(interface.document, interface.files, interface.draft == "2020-12")
    waiting, passed = [check.located], set[tuple[str, Path]]()
    for place in waiting:
        if (place.file, place.path) in passed or isinstance(place.schema, bool):
            continue
        passed.add((place.file, place.path))
        schema = place.schema
        if not isinstance(schema, Mapping):
            yield "what stands there is no schema"
            continue
        ref = schema.get("$ref", schema.get("$dynamicRef"))
        if isinstance(ref, str):
            target = resolver.resolve(Located({"$ref": ref}, place.path, place.file))
            if isinstance(target, Located):
                waiting.append(target)
            else:
                yield one_line(f"the reference {ref} leads nowhere", SHOWN_MAX)
            if interface.draft != "2020-12":
                continue
        for name, value in schema.items():
            if name in FORMS and not FORMS[name][0](value):
                yield one_line(f"{name} is not {FORMS[name][1]}", SHOWN_MAX)
        for path, part in subschemas(schema):
            if path[0] not in _APART:
                waiting.append(Located(part, (*place.path, *path), place.file))
    for where in check.validator.ignored:
        yield one_line(f"what stands at {where or 'its root'} can't be read", SHOWN_MAX)


def unread_answer(check: OperationCheck, answer: WireAnswer, method: str) -> Iterator[str]:
    """What an answer was not held against, though it is declared. Each in one line."""
    declared = check.response_for(answer.status)
    if declared is None:
        return
    name, part = declared
    for parameter, schema in part.parameters:
        for why in unread_schema(check.interface, schema):
            yield f"of response {name} the header {one_line(parameter.name, 60)} is unread: {why}."
    media = media_of(answer.headers)
    given = fits_media(media, part.bodies)
    if given is None or method == "HEAD" or answer.status in (204, 304):
        return
    schema = part.bodies[given]
    what = f"of response {name} the body"
    for why in unread_schema(check.interface, schema):
        yield f"{what} is unread: {why}."
    if not reads_as_json(media, given, schema) and media != FORM and not _fits_any(schema):
        yield f"{what} is unread: nothing here reads {one_line(media, 60)}."


def _fits_any(check: ValueCheck) -> bool:
    """Whether any text or file fits a schema, or it is a text's, which is checked as one."""
    return "string" in check.types.whole and not check.types.members
