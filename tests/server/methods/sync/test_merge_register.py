"""Which of two registers stays (design §7)."""

from uuid import uuid4

from tests.server.methods.sync.test_merge_project import tell, what
from tests.support.mesh_member import SOME_TIME, MeshMember
from tests.support.node import Node

BACK = SOME_TIME - 1_000_000


def test_of_one_text_the_signature_of_more_weight_is_kept(alpha: Node, beta: MeshMember) -> None:
    """It is nobody's at first: from a release that signed none, say."""
    project = str(uuid4())
    said = beta.repo(project, SOME_TIME)
    tell(beta, project, said | {"signature": None})
    at = "SELECT signature FROM repos WHERE project_id = ?"
    assert alpha.query(at, project) == [("",)]
    before = alpha.query("SELECT max(seq) FROM changes")
    tell(beta, project, said)
    [(kept,)] = alpha.query(at, project)
    assert beta.agent in kept
    assert alpha.query("SELECT max(seq) FROM changes") == before, "what readers see is the same"


def test_a_members_word_counts_before_that_of_others(
    alpha: Node, beta: MeshMember, gamma: MeshMember
) -> None:
    project = str(uuid4())
    tell(beta, project, beta.repo(project, SOME_TIME), beta.repo(project, SOME_TIME, "free"))
    tell(gamma, project, gamma.repo(project, BACK, "free", role="rewritten"))
    assert what(alpha, project, "free")[0] == "service"
