"""What the contracts share."""

import pytest
from pydantic import TypeAdapter, ValidationError

from schemas.v2 import ClassName, FailureClass, TaskId


@pytest.mark.parametrize("bad", ["", "../x", "a/b", ".hidden", "a b", "x" * 101])
def test_task_ids_are_plain_file_names(bad: str) -> None:
    with pytest.raises(ValidationError):
        TypeAdapter(TaskId).validate_python(bad)


def test_failure_classes_are_class_names() -> None:
    for name in FailureClass:
        TypeAdapter(ClassName).validate_python(str(name))
