"""Random GraphQL schemas, and queries that use all of one."""

from collections.abc import Iterator
from dataclasses import dataclass, field

from graphql import (
    GraphQLEnumType,
    GraphQLField,
    GraphQLInputObjectType,
    GraphQLInterfaceType,
    GraphQLNamedType,
    GraphQLObjectType,
    GraphQLSchema,
    GraphQLUnionType,
    get_named_type,
    is_required_argument,
    is_required_input_field,
)
from hypothesis import strategies as st

OUTPUTS = ("Int", "String", "E", "A", "B", "U", "N", "S")
INPUTS = ("Int", "String", "E", "F", "I", "S")
WRAPS = ("{}", "{}!", "[{}]", "[{}!]!")
DEPTH = 3


@st.composite
def arguments(draw: st.DrawFn) -> str:
    names = draw(st.lists(st.sampled_from("xyz"), max_size=2, unique=True))
    if not names:
        return ""
    return f"({' '.join(draw(inputs(name)) for name in names)})"


@st.composite
def inputs(draw: st.DrawFn, name: str) -> str:
    kind = draw(st.sampled_from(INPUTS))
    wrapped = draw(st.sampled_from(WRAPS)).format(kind)
    default = draw(st.sampled_from(("", "", " = 1", " = 2"))) if kind == "Int" else ""
    return f"{name}: {wrapped}{default if '[' not in wrapped else ''}"


@st.composite
def fields(draw: st.DrawFn, *needed: str) -> str:
    names = draw(st.lists(st.sampled_from("abcd"), min_size=1, max_size=3, unique=True))
    made = [
        f"{name}{draw(arguments())}: "
        f"{draw(st.sampled_from(WRAPS)).format(draw(st.sampled_from(OUTPUTS)))}"
        for name in names
    ]
    return f"{{ {' '.join([*needed, *made])} }}"


@st.composite
def schemas(draw: st.DrawFn) -> str:
    """A valid schema; two of them have much in common."""
    members = draw(st.lists(st.sampled_from(("A", "B", "C")), min_size=1, unique=True))
    nodes = draw(st.sets(st.sampled_from(("A", "B", "C"))))
    types = "\n".join(
        f"type {name}{' implements N' if name in nodes else ''} {draw(fields('id: ID'))}"
        for name in "ABC"
    )
    values = [draw(st.lists(st.sampled_from("KLM"), min_size=1, unique=True)) for _ in range(2)]
    names = draw(st.lists(st.sampled_from("pqr"), min_size=1, unique=True))
    is_one_of = draw(st.booleans())
    items = [
        f"{name}: Int" if is_one_of else draw(inputs(name)).replace("I!", "I") for name in names
    ]
    places = draw(st.lists(st.sampled_from(("FIELD", "QUERY", "OBJECT")), min_size=1, unique=True))
    return f"""
        directive @d{draw(arguments())} on {" | ".join(places)}
        scalar S
        interface N {{ id: ID }}
        enum E {{ {" ".join(values[0])} }}
        enum F {{ {" ".join(values[1])} }}
        input I {"@oneOf " if is_one_of else ""}{{ {" ".join(items)} }}
        union U = {" | ".join(members)}
        {types}
        type Query {draw(fields())}
    """


@st.composite
def schema_pairs(draw: st.DrawFn) -> tuple[str, str]:
    """Two schemas that differ in few of their definitions: each stands on a line of its own."""
    before, other = draw(schemas()).splitlines(), draw(schemas()).splitlines()
    taken = draw(st.sets(st.integers(1, len(before) - 1), min_size=1, max_size=3))
    after = [other[n] if n in taken else line for n, line in enumerate(before)]
    return "\n".join(before), "\n".join(after)


def query_of(schema: GraphQLSchema) -> str:
    """A query that asks for everything, some levels deep, and gives what must be given."""
    assert schema.query_type is not None
    return _Query(schema).text()


@dataclass
class _Query:
    schema: GraphQLSchema
    variables: list[str] = field(default_factory=list)
    aliases: int = 0

    def text(self) -> str:
        assert self.schema.query_type is not None
        selected = self.of_type(self.schema.query_type, DEPTH)
        variables = f"({', '.join(self.variables)})" if self.variables else ""
        return f"query{variables} {selected}"

    def of_type(self, kind: GraphQLNamedType, depth: int) -> str:
        if isinstance(kind, GraphQLUnionType):
            parts = ["__typename"]
            parts += [f"... on {one.name} {self.of_type(one, depth - 1)}" for one in kind.types]
            return f"{{ {' '.join(parts)} }}"
        if isinstance(kind, GraphQLObjectType | GraphQLInterfaceType):
            parts = ["__typename"]
            if depth > 0:
                for name, one in kind.fields.items():
                    parts += self.of_field(name, one, depth)
            return f"{{ {' '.join(parts)} }}"
        return ""

    def of_field(self, name: str, one: GraphQLField, depth: int) -> Iterator[str]:
        """A field with what it needs, and with each other argument and value alone."""
        needed = {n: str(a.type) for n, a in one.args.items() if is_required_argument(a)}
        others = {n: str(a.type) for n, a in one.args.items() if not is_required_argument(a)}
        for given in [{}, *({n: kind} for n, kind in others.items())]:
            yield self.call(name, one, needed | given, depth)
        for argument_name, argument in one.args.items():
            kind = get_named_type(argument.type)
            if str(argument.type).strip("!") != kind.name:
                continue
            for literal in literals(kind):
                rest = {n: k for n, k in needed.items() if n != argument_name}
                yield self.call(name, one, rest, depth, f"{argument_name}: {literal}")

    def call(
        self, name: str, one: GraphQLField, given: dict[str, str], depth: int, literal: str = ""
    ) -> str:
        self.aliases += 1
        passed = [literal] if literal else []
        for argument, kind in given.items():
            variable = f"$v{len(self.variables)}"
            self.variables.append(f"{variable}: {kind}")
            passed.append(f"{argument}: {variable}")
        called = f"({', '.join(passed)})" if passed else ""
        selected = self.of_type(get_named_type(one.type), depth - 1)
        return f"r{self.aliases}: {name}{called} {selected}"


def literals(kind: GraphQLNamedType) -> Iterator[str]:
    if isinstance(kind, GraphQLEnumType):
        yield from kind.values
    if isinstance(kind, GraphQLInputObjectType):
        simple = {
            name: "1" for name, one in kind.fields.items() if get_named_type(one.type).name == "Int"
        }
        needed = {name for name, one in kind.fields.items() if is_required_input_field(one)}
        if needed <= simple.keys() and not any("[" in str(kind.fields[n].type) for n in simple):
            for name in simple:
                chosen = {name} if kind.is_one_of else needed | {name}
                yield f"{{ {', '.join(f'{n}: 1' for n in sorted(chosen))} }}"
