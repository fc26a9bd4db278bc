"""What a power loss may leave, by what was synced and what was not."""

from random import Random

from hypothesis import given
from hypothesis import strategies as st

from tests.faults.account import Cut, Entry, Named, Synced, Wrote
from tests.faults.images import SECTOR, Disk

A = "a.db"
BEGUN: list[Entry] = [Named(A, 1), Wrote(1, 0, b"0" * 2 * SECTOR), Synced(1, folder=True)]
DICE = [Random(seed) for seed in range(1_000)]


def images(*entries: Entry) -> list[dict[str, bytes]]:
    disk = Disk()
    for entry in [*BEGUN, *entries]:
        disk.take(entry)
    return [disk.lost(dice) for dice in DICE]


def test_what_is_synced_is_there() -> None:
    assert images() == [{A: b"0" * 2 * SECTOR}] * len(DICE)


def test_what_is_not_may_be_there_in_any_part() -> None:
    found = {image[A] for image in images(Wrote(1, 0, b"1" * 2 * SECTOR))}
    old, new = b"0" * SECTOR, b"1" * SECTOR
    assert found > {old + old, old + new, new + old, new + new}
    assert any(0 < one[:SECTOR].count(b"1") < SECTOR for one in found), "none is torn"


def test_what_lies_beside_a_write_is_untouched() -> None:
    for image in images(Wrote(1, SECTOR, b"1")):
        assert image[A][:SECTOR] == b"0" * SECTOR
        assert image[A][SECTOR + 1 :] == b"0" * (SECTOR - 1)


def test_a_size_may_be_the_former_or_the_new_one() -> None:
    assert {len(image[A]) for image in images(Cut(1, 5))} == {5, 2 * SECTOR}
    longer = images(Wrote(1, 2 * SECTOR, b"1"))
    assert {len(image[A]) for image in longer} == {2 * SECTOR, 2 * SECTOR + 1}


def test_a_file_is_cut_as_a_whole() -> None:
    """With its former size it has its former content too, in all its parts."""
    for image in images(Cut(1, 0)):
        assert image[A] in (b"", b"0" * 2 * SECTOR)
    written_anew = {image[A] for image in images(Cut(1, 0), Wrote(1, 0, b"1" * SECTOR))}
    assert b"1" * SECTOR in written_anew
    assert b"1" * SECTOR + b"0" * SECTOR not in written_anew


def test_a_sync_that_failed_leaves_it_open_for_good() -> None:
    failed = Synced(1, folder=False, failed=True)
    found = images(Wrote(1, 0, b"1"), failed, Wrote(1, SECTOR, b"1"), Synced(1, folder=False))
    assert {image[A][:1] for image in found} == {b"0", b"1"}
    assert {image[A][SECTOR : SECTOR + 1] for image in found} == {b"1"}


def test_a_name_lasts_when_its_folder_is_synced() -> None:
    made = images(Named("b", 2))
    assert {"b" in image for image in made} == {True, False}
    synced = images(Named("b", 2), Synced(2, folder=True), Named("b", None, synced=True))
    assert all("b" not in image for image in synced)


@given(st.lists(st.tuples(st.integers(0, 5 * SECTOR), st.binary(min_size=1, max_size=900))))
def test_a_kill_leaves_what_programs_read(writes: list[tuple[int, bytes]]) -> None:
    disk, content = Disk(), bytearray()
    disk.take(Named(A, 1))
    for at, written in writes:
        disk.take(Wrote(1, at, written))
        content.extend(bytes(max(0, at + len(written) - len(content))))
        content[at : at + len(written)] = written
    assert disk.kept() == {A: bytes(content)}
    disk.take(Synced(1, folder=True))
    assert disk.lost(Random(0)) == disk.kept()
