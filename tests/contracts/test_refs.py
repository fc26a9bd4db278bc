from typing import Any

import pytest

from contracts.model import Located
from contracts.recognise import opaque
from contracts.refs import FILES, Resolver, Unresolved, below, files_of, resolve

DOCUMENT: dict[str, Any] = {
    "$id": "https://a.example/root.json",
    "$defs": {
        "A": {"type": "string", "$anchor": "first"},
        "to A": {"$ref": "#/$defs/A"},
        "a/b~c%": {"type": "integer"},
        "round": {"$ref": "#/$defs/trip"},
        "trip": {"$ref": "#/$defs/round"},
        "self": {"$ref": "#/$defs/self"},
        "both": {"$ref": "#/$defs/A", "minLength": 2},
        "to both": {"$ref": "#/$defs/both"},
        "old": {"$id": "#old", "type": "null"},
        "inner": {
            "$id": "sub/inner.json",
            "$defs": {"A": {"type": "boolean"}, "B": {"$ref": "#/$defs/A"}},
        },
        "list": {"prefixItems": [{"type": "string"}, {"type": "null"}]},
    },
    FILES: {
        "models/user.json": {"$ref": "parts/name.json#/Name"},
        "models/parts/name.json": {"Name": {"$ref": "#/Text"}, "Text": {"type": "string"}},
        "models/other.json": {"X": {"$ref": "../top.json"}},
        "./top.json": {"type": "integer"},
        "to root": {"$ref": "https://a.example/root.json#/$defs/A"},
    },
}
RESOLVER = Resolver(DOCUMENT, files_of(DOCUMENT))


def follow(ref: str, path: tuple[str | int, ...] = (), file: str = "") -> Located | Unresolved:
    return RESOLVER.resolve(Located({"$ref": ref}, path, file))


@pytest.mark.parametrize(
    ("ref", "path", "file"),
    [
        ("#/$defs/A", ("$defs", "A"), ""),
        ("#/$defs/to%20A", ("$defs", "A"), ""),
        ("#/$defs/a~1b~0c%25", ("$defs", "a/b~c%"), ""),
        ("#/$defs/list/prefixItems/1", ("$defs", "list", "prefixItems", 1), ""),
        ("#first", ("$defs", "A"), ""),
        ("#old", ("$defs", "old"), ""),
        ("#", (), ""),
        ("root.json", (), ""),
        ("https://a.example/root.json#/$defs/A", ("$defs", "A"), ""),
        ("sub/inner.json", ("$defs", "inner"), ""),
        ("sub/inner.json#/$defs/B", ("$defs", "inner", "$defs", "A"), ""),
        ("#/$defs/to both", ("$defs", "both"), ""),
        ("models/user.json", ("Text",), "models/parts/name.json"),
        ("./models/../top.json", (), "top.json"),
        ("models/other.json#/X", (), "top.json"),
        ("to%20root", ("$defs", "A"), ""),
    ],
)
def test_a_reference_leads_somewhere(ref: str, path: tuple[str | int, ...], file: str) -> None:
    target = follow(ref)
    assert isinstance(target, Located)
    assert (target.path, target.file) == (path, file)


@pytest.mark.parametrize(
    ("ref", "why"),
    [
        ("#/$defs/none", "leads to nothing"),
        ("#/$defs/list/prefixItems/2", "leads to nothing"),
        ("#/$defs/A/type/0", "leads to nothing"),
        ("#none", "No schema has the anchor"),
        ("#/$defs/round", "round in a circle"),
        ("#/$defs/self", "round in a circle"),
        ("http://b.example/x.json", "nothing is fetched"),
        ("http://[", "nothing is fetched"),
        ("other.json", "was not given along"),
    ],
)
def test_a_reference_that_leads_nowhere_says_why(ref: str, why: str) -> None:
    target = follow(ref)
    assert isinstance(target, Unresolved)
    assert why in target.why


def test_keywords_beside_a_reference_count_since_2019() -> None:
    at = Located({"$ref": "#/$defs/to both"}, ())
    older = Resolver(DOCUMENT, {}, siblings=False).resolve(at)
    assert isinstance(older, Located)
    assert older.path == ("$defs", "A")


def test_a_schema_without_a_reference_is_its_own_target() -> None:
    at = Located({"type": "string"}, ("x",))
    assert RESOLVER.resolve(at) is at
    assert RESOLVER.resolve(Located(True, ())) == Located(True, ())


def test_a_pointer_starts_at_the_nearest_identifier() -> None:
    target = follow("#/$defs/A", ("$defs", "inner", "$defs", "B"))
    assert isinstance(target, Located)
    assert target.schema == {"type": "boolean"}


def test_a_schema_of_an_interface_is_resolved_by_its_draft() -> None:
    interface = opaque(DOCUMENT)
    target = resolve(interface, Located({"$ref": "#/$defs/A"}, ()))
    assert target == Located(DOCUMENT["$defs"]["A"], ("$defs", "A"))
    assert resolve(interface, Located({"$ref": "#/$defs/self"}, ())) is None


def test_a_pointer_of_no_text_is_the_whole() -> None:
    root = Located({"": {"": 1}}, ("a",))
    assert below(root, "") == root
    assert below(root, "//") == Located(1, ("a", "", ""))


def test_files_have_their_normal_names() -> None:
    assert files_of({FILES: {"./a/../b.json": 1, "": 2}}) == {"b.json": 1}
    assert files_of({FILES: ["b.json"]}) == {}


def test_identifiers_in_values_are_none() -> None:
    document = {"default": {"$id": "https://a.example/x"}, "enum": [{"$anchor": "y"}]}
    resolver = Resolver(document, {})
    for ref in ("https://a.example/x", "#y"):
        assert isinstance(resolver.resolve(Located({"$ref": ref}, ())), Unresolved)
