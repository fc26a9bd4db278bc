"""GraphQL: contents that carry a schema in the schema definition language (SDL).

`{"graphql": "type Query { me: User } type User { id: ID! }"}`, or the same in `sdl`, `typeDefs` or
`schema`, as one text or a list of them. graphql-core reads and checks it. Its work is bounded: by
the length of a text, by its tokens, and by what interfaces ask of the types that implement them.
"""

import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, NamedTuple, NoReturn

from contracts.model import DocumentProblem, Interface, Located, Path
from contracts.openapi_parts import unread_members
from contracts.reading import BESIDE
from contracts.refs import files_of
from schemas.plain import one_line

if TYPE_CHECKING:
    from graphql import DefinitionNode, DocumentNode, GraphQLError, GraphQLSchema

MEMBERS = ("graphql", "sdl", "typeDefs", "schema")
SOURCE_MAX = 2_000_000
"""Characters of a schema, at most; a longer one is not read."""
TOKENS_MAX = 150_000
INTERFACE_STEPS_MAX = 50_000_000
"""Comparisons that checking the implemented interfaces may take."""
DEFAULT_STEPS_MAX = 5_000_000
"""Fields that checking the default values of input types may look at."""
PROBLEMS_MAX = 100
WHY_MAX = 300

_NO_QUERY = "Query root type must be provided."
_TOO_MANY_TOKENS = "Syntax Error: Document contains more than "
_KEYWORD = re.compile(
    r"(?:^|\")[ \t]*(?:extend[ \t]+)?"
    r"(?:schema[ \t]*[@{]|(?:type|interface|union|enum|input|scalar|directive)[ \t]+[@_A-Za-z])",
    re.MULTILINE,
)


class SdlText(NamedTuple):
    """The member of a content that holds a schema, and its text."""

    member: str
    text: str


@dataclass(frozen=True, slots=True)
class Sdl:
    """A schema as it was read. `schema` is None if it is invalid (`problems` say why) or too large
    to be read (`warnings` say so)."""

    path: Path
    text: str
    schema: "GraphQLSchema | None"
    problems: tuple[DocumentProblem, ...] = ()
    warnings: tuple[DocumentProblem, ...] = ()


class _Enough(Exception):
    """As many problems as are listed, or one that ends the reading."""


class _TooLarge(Exception):
    """A schema beyond the bounds; the text says which."""


def sdl_texts(content: Mapping[str, Any]) -> list[SdlText]:
    """The members of a content that may hold a schema; those that look like one come first."""
    texts = []
    for member in MEMBERS:
        value = content.get(member)
        if isinstance(value, list) and value and all(isinstance(text, str) for text in value):
            value = "\n".join(value)
        if isinstance(value, str):
            texts.append(SdlText(member, value))
    return sorted(texts, key=lambda text: _KEYWORD.search(text.text) is None)


def is_graphql(content: Mapping[str, Any]) -> bool:
    """Whether a content that doesn't say so is GraphQL. `schema` has other uses, so it counts only
    if its text is a valid schema."""
    texts = sdl_texts(content)
    if not texts or not _KEYWORD.search(texts[0].text):
        return False
    return texts[0].member != "schema" or not read_sdl(content).problems


def read_graphql(content: Mapping[str, Any], contract_type: str | None) -> Interface:
    """A content of the dialect GraphQL. It has no operations in the inner form: `graphql_changes`
    compares the schemas themselves. What else it says is unread, and so is a schema that can't be
    read."""
    sdl = read_sdl(content)
    root = Located(content, ())
    known = BESIDE if sdl.schema is None else BESIDE.union(map(str, sdl.path))
    unread = tuple(unread_members(root, known))
    return Interface(
        "graphql", "2020-12", (), content, files_of(content), sdl.problems, sdl.warnings,
        unread=unread,
    )  # fmt: skip


def read_sdl(content: Mapping[str, Any]) -> Sdl:
    """The schema that a content carries. Never raises."""
    texts = sdl_texts(content)
    if not texts:
        why = (
            'A schema in the definition language was expected in "graphql": '
            '{"graphql": "type Query { me: User } ..."}.'
        )
        return Sdl((), "", None, (DocumentProblem((), why),))
    reading = _Reading((texts[0].member,))
    reading.note_choice(texts)
    schema = None
    try:
        schema = reading.schema(texts[0].text)
    except _Enough:
        pass
    except _TooLarge as large:
        reading.warn(f"The schema is not read, and its changes are not judged: {large}")
    except RecursionError:
        reading.problems.append("The schema is nested too deeply to be read.")
    return Sdl(
        reading.path,
        texts[0].text,
        None if reading.problems else schema,
        tuple(DocumentProblem(reading.path, why) for why in reading.problems),
        tuple(DocumentProblem(reading.path, why) for why in reading.warnings),
    )


class _Reading:
    """One schema while it is read: what is wrong with it."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self.problems: list[str] = []
        self.warnings: list[str] = []

    def wrong(self, why: str) -> None:
        """Note a problem. Raises `_Enough` at the last one that is listed."""
        self.problems.append(why)
        if len(self.problems) >= PROBLEMS_MAX:
            self.problems.append("There may be more; they are not listed.")
            raise _Enough

    def warn(self, why: str) -> None:
        if len(self.warnings) < PROBLEMS_MAX:
            self.warnings.append(why)

    def note_choice(self, texts: list[SdlText]) -> None:
        taken, *others = texts
        if others:
            names = ", ".join(f'"{other.member}"' for other in others)
            self.warn(f'The schema is read from "{taken.member}"; {names} is not judged.')
        elif taken.member != "graphql":
            self.warn(f'The schema is read from "{taken.member}".')

    def schema(self, text: str) -> "GraphQLSchema":
        """Raises `_Enough` if it is invalid, `_TooLarge` if it is too large to be read."""
        from graphql import GraphQLError, build_ast_schema

        document = self._definitions(self._parsed(text))
        _check_interfaces(document)
        _check_defaults(document, text)
        self._validate(document)
        if self.problems:
            raise _Enough
        try:
            schema = build_ast_schema(document, assume_valid_sdl=True)
        except GraphQLError as error:
            self._refuse(_said(error))
        except (TypeError, ValueError) as error:
            self._refuse(one_line(error, WHY_MAX))
        self._validate_schema(schema)
        return schema

    def _refuse(self, why: str) -> NoReturn:
        self.problems.append(why)
        raise _Enough

    def _parsed(self, text: str) -> "DocumentNode":
        from graphql import GraphQLSyntaxError, parse

        if len(text) > SOURCE_MAX:
            raise _TooLarge(f"it has {len(text)} characters, more than {SOURCE_MAX}.")
        try:
            return parse(text, max_lexical_tokens=TOKENS_MAX)
        except GraphQLSyntaxError as error:
            if error.message.startswith(_TOO_MANY_TOKENS):
                raise _TooLarge(f"it has more than {TOKENS_MAX} tokens.") from None
            self._refuse(_said(error))

    def _definitions(self, document: "DocumentNode") -> "DocumentNode":
        """The schema's own definitions. An extension of a type that is not defined here defines it:
        a contract may be about a part of a schema."""
        from graphql import (
            DocumentNode,
            ExecutableDefinitionNode,
            TypeDefinitionNode,
            TypeExtensionNode,
        )

        names = {n.name.value for n in document.definitions if isinstance(n, TypeDefinitionNode)}
        kept: list[DefinitionNode] = []
        for node in document.definitions:
            if isinstance(node, ExecutableDefinitionNode):
                continue
            if isinstance(node, TypeExtensionNode) and (name := node.name.value) not in names:
                names.add(name)
                node = _definition_of(node)
                self.warn(f"{name} is extended but not defined here: only the extension is judged.")
            kept.append(node)
        if not kept:
            self._refuse("The text defines no type of a schema.")
        if others := len(document.definitions) - len(kept):
            self.warn(f"{others} operations or fragments are no part of the schema: not judged.")
        return DocumentNode(definitions=tuple(kept), loc=document.loc)

    def _validate(self, document: "DocumentNode") -> None:
        """Apply the rules for documents in the definition language."""
        from graphql import GraphQLError, visit
        from graphql.language.visitor import ParallelVisitor
        from graphql.validation import KnownDirectivesRule, SDLValidationContext
        from graphql.validation.specified_rules import specified_sdl_rules

        undeclared: dict[str, None] = {}

        class DocumentContext(SDLValidationContext):
            # To look for similar names takes minutes where thousands of names are unknown.
            hide_suggestions = property(lambda self: True)

        class DirectivesRule(KnownDirectivesRule):
            def enter_directive(self, node: Any, *place: Any) -> None:
                if node.name.value in self.locations_map:
                    super().enter_directive(node, *place)
                else:
                    undeclared[node.name.value] = None

        def take(error: GraphQLError) -> None:
            self.wrong(_said(error))

        context = DocumentContext(document, None, take)
        rules = [DirectivesRule(context)] + [
            rule(context) for rule in specified_sdl_rules if rule is not KnownDirectivesRule
        ]
        visit(document, ParallelVisitor(rules))
        for name in undeclared:
            # It may be a gateway's or a framework's.
            self.warn(f"The directive @{name} is not defined here: what it means is not judged.")

    def _validate_schema(self, schema: "GraphQLSchema") -> None:
        """Apply the rules for schemas. One without queries is one: it is about a part."""
        from graphql import GraphQLError
        from graphql.type.validate import SchemaValidationContext

        wrong = self.wrong

        class SchemaContext(SchemaValidationContext):
            def report_error(self, message: str, nodes: Any = None) -> None:
                if message != _NO_QUERY:
                    # An error finds the line of each of its nodes: the first one is enough.
                    listed = nodes if isinstance(nodes, Iterable) else [nodes]
                    wrong(_said(GraphQLError(message, [node for node in listed if node][:1])))

        context = SchemaContext(schema)
        context.validate_root_types()
        context.validate_directives()
        context.validate_types()


def _said(error: "GraphQLError") -> str:
    """What is wrong and where, in one line."""
    message = one_line(error.message.removeprefix("Syntax Error: "), WHY_MAX)
    places = error.locations
    return f"Line {places[0].line}, column {places[0].column}: {message}" if places else message


def _definition_of(node: Any) -> "DefinitionNode":
    from graphql.language import ast

    kind = getattr(ast, type(node).__name__.replace("Extension", "Definition"))
    definition: DefinitionNode = kind(**{key: getattr(node, key) for key in node.keys})
    return definition


def _check_interfaces(document: "DocumentNode") -> None:
    """Raises `_TooLarge` if to check what types implement takes too long: that grows with the
    fourth power of the interfaces that implement each other."""
    sizes: dict[str, int] = {}
    implemented: dict[str, list[str]] = {}
    for node in document.definitions:
        if name := getattr(node, "name", None):
            fields = getattr(node, "fields", None) or ()
            size = sum(1 + len(getattr(field, "arguments", None) or ()) for field in fields)
            sizes[name.value] = sizes.get(name.value, 0) + size
            names = [interface.name.value for interface in getattr(node, "interfaces", None) or ()]
            implemented.setdefault(name.value, []).extend(names)
    steps = sum(
        sizes.get(name, 0) + len(implemented.get(name, ())) * len(names)
        for names in implemented.values()
        for name in names
    )
    if steps > INTERFACE_STEPS_MAX:
        raise _TooLarge("its types implement too many interfaces.")


def _check_defaults(document: "DocumentNode", text: str) -> None:
    """Raises `_TooLarge` if to check default values takes too long: each object in them is held
    against each field of its type."""
    from graphql import InputObjectTypeDefinitionNode

    definitions = document.definitions
    inputs = [node for node in definitions if isinstance(node, InputObjectTypeDefinitionNode)]
    most = max((len(node.fields or ()) for node in inputs), default=0)
    if most * (text.count("{") - len(definitions)) > DEFAULT_STEPS_MAX:
        raise _TooLarge("its default values hold too many objects.")
