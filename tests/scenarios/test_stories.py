"""Each file in stories/ is a script and what its nodes know after each step (design §7).

To record a new or changed story, run with RECORD=1 and read the difference before committing it.
"""

import os
from pathlib import Path

import pytest

from tests.scenarios.story import Story

STORIES = sorted((Path(__file__).parent / "stories").glob("*.txt"))


@pytest.mark.parametrize("path", STORIES, ids=lambda path: path.stem)
def test_story(path: Path) -> None:
    script, _, recorded = path.read_text().partition("---\n")
    lines = "\n".join(Story(script).play()) + "\n"
    if os.environ.get("RECORD"):
        path.write_text(f"{script}---\n{lines}")
    else:
        assert lines == recorded
