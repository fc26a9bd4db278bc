import pytest
from hypothesis import given
from hypothesis import strategies as st
from proto_schema_parser import ast

from contracts.protobuf_text import InvalidText, UnreadText, parse, weight
from schemas.plain import one_line


def fields(text: str) -> list[tuple[str, int]]:
    (message,) = (e for e in parse(text).file_elements if isinstance(e, ast.Message))
    return [(e.name, e.number) for e in message.elements if isinstance(e, ast.Field)]


def test_comments_may_stand_anywhere() -> None:
    text = """// at the start
    message /* name */ M { // body
      int32 a = /* one
        line */ 1 [ // options
        deprecated = true ];
      string b = 2 [json_name = "no // comment /* here"]; /* end */
    } // the last line"""
    assert fields(text) == [("a", 1), ("b", 2)]


def test_the_weight_of_a_text_is_without_comments_and_blanks() -> None:
    assert weight("message M { // words\n\n  /* more\n words */ }") == len("messageM{}")
    assert weight('"// text"') == len('"//text"')


def test_lines_and_columns_are_those_of_the_text() -> None:
    with pytest.raises(InvalidText, match="Line 3, column 11: missing '=' at '1'"):
        parse("/* two\nlines */ message M {\n  int32 a 1;\n}")


def test_numbers_are_those_of_the_language() -> None:
    text = "message M { int32 a = 0x10; int32 b = 010; float c = 3 [default = 1.010]; }"
    assert fields(text) == [("a", 16), ("b", 8), ("c", 3)]


@pytest.mark.parametrize(
    ("text", "why"),
    [
        ("message M { foo", "Line 1, column 16: mismatched input '<EOF>'."),
        ("message M { string a = 'x; }", "token recognition error"),
        ("garbage", "Line 1, column 1: extraneous input 'garbage'"),
        ("message M { map<double, int32> a = 1; }", "Line 1, column 17: mismatched input"),
        ("message é {}", "token recognition error at: 'é'"),
        ("message M {" * 500 + "}" * 500, "It is nested too deeply."),
    ],
)
def test_texts_that_are_no_files(text: str, why: str) -> None:
    with pytest.raises(InvalidText) as refusal:
        parse(text)
    assert why in str(refusal.value)
    assert len(str(refusal.value)) < 300


@pytest.mark.parametrize(
    "text",
    [
        'edition = "2024";\nexport message M { reserved a, b; }',
        f"message M {{ int32 a = {'9' * 5000}; }}",
    ],
)
def test_texts_that_may_be_valid_are_unread(text: str) -> None:
    with pytest.raises(UnreadText):
        parse(text)


PIECES = st.sampled_from(
    ["message", "M", "{", "}", "int32", "a", "=", "1", ";", "[", "]", "enum", "oneof", "map", "<",
     ">", ",", "service", "rpc", "(", ")", "returns", "stream", "reserved", "to", "max", '"', "'",
     "//", "/*", "*/", "\n", "import", "option", "extend", "syntax", "-", "0x", "é", "\ud800"]
)  # fmt: skip


@given(st.lists(PIECES, max_size=25).map(" ".join) | st.text(max_size=30))
def test_any_text_is_parsed_or_refused(text: str) -> None:
    try:
        outcome: object = parse(text)
    except (InvalidText, UnreadText) as refusal:
        outcome = refusal
    assert isinstance(outcome, ast.File) or str(outcome) == one_line(outcome)
