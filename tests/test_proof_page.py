"""docs/proof.md plays two services of examples/ from their agreement to its proof: play it too."""

from pathlib import Path

import pytest

from tests.support.console import UUID, Shell, blocks, compare, console_steps
from tests.support.node import Node, free_port

ROOT = Path(__file__).parents[1]
HOME = "/home/ada"
"""The home directory in the document."""
PORT = "8001"
"""The provider's port in the document."""
AUTHOR = {"GIT_AUTHOR_NAME": "Ada", "GIT_AUTHOR_EMAIL": "ada@example.com"}
COMMITTER = {name.replace("AUTHOR", "COMMITTER"): value for name, value in AUTHOR.items()}


@pytest.mark.sqlite
def test_an_agreement_is_mocked_probed_mended_and_proven(tmp_path: Path) -> None:
    data = tmp_path / "cacp-server/data"
    data.mkdir(parents=True)
    (data.parent / "examples").symlink_to(ROOT / "examples")
    with Node(data, db=data / "cacp.db") as node:
        variables = {"HOME": str(tmp_path), "COLUMNS": "100", **AUTHOR, **COMMITTER}
        shell = Shell({**variables, "CACP_URL": node.url, "CACP_DB": str(data / "cacp.db")})
        follow(shell, tmp_path)


def follow(shell: Shell, home: Path) -> None:
    """Run the commands; ids that the document shows stand for those that this run gives."""
    _, _, text = (ROOT / "docs/proof.md").read_text().partition("\n## The whole job\n")
    consoles = [content for language, _, content in blocks(text) if language == "console"]
    steps = [step for content in consoles for step in console_steps(content)]
    port = str(free_port())
    ids: dict[str, str] = {}
    assert len(steps) > 20
    for command, shown in steps:
        typed = command.replace(PORT, port)
        for example, real in ids.items():
            typed = typed.replace(example, real)
        printed = shell.run(typed).replace(str(home), HOME).replace(port, PORT)
        compare(command, shown, printed)
        ids |= dict(zip(UUID.findall(shown), UUID.findall(printed), strict=False))
