"""A field of GraphQL's Query or Mutation as it is tried over HTTP."""

import json
from collections.abc import Iterator
from typing import TYPE_CHECKING, Any, Literal

from proof.cases import Unmakeable
from proof.exchange import RuleBreach
from proof.graphql_http import (
    TOKENS_MAX,
    answered,
    data_breaches,
    graphql_request,
    validation_problem,
)
from proof.messages import Headers, WireAnswer, WireRequest
from proof.plain_values import drawn_values
from proof.probe_subject import Spoiled
from proof.strategies import NoSuchValue

if TYPE_CHECKING:
    from graphql import GraphQLSchema
    from hypothesis.strategies import SearchStrategy

Root = Literal["query", "mutation"]


def root_fields(schema: "GraphQLSchema") -> Iterator[tuple[Root, str]]:
    """What can be asked of a service: mutations first, which make things."""
    if schema.mutation_type is not None:
        yield from (("mutation", name) for name in schema.mutation_type.fields)
    if schema.query_type is not None:
        yield from (("query", name) for name in schema.query_type.fields)


class GraphqlSubject:
    """Tries one root field at a path. Raises `Unmakeable`."""

    promises_success = True
    may_need_credentials = False
    excused: frozenset[int] = frozenset()

    def __init__(self, schema: "GraphQLSchema", root: Root, name: str, path: str) -> None:
        self._schema, self._root, self._name, self._path = schema, root, name, path
        self._texts = self._drawn(negative=False)

    @property
    def key(self) -> str:
        return f"{self._root} {self._name}"

    def plain(self) -> WireRequest | None:
        return None

    def valid(self) -> "SearchStrategy[WireRequest]":
        return self._texts.map(self._request)

    def edges(self) -> list[WireRequest]:
        return []

    def broken(self) -> list[Spoiled]:
        return []

    def unbroken(self) -> list[str]:
        return []

    def without_credentials(self, sent: Headers) -> Headers | None:
        return None

    def invalid(self) -> "SearchStrategy[Spoiled] | None":
        from hypothesis.errors import InvalidArgument

        wrong = self._drawn(negative=True)
        try:
            # Only to draw one tells that there is nothing to be wrong with, such as an argument.
            drawn_values(wrong, 0, 1)
        except InvalidArgument:
            return None
        except NoSuchValue:
            pass
        return wrong.map(self._spoiled)

    def is_success(self, answer: WireAnswer) -> bool:
        given = answered(answer)
        if isinstance(given, RuleBreach):
            return False
        return "errors" not in given and given.get("data") is not None

    def unread(self) -> list[str]:
        return []

    def may_be_busy(self, answer: WireAnswer) -> bool:
        return answer.status < 500

    def learn(self, answer: WireAnswer) -> None:
        pass

    def breaches(self, request: WireRequest, answer: WireAnswer) -> list[RuleBreach]:
        from graphql import parse

        if answer.status >= 500:
            return [RuleBreach("server_error", "status", f"It is {answer.status}.")]
        given = answered(answer)
        if isinstance(given, RuleBreach):
            return [given]
        if answer.status >= 400:
            why = f"It is {answer.status} for a valid request: {_first_error(given)}"
            return [RuleBreach("refuses_valid", "status", why)]
        if given.get("data") is None and "errors" in given:
            return []
        text = json.loads(request.body or b"")["query"]
        return data_breaches(
            self._schema, parse(text, max_lexical_tokens=TOKENS_MAX), given["data"]
        )

    def refusal_breaches(self, spoiled: Spoiled, answer: WireAnswer) -> list[RuleBreach]:
        if answer.status >= 500:
            why = f"It is {answer.status}, as the request is wrong: {spoiled.wrong.why}"
            return [RuleBreach("server_error", "status", why)]
        if answer.status >= 400:
            return []
        given = answered(answer)
        if isinstance(given, RuleBreach):
            return [given]
        if "errors" in given and given.get("data") is None:
            return []
        why = f"It is answered with data, but wrong: {spoiled.wrong.why}"
        return [RuleBreach("accepts_invalid", "body/data", why)]

    def _request(self, text: str) -> WireRequest:
        return graphql_request(self._path, text)

    def _spoiled(self, text: str) -> Spoiled:
        why = validation_problem(self._schema, text) or "It is no valid request."
        return Spoiled(self._request(text), RuleBreach("request", "query", why))

    def _drawn(self, *, negative: bool) -> "SearchStrategy[str]":
        from hypothesis.errors import InvalidArgument
        from hypothesis_graphql import Mode, mutations, queries

        of_root = queries if self._root == "query" else mutations
        try:
            drawn: SearchStrategy[Any] = of_root(
                self._schema,
                fields=[self._name],
                custom_scalars=_custom_scalars(self._schema),
                print_ast=_with_type_names,
                mode=Mode.NEGATIVE if negative else Mode.POSITIVE,
            )
        except (InvalidArgument, TypeError) as error:
            raise Unmakeable(f"requests to it can't be made: {error}") from None
        if negative:
            return drawn.filter(lambda text: validation_problem(self._schema, text) is not None)
        return drawn


def _with_type_names(document: Any) -> str:
    """The text of a request that asks for the type of each object, by which its answer is read."""
    from graphql import FieldNode, NameNode, SelectionSetNode, Visitor, print_ast, visit

    asked = FieldNode(name=NameNode(value="__typename"), arguments=(), directives=())

    class Adding(Visitor):
        def leave_selection_set(self, node: Any, *_: Any) -> Any:
            named = any(getattr(part, "name", None) and part.name.value == "__typename"
                        for part in node.selections)  # fmt: skip
            return node if named else SelectionSetNode(selections=(*node.selections, asked))

    return print_ast(visit(document, Adding()))


def _custom_scalars(schema: "GraphQLSchema") -> dict[str, Any]:
    """Values of scalars of which only the name is known: a time for one that is named like one,
    else a text."""
    from graphql import is_scalar_type, is_specified_scalar_type
    from hypothesis import strategies as st
    from hypothesis_graphql import nodes

    known = {"datetime": "2026-01-15T10:30:00Z", "date": "2026-01-15", "time": "10:30:00Z"}
    return {
        name: st.just(nodes.String(known.get(name.lower(), "text")))
        for name, kind in schema.type_map.items()
        if is_scalar_type(kind) and not is_specified_scalar_type(kind)
    }


def _first_error(given: Any) -> str:
    errors = given.get("errors") or [{}]
    first = errors[0]
    return str(first.get("message", "")) if isinstance(first, dict) else ""
