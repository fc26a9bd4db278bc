"""How the messages of `.proto` files hold each other, and which way they go."""

from dataclasses import replace

from contracts.protobuf_model import ProtoField, ProtoMessage, ProtoMethod, ProtoSchema
from schemas.dialect import Direction

_WAYS: tuple[Direction, ...] = ("request", "response")


def directions(schema: ProtoSchema) -> dict[str, frozenset[Direction]]:
    """Which ways the messages of RPCs go, with those within them."""
    ways: dict[str, frozenset[Direction]] = {}
    for direction in _WAYS:
        waiting = [
            method.request if direction == "request" else method.response
            for method in schema.methods.values()
        ]
        while waiting:
            name = waiting.pop()
            known = ways.get(name, frozenset())
            if direction in known or name not in schema.messages:
                continue
            ways[name] = known | {direction}
            waiting += [field.type for field in schema.messages[name].fields.values()]
    return ways


def referred(schema: ProtoSchema) -> set[str]:
    """The messages that others hold, or RPCs send or answer."""
    fields = {
        field.type
        for name, message in schema.messages.items()
        for field in message.fields.values()
        if field.type != name
    }
    methods = schema.methods.values()
    return fields | {name for method in methods for name in (method.request, method.response)}


def repackaged(schema: ProtoSchema, old: str, new: str) -> ProtoSchema:
    """The schema as if its package had another name."""

    def moved(name: str) -> str:
        rest = name.removeprefix(f"{old}.") if old else name
        if old and rest == name:
            return name
        return f"{new}.{rest}" if new else rest

    def of_type(field: ProtoField) -> ProtoField:
        if field.type in schema.messages or field.type in schema.enums:
            return replace(field, type=moved(field.type))
        return field

    def of_message(message: ProtoMessage) -> ProtoMessage:
        fields = {number: of_type(field) for number, field in message.fields.items()}
        return replace(message, name=moved(message.name), fields=fields)

    def of_method(method: ProtoMethod) -> ProtoMethod:
        request, response = (
            moved(name) if name in schema.messages else name
            for name in (method.request, method.response)
        )
        return replace(method, name=moved(method.name), request=request, response=response)

    return replace(
        schema,
        messages={moved(name): of_message(message) for name, message in schema.messages.items()},
        enums={moved(name): replace(enum, name=moved(name)) for name, enum in schema.enums.items()},
        services={
            moved(name): frozenset(map(moved, methods)) for name, methods in schema.services.items()
        },
        methods={moved(name): of_method(method) for name, method in schema.methods.items()},
        features={moved(place): value for place, value in schema.features.items()},
    )
