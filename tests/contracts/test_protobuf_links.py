from contracts.protobuf import read_proto
from contracts.protobuf_links import directions, referred, repackaged
from contracts.protobuf_model import ProtoSchema

TEXT = """
syntax = "proto3";
package %s;
message Asked { Part part = 1; Shared shared = 2; }
message Answered { map<string, Shared> shared = 1; }
message Shared { Shared next = 1; E e = 2; }
message Part {}
message Alone { Alone next = 1; message Own {} }
enum E { A = 0; }
service S { rpc X(Asked) returns (Answered); }
"""


def schema_of(package: str) -> ProtoSchema:
    schema = read_proto({"proto": TEXT % package}).schema
    assert schema is not None
    return schema


def test_messages_go_the_way_of_those_that_hold_them() -> None:
    assert directions(schema_of("a")) == {
        "a.Asked": {"request"},
        "a.Part": {"request"},
        "a.Answered": {"response"},
        "a.Shared": {"request", "response"},
    }


def test_messages_that_something_refers_to() -> None:
    schema = schema_of("a")
    assert set(schema.messages) - referred(schema) == {"a.Alone", "a.Alone.Own"}


def test_a_schema_under_another_package() -> None:
    assert repackaged(schema_of("a.b"), "a.b", "c") == schema_of("c").__class__(
        **{
            name: getattr(schema_of("c"), name)
            for name in ("messages", "enums", "services", "methods", "features")
        },
        packages=frozenset(("a.b",)),
    )
    assert repackaged(schema_of("c"), "c", "a.b").messages == schema_of("a.b").messages
