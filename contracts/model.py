"""The inner form of a contract: operations, each with what is sent and what is answered (N2).

Every dialect is reduced to it. Schemas in it are JSON Schemas as the dialect writes them, with the
place that they stand at; `contracts.schema_reader` knows the drafts.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Literal

from schemas.dialect import DialectName

Path = tuple[str | int, ...]
"""Where something stands in a content: names of members and numbers of elements."""

Draft = Literal["2020-12", "draft-07", "openapi-3.0"]
"""How the schemas of an interface are to be read. OpenAPI 3.1 has those of 2020-12."""
Side = Literal["provider", "consumer"]
"""Who serves and emits, and who calls and reads."""
ParameterPlace = Literal["path", "query", "header", "cookie"]


@dataclass(frozen=True, slots=True)
class Located:
    """A schema, and where it stands.

    `file` is the name of the file given along that holds it, empty for the content itself. A `$ref`
    in it is resolved against that file.
    """

    schema: Any
    path: Path
    file: str = ""


@dataclass(frozen=True, slots=True)
class Parameter:
    """A parameter of a request, or a header of a response (then `place` is header)."""

    name: str
    place: ParameterPlace
    required: bool
    schema: Located
    path: Path
    style: str | None = None
    """How it is serialised (OpenAPI's `style` and `explode`); None by the default of its place."""


@dataclass(frozen=True, slots=True)
class Part:
    """What one side sends the other: parameters or headers, and a body by media type.

    `bodies` is empty where there is none. Dialects without media types have `application/json`.
    """

    path: Path
    parameters: tuple[Parameter, ...] = ()
    bodies: Mapping[str, Located] = field(default_factory=dict)
    body_required: bool = False


@dataclass(frozen=True, slots=True)
class Operation:
    """An endpoint, an event or a model.

    `key` is the same in two versions of it. An HTTP operation has a method (upper case) and a route
    (`/users/{id}`); its key is the method and the route with unnamed placeholders. An event or a
    model that the provider emits has its schema as the body of the response `message`; one that the
    consumer sends has it as the body of `request`.

    `caller` sends the request: the consumer, but for webhooks and callbacks.

    `security` lists the alternatives, each a mapping of a scheme's name to its scopes; None if
    nothing is said of it, which is not the same as an empty list.
    """

    key: str
    kind: Literal["http", "event", "model"]
    path: Path
    request: Part
    responses: Mapping[str, Part]
    method: str = ""
    route: str = ""
    caller: Side = "consumer"
    security: tuple[Mapping[str, frozenset[str]], ...] | None = None


@dataclass(frozen=True, slots=True)
class DocumentProblem:
    """What is wrong with a document of a dialect: `why` says what would be right."""

    path: Path
    why: str


@dataclass(frozen=True, slots=True)
class Interface:
    """A contract's content in the inner form.

    `document` is the content, `files` are those given along, by name; `$ref`s point into them.
    `problems` make it an invalid document of its dialect; `warnings` don't.

    A value that should be a schema and can't be read as one stands in the schemas as it is: a value
    that is neither an object nor a boolean. What a change of it means is unknown.
    """

    dialect: DialectName
    draft: Draft
    operations: tuple[Operation, ...]
    document: Mapping[str, Any]
    files: Mapping[str, Any] = field(default_factory=dict)
    problems: tuple[DocumentProblem, ...] = ()
    warnings: tuple[DocumentProblem, ...] = ()
    schemes: Mapping[str, Any] = field(default_factory=dict)
    """Definitions of the security schemes that operations name."""
    servers: tuple[str, ...] = ()
    """Paths that stand before every route, from OpenAPI's `servers`; the first is the default."""
    unread: tuple[Located, ...] = ()
    """What the content says beyond the operations and is not only words for readers: what a change
    of it means is unknown. Of opaque content that is all of it."""
