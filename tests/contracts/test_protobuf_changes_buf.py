"""buf judges the same changes: its verdicts in the table, and those on random files."""

from collections import Counter
from pathlib import Path

import pytest

from contracts.protobuf import read_proto, read_protobuf
from contracts.protobuf_changes import protobuf_changes
from tests.contracts.protobuf_cases import CASES, ProtoCase, RandomFiles, buf_breaking, needs_buf

pytestmark = needs_buf

OURS = {"oneof_renamed", "required_field_added", "required_changed", "required_field_removed"}
"""Rules in which we differ from buf by purpose."""


@pytest.mark.parametrize("case", CASES, ids=[case.name for case in CASES])
def test_the_table_says_what_buf_says(case: ProtoCase, tmp_path: Path) -> None:
    assert buf_breaking(tmp_path, *case.files()) == case.buf


def test_random_changes(tmp_path: Path) -> None:
    counted: Counter[str] = Counter()
    for seed in range(2000):
        before, after = RandomFiles(seed).pair()
        refused = buf_breaking(tmp_path, before, after)
        invalid = [read_proto({"proto": text}).problems for text in (before, after)]
        assert ("COMPILE" in refused) == any(invalid), (before, after, refused, invalid)
        if "COMPILE" in refused:
            counted["invalid"] += 1
            continue
        changes = protobuf_changes(
            read_protobuf({"proto": before}, None), read_protobuf({"proto": after}, None)
        )
        breaks = any(change.consumer == "breaking" for change in changes)
        is_ours = any(change.rule in OURS for change in changes)
        assert is_ours or breaks == bool(refused), (before, after, refused, changes)
        counted["breaking" if breaks else "compatible"] += 1
    assert min(counted[kind] for kind in ("invalid", "breaking", "compatible")) > 100
