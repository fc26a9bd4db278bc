import pytest

from contracts.protobuf import read_proto
from contracts.protobuf_model import ProtoField, ProtoSchema
from contracts.protobuf_reader import NOTES_MAX


def schema_of(text: str) -> ProtoSchema:
    proto = read_proto({"proto": text})
    assert proto.problems == ()
    assert proto.schema is not None
    return proto.schema


def problems(text: str) -> list[str]:
    return [problem.why for problem in read_proto({"proto": text}).problems]


def fields(text: str, message: str = "M") -> dict[str, ProtoField]:
    read = schema_of(text).messages[message].fields
    return {field.name: field for field in read.values()}


WHOLE = """
syntax = "proto3";
package shop.v1;
message Order {
  reserved 2 to 4, 6, 7;
  reserved "old";
  string order_id = 1;
  optional int32 count = 5;
  repeated Item items = 8;
  map<string, .shop.v1.State> states = 9;
  oneof paid { Item by_item = 10; string by_card = 11 [json_name = "card"]; }
  message Item { State state = 1; Item next = 2; }
}
enum State { option allow_alias = true; NEW = 0; OPEN = 0; DONE = 1;
  reserved -3 to -1, 9 to max; }
service Orders {
  rpc Watch(stream Order.Item) returns (stream Order) {
    option idempotency_level = NO_SIDE_EFFECTS;
  }
}
"""


def test_a_whole_file() -> None:
    schema = schema_of(WHOLE)
    order = schema.messages["shop.v1.Order"]
    assert set(schema.messages) == {"shop.v1.Order", "shop.v1.Order.Item"}
    assert order.reserved == ((2, 4), (6, 7))
    assert order.reserved_names == {"old"}
    assert order.oneof("paid") == {10, 11}
    assert [order.fields[n] for n in (1, 5, 8, 9, 11)] == [
        ProtoField(1, "order_id", "scalar", "string", "implicit", "orderId"),
        ProtoField(5, "count", "scalar", "int32", "optional", "count"),
        ProtoField(8, "items", "message", "shop.v1.Order.Item", "repeated", "items"),
        ProtoField(9, "states", "map", "shop.v1.State", "map", "states", key="string"),
        ProtoField(11, "by_card", "scalar", "string", "optional", "card", oneof="paid"),
    ]
    state = schema.enums["shop.v1.State"]
    assert state.values == {0: {"NEW", "OPEN"}, 1: {"DONE"}}
    assert state.reserved == ((-3, -1), (9, 2**31 - 1))
    watch = schema.methods["shop.v1.Orders.Watch"]
    assert (watch.request, watch.response) == ("shop.v1.Order.Item", "shop.v1.Order")
    assert watch.client_streams
    assert watch.server_streams
    assert watch.idempotency == "NO_SIDE_EFFECTS"


def test_types_are_looked_for_from_the_inside_out() -> None:
    text = """package a.b; message T {} message M {
      optional T t = 1; optional b.T u = 2; optional .a.b.T v = 3; optional M.T w = 4;
      message T {} }"""
    assert {name: field.type for name, field in fields(text, "a.b.M").items()} == {
        "t": "a.b.M.T",
        "u": "a.b.T",
        "v": "a.b.T",
        "w": "a.b.M.T",
    }


def test_proto2() -> None:
    text = """message M { required int32 a = 1; optional bool b = 2 [default = true];
      optional group Part = 3 { optional int32 x = 1; } extensions 10 to max; }
      extend M { optional int32 e = 10; }"""
    schema = schema_of(text)
    listed = fields(text)
    assert (listed["a"].label, listed["b"].default) == ("required", "true")
    assert (listed["part"].kind, listed["part"].type) == ("group", "M.Part")
    assert schema.messages["extend M"].fields[10].name == "e"


@pytest.mark.parametrize(
    ("option", "label"),
    [
        ("", "optional"),
        ("[features.field_presence = IMPLICIT]", "implicit"),
        ("[features.field_presence = LEGACY_REQUIRED]", "required"),
    ],
)
def test_editions_tell_presence_by_options(option: str, label: str) -> None:
    assert fields(f'edition = "2023"; message M {{ int32 a = 1 {option}; }}')["a"].label == label


def test_a_default_value_like_none_is_none() -> None:
    defaults = {
        "int32": "0", "string": '""', "bool": "false", "double": "0.0", "bytes": "''",
    }  # fmt: skip
    for kind, default in defaults.items():
        read = fields(f"message M {{ optional {kind} a = 1 [default = {default}]; }}")
        assert read["a"].default == ""


@pytest.mark.parametrize(
    ("text", "why"),
    [
        ('syntax = "proto4";', 'syntax: it is "proto2" or "proto3".'),
        ("message M {} message M {}", "M: it is defined twice."),
        ("message M {} enum M { A = 0; }", "M: it is defined twice."),
        ("enum E { A = 0; } enum F { A = 0; }", "A: it is defined twice."),
        ("message M { optional X x = 1; }", "M.x: the type X is not defined."),
        ("message M { int32 a = 1; }", "M.a: in proto2 a field is optional, required or"),
        ("message M { optional int32 a = 0; }", "M.a: 0 is no number of a field"),
        ("message M { optional int32 a = 19000; }", "M.a: 19000 is no number of a field"),
        ("message M { optional int32 a = 536870912; }", "is no number of a field: 1 to 536870911"),
        (
            "message M { optional int32 a = 1; optional int32 b = 1; }",
            "M.b: another field has the number 1.",
        ),
        (
            "message M { optional int32 a = 1; optional int32 a = 2; }",
            "M.a: another field has this name.",
        ),
        ("message M { optional int32 a = 3; reserved 2 to 4; }", "the number 3 is reserved."),
        ('message M { optional int32 a = 1; reserved "a"; }', "M.a: the name is reserved."),
        ("message M { reserved 2 to 4, 4; }", "M: a number is reserved twice."),
        ("message M { reserved 4 to 2; }", "M: a reserved range ends before it begins."),
        ('message M { reserved "a", "a"; }', "M: a name is reserved twice."),
        (
            "enum E { A = 1; } message M { map<string, E> a = 1; }",
            "M.a: the first value of E must have the number 0 for a map.",
        ),
        ("message M { optional int32 a = 1 [default = 'x']; }", "M.a: x is no value of int32."),
        ("message M { optional int32 a = 1 [default = 1.5]; }", "1.5 is no value of int32."),
        ("message M { optional bool a = 1 [default = 1]; }", "M.a: 1 is no value of bool."),
        ("message M { optional string a = 1 [default = 1]; }", "M.a: 1 is no value of string."),
        ("enum E {}", "E: an enum has at least one value."),
        ("enum E { A = 0; B = 0; }", "E: two values have the number 0."),
        ("enum E { A = 0; reserved 0; }", "E: A or its number is reserved."),
        ('enum E { A = 0; reserved "A"; }', "E: A or its number is reserved."),
        ("enum E { A = 0; } service S { rpc X(E) returns (E); }", "S.X: E is no message."),
        ('syntax = "proto3"; enum E { A = 1; }', "E: the first value of an enum has the number 0."),
        ('syntax = "proto3"; message M { required int32 a = 1; }', "only proto2 has required"),
        (
            'syntax = "proto3"; message M { int32 a = 1 [default = 2]; }',
            "M.a: proto3 has no default values.",
        ),
        (
            'syntax = "proto3"; message M { int32 a_b = 1; int32 aB = 2; }',
            'M.aB: another field is "aB" in JSON.',
        ),
    ],
)
def test_rules_of_the_language(text: str, why: str) -> None:
    assert why in problems(text)[0]
    assert read_proto({"proto": text}).schema is None


def test_files_that_are_not_given_along() -> None:
    proto = read_proto(
        {"proto": 'syntax = "proto3"; import "x.proto"; message M { x.T a = 1; Y b = 2; }'}
    )
    assert proto.problems == ()
    assert [w.why for w in proto.warnings] == [
        '"x.proto" is not given along: its types are compared by their names only.'
    ]
    assert proto.schema is not None
    assert {field.kind for field in proto.schema.messages["M"].fields.values()} == {"foreign"}


def test_well_known_files_need_not_be_given_along() -> None:
    file = 'import "google/protobuf/any.proto"; message M { optional google.protobuf.Any a = 1; }'
    proto = read_proto({"proto": file})
    assert (proto.problems, proto.warnings) == ((), ())


def test_what_is_not_read_is_a_warning() -> None:
    proto = read_proto({"proto": 'edition = "2024"; export message M {}'})
    assert proto.schema is None
    assert proto.problems == ()
    assert "not judged" in proto.warnings[0].why


def test_of_many_problems_the_first_are_told() -> None:
    text = "message M {" + "".join(f"optional X a{n} = {n + 1};" for n in range(500)) + "}"
    assert len(problems(text)) == NOTES_MAX


def test_the_longest_numbers_are_out_of_range() -> None:
    assert problems(f"message M {{ reserved 1 to {'9' * 4000}; }}") == []
    assert problems(f"enum E {{ A = 0; reserved {'9' * 4000} to 5; }}") != []
