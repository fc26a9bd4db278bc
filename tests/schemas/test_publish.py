"""The published JSON Schemas are those of the models (agent-threader-v2 §7, acpcomply)."""

import json
from pathlib import Path

import pytest

import schemas
from schemas.publish import PUBLISHED, schema_text

FOLDER = Path(schemas.__file__).parent


@pytest.mark.parametrize("name", PUBLISHED)
def test_published_schema_is_current(name: str) -> None:
    text = (FOLDER / name).read_text()
    assert text == schema_text(name), "run: python -m schemas.publish"
    assert json.loads(text)["$id"] == name
