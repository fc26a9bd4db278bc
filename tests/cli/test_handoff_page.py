"""docs/handoffs.md says what the node's own tables say."""

from cli.docs import DOCS, pages
from cli.handoff_page import page
from schemas.handoff import HandoffParams
from server.domain.acp.handoff import MOVES
from server.domain.acp.teams import MATRIX


def test_the_page_is_up_to_date() -> None:
    assert (DOCS / "handoffs.md").read_text() == pages()["handoffs.md"], "run `make docs`"


def test_every_move_and_every_authority_is_shown() -> None:
    text = "\n".join(page())
    for move in MOVES:
        assert f"    {move.before} --> {move.after}: {move.step}" in text
        assert f"| {move.before} | {move.step} | {', '.join(move.by)} | {move.after} |" in text
    assert all(f"| {shown} |" in text for shown, _ in MATRIX.values())


def test_the_example_is_taken() -> None:
    text = "\n".join(page())
    example = text.partition("```json\n")[2].partition("```")[0]
    assert HandoffParams.model_validate_json(example).action == "initiate"
