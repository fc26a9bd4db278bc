"""The table of what tests are made of has every module."""

import re
from pathlib import Path

HERE = Path(__file__).parent


def test_the_table_names_every_module() -> None:
    rows = re.findall(r"^\| (.+?) \|", (HERE / "README.md").read_text(), re.MULTILINE)
    named = set(re.findall(r"`(\w+\.py)`", " ".join(rows)))
    modules = {path.name for path in HERE.glob("*.py")}
    assert named == {name for name in modules if not name.startswith(("__", "test_"))}
