import pytest

from contracts.changes import ContractChange
from contracts.compare import compare
from contracts.protobuf_changes import protobuf_changes
from contracts.recognise import read
from tests.contracts.protobuf_cases import CASES, DIFFERENT, ProtoCase, RandomFiles

EFFECTS = {"breaking": "b", "compatible": "c", "unknown": "u"}
NAMES = [case.name for case in CASES]


def changes(before: str, after: str) -> list[ContractChange]:
    return protobuf_changes(read({"proto": before}), read({"proto": after}))


@pytest.mark.parametrize("case", CASES, ids=NAMES)
def test_rules(case: ProtoCase) -> None:
    listed = changes(*case.files())
    effects = {c.rule: EFFECTS[c.consumer] + EFFECTS[c.provider] for c in listed}
    assert effects == case.changes
    assert all(change.path and change.why for change in listed)


@pytest.mark.parametrize("case", CASES, ids=NAMES)
def test_what_breaks_consumers_is_what_buf_refuses(case: ProtoCase) -> None:
    breaks = any(effects[0] == "b" for effects in case.changes.values())
    assert (breaks != bool(case.buf)) == (case.name in DIFFERENT)


@pytest.mark.parametrize("case", CASES, ids=NAMES)
def test_files_are_compatible_with_themselves(case: ProtoCase) -> None:
    for text in case.files():
        assert changes(text, f"// Other words.\n{text}") == []


SERVICE = 'syntax = "proto3"; package a.b; message Q { P p = 1; } message P { int32 n = 1; }'
SERVED = SERVICE + " message R {} service S { rpc X(Q) returns (R); }"


def test_places_sides_and_values() -> None:
    (change,) = changes(SERVED, SERVED.replace("int32 n", "repeated int32 n"))
    assert (change.path, change.side) == ("a.b.P.n", "request")
    assert (change.before, change.after) == ('"int32 n = 1"', '"repeated int32 n = 1"')
    (change,) = changes(SERVICE, SERVICE.replace("int32 n", "repeated int32 n"))
    assert change.side is None
    (change,) = changes(SERVED, SERVED.replace("returns (R)", "returns (stream R)"))
    assert (change.path, change.side) == ("a.b.S.X", "response")
    assert change.after == '"(a.b.Q) returns (stream a.b.R)"'


def test_reasons_say_what_to_do() -> None:
    (change,) = changes(SERVED, SERVED.replace("int32 n = 1;", ""))
    assert 'the number 1, the name "n" should be reserved' in change.why


def test_types_that_are_not_given_along() -> None:
    file = 'syntax = "proto3"; import "other.proto"; message M { %s a = 1; }'
    assert changes(file % "o.User", file % ".o.User") == []
    (change,) = changes(file % "o.User", file % "o.Account")
    assert (change.consumer, change.provider) == ("unknown", "unknown")
    (change,) = changes(file % "o.User", file % "int32")
    assert (change.consumer, change.provider) == ("breaking", "breaking")
    known = 'syntax = "proto3"; import "google/protobuf/timestamp.proto"; message M { %s a = 1; }'
    (change,) = changes(known % "google.protobuf.Timestamp", known % "google.protobuf.Duration")
    assert (change.consumer, change.provider) == ("breaking", "breaking")


def test_what_options_of_editions_change_is_unknown() -> None:
    file = 'edition = "2023"; message M { %s int32 a = 1 %s; }'
    (change,) = changes(
        file % ("repeated", ""),
        file % ("repeated", "[features.repeated_field_encoding = EXPANDED]"),
    )
    assert (change.rule, change.consumer, change.provider) == (
        "feature_changed",
        "unknown",
        "unknown",
    )
    (change,) = changes(file % ("", ""), file % ("", "[features.field_presence = LEGACY_REQUIRED]"))
    assert (change.rule, change.consumer) == ("required_changed", "breaking")


def test_several_files() -> None:
    user = 'syntax = "proto3"; package u; message User { int32 id = 1; }'
    files = {
        "user.proto": user,
        "api.proto": 'syntax = "proto3"; import "user.proto"; message Got { u.User user = 1; }',
    }
    before = read({"files": files})
    assert before.warnings == ()
    after = read({"files": files | {"user.proto": user.replace("int32", "string")}})
    (change,) = compare(before, after).changes
    assert (change.path, change.consumer) == ("u.User.id", "breaking")


@pytest.mark.parametrize("broken", ["message M {", 'syntax = "proto3"; message M { X x = 1; }'])
def test_files_that_can_not_be_read_are_unknown(broken: str) -> None:
    for pair in ((SERVICE, broken), (broken, SERVICE)):
        was, now = (read({"proto": text}, "protobuf") for text in pair)
        comparison = compare(was, now)
        assert comparison.verdict == comparison.provider == "unknown"


def test_what_stands_beside_the_files_is_compared_by_place() -> None:
    comparison = compare(
        read({"proto": SERVICE, "files": {"a.txt": "1"}}),
        read({"proto": SERVICE, "files": {"a.txt": "2"}, "title": "New"}),
    )
    assert [(change.path, change.consumer) for change in comparison.changes] == [
        ('$.files["a.txt"]', "unknown"),
        ("$.title", "compatible"),
    ]


def test_edits_of_any_kind_are_judged() -> None:
    """What gives a verdict on consumers gives one on providers; nothing is unknown."""
    for seed in range(60):
        before, after = (read({"proto": text}) for text in RandomFiles(seed).pair())
        if not before.warnings and not after.warnings:
            comparison = compare(before, after)
            assert "unknown" not in (comparison.consumer, comparison.provider)
