import doctest

import pytest
from hypothesis import given
from hypothesis import strategies as st
from pydantic import TypeAdapter

from cli import pull_names
from cli.pull_lock import PulledPath
from cli.pull_names import content_path, slugs, source_texts, types_path

PATH: TypeAdapter[str] = TypeAdapter(PulledPath)
NAMES = st.text(min_size=1, max_size=200) | st.sampled_from(
    ["Get profile", "get PROFILE", "get-profile", "../x", "CON", "class", "2fa", "ﬁle", "ß", "🙂"]
)


def test_the_examples_hold() -> None:
    assert doctest.testmod(pull_names).failed == 0


@pytest.mark.parametrize(
    ("name", "slug"),
    [
        ("Get profile", "get-profile"),
        ("../../etc/passwd", "etc-passwd"),
        ("..\\..\\x\0y\n", "x-y"),
        ("Größe", "groe"),
        ("Écran", "ecran"),
        ("CON", "con-contract"),
        ("com1", "com1-contract"),
        ("日本", "contract"),
        ("x" * 200, "x" * 60),
    ],
)
def test_a_slug_is_a_name_on_every_system(name: str, slug: str) -> None:
    assert slugs({"01": name}) == {"01": slug}


@given(st.dictionaries(st.text(min_size=1, max_size=40), NAMES, max_size=12))
def test_each_contract_has_paths_of_its_own(names: dict[str, str]) -> None:
    named = slugs(names)
    paths = [content_path(slug) for slug in named.values()]
    paths += [types_path(slug, "python") for slug in named.values()]
    paths += [types_path(slug, "typescript") for slug in named.values()]
    assert len({path.casefold() for path in paths}) == 3 * len(names)
    for path in paths:
        assert PATH.validate_python(path) == path


@given(st.dictionaries(st.text(min_size=1, max_size=4), NAMES, min_size=1, max_size=8), NAMES)
def test_a_later_contract_renames_no_file(names: dict[str, str], name: str) -> None:
    before = slugs(names)
    after = slugs(names | {max(names) + "z": name})
    assert {id: after[id] for id in names} == before


def test_modules_are_importable() -> None:
    assert [types_path(slug, "python").rpartition("/")[2] for slug in ("class", "2fa", "a-b")] == [
        "class_.py",
        "_2fa.py",
        "a_b.py",
    ]


def test_sdl_and_proto_files_stand_beside() -> None:
    assert source_texts(
        "graphql", {"sdl": ["type Query { a: Int }", "type B { c: Int }"]}, "s"
    ) == {".cacp/contracts/s.graphql": "type Query { a: Int }\ntype B { c: Int }"}
    assert source_texts("protobuf", {"proto": "message A {}"}, "s") == {
        ".cacp/contracts/s.proto": "message A {}"
    }
    files = {
        "a/b.proto": "message A {}",
        "A/B.proto": "in other case",
        "a.proto": "message B {}",
        "a.proto/c.proto": "below a file",
        "../evil.proto": "outside",
        "/evil.proto": "outside",
        "x/../y.proto": "outside",
        "\ud800.proto": "half a character",
        "h.proto": "half a character: \ud800",
        ".git/hooks/x.proto": "hidden",
    }
    assert source_texts("protobuf", {"files": files}, "s") == {
        ".cacp/contracts/s/a/b.proto": "message A {}",
        ".cacp/contracts/s/a.proto": "message B {}",
    }
    assert source_texts("endpoint", {"sdl": "type Query { a: Int }"}, "s") == {}


@given(st.dictionaries(st.text(max_size=30).map("{}.proto".format), st.text(max_size=5)))
def test_proto_files_of_any_name(files: dict[str, str]) -> None:
    texts = source_texts("protobuf", {"files": files}, "x" * 60)
    for path in texts:
        assert PATH.validate_python(path) == path
    assert len({path.casefold() for path in texts}) == len(texts)
