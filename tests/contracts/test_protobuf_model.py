from hypothesis import given
from hypothesis import strategies as st

from contracts.protobuf_model import ProtoEnum, ProtoField, ProtoMessage, end_of


def test_the_fields_of_a_oneof() -> None:
    fields = {
        number: ProtoField(number, name, "scalar", "int32", "optional", name, oneof=oneof)
        for number, name, oneof in ((1, "a", "o"), (2, "b", ""), (3, "c", "o"))
    }
    assert ProtoMessage("M", fields).oneof("o") == {1, 3}


def test_the_values_of_an_enum() -> None:
    enum = ProtoEnum("E", {0: frozenset(("A", "B")), 1: frozenset(("C",))})
    assert enum.pairs() == {(0, "A"), (0, "B"), (1, "C")}


@given(st.sets(st.integers(-5, 30)), st.integers(-6, 31))
def test_the_end_of_a_range(numbers: set[int], number: int) -> None:
    ranges = tuple((n, n) for n in sorted(numbers))
    assert end_of(ranges, number) == (number if number in numbers else None)
    assert end_of(((-4, 3), (7, 20)), number) == (
        3 if -4 <= number <= 3 else 20 if 7 <= number <= 20 else None
    )
