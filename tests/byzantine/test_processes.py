"""Three real nodes and a member that is a traitor: they go on, say what is so, and stay small."""

import time
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import replace
from functools import partial
from typing import NamedTuple
from uuid import UUID

import pytest
from uuid_utils import uuid7

from server.domain.identifiers import begun_by
from tests.byzantine.attack import OURS, is_fault, memory, reads_answer
from tests.byzantine.honest import key_of
from tests.byzantine.mutation import DAY, KINDS, Mutator
from tests.byzantine.seeds import CONTENT, SEEDS, Ground, sealed
from tests.byzantine.served import Served
from tests.byzantine.traitor import CHANGES, NAME, OTHER
from tests.support.mesh import REPOS, Mesh, agent_of, equal, holds, join, peers, propose
from tests.support.mesh_member import ALPHA
from tests.support.node import Node
from tests.support.scripted_http import Behaviour, endless, garbage, huge, silent
from tests.support.waiting import eventually

GROWTH_MAX = 300_000_000
"""Bytes of memory that a node may have more after an attack: of a peer's answers, which have 16 MiB
at most, it reads several at once."""
HOSTILE = {"deep", "integer", "literal", "long", "content", "ordinal"}


class Front(NamedTuple):
    """Three nodes, and the traitor among them."""

    nodes: tuple[Node, Node, Node]
    member: Served

    def goes_on(self) -> None:
        """What one node writes is on the others, all answer, and none is at fault."""
        project = self.member.ground.project
        for node in self.nodes:
            content = {"from": node.url, "at": time.monotonic()}
            node.call("cacp/context/share", projectId=project, type="decision", content=content)
        eventually(lambda: equal(*self.nodes))
        for node in self.nodes:
            reads_answer(node)
            assert [line for line in node.log.splitlines() if is_fault(line)] == []

    def reasons(self) -> list[str | None]:
        """What each says is wrong; that the traitor contradicts itself is so."""
        found = [node.get("/health").json().get("reason") for node in self.nodes]
        return [None if reason == "equivocation" else reason for reason in found]


def fronted(meshed: Mesh, stack: ExitStack) -> Front:
    nodes = meshed.three()
    alpha = nodes[0]
    repos = [*REPOS, {"name": NAME, "role": "service", "language": "go"}]
    made = alpha.call("cacp/project/create", name="P", objective="o", repos=repos)
    project = str(made["projectId"])
    for node, name in zip(nodes, ("alpha", "beta", "gamma"), strict=True):
        eventually(lambda node=node: holds(node, project))  # type: ignore[misc]
        join(node, project, name)
    contract = propose(alpha, project, content=CONTENT)
    eventually(lambda: equal(*nodes))
    member = Served(nodes, ground_of(project, contract))
    stack.enter_context(member)
    member.joins(alpha)
    eventually(lambda: equal(*nodes))
    return Front(nodes, member)


def ground_of(project: str, contract: str) -> Ground:
    return Ground(
        now=0,
        node=ALPHA,
        member=agent_of(NAME),
        name=NAME,
        key=key_of(NAME),
        project=project,
        contract=contract,
        file="none",
        handoff="none",
        reader=ALPHA,
        writer=agent_of(NAME),
    )


@pytest.fixture(scope="module")
def front(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Front]:
    with ExitStack() as stack:
        yield fronted(Mesh(tmp_path_factory.mktemp("front"), stack), stack)


@contextmanager
def bounded(front: Front) -> Iterator[None]:
    """Whatever happens within, no node keeps much of it, and afterwards all go on."""
    before = [memory(node) for node in front.nodes]
    yield
    front.goes_on()
    grown = [memory(node) - was for node, was in zip(front.nodes, before, strict=True)]
    assert max(grown) < GROWTH_MAX, grown


@contextmanager
def asked(member: Served) -> Iterator[None]:
    """Returns once every node has asked the member, and asked again after the answer."""
    begun = member.asked
    yield
    eventually(lambda: member.asked > begun + 6)


def test_a_member_whose_clock_is_wrong_is_outvoted(front: Front) -> None:
    member = front.member
    member.clock = 3 * DAY
    with bounded(front), asked(member):
        pass
    for node in front.nodes:
        eventually(partial(_is_ahead, node))
    assert front.reasons() == [None] * 3
    member.clock = 0


LONG = pytest.mark.soak
"""What costs a node much processor time, by its nature."""


@pytest.mark.parametrize(
    "behaviour",
    [pytest.param(huge, marks=LONG), pytest.param(endless, marks=LONG), garbage, silent],
)
def test_a_member_that_answers_anything_holds_up_nobody(front: Front, behaviour: Behaviour) -> None:
    member = front.member
    with bounded(front):
        member.behaviour = behaviour
        try:
            for node in front.nodes:
                eventually(partial(_is_down, node))
            front.goes_on()
            assert front.reasons() == [None] * 3
        finally:
            member.behaviour = None


def test_a_member_that_tells_of_what_is_not_there_is_asked_in_vain(front: Front) -> None:
    member = front.member
    with bounded(front):
        with asked(member):
            member.lies = True
        member.lies = False
    assert front.reasons() == [None] * 3


def test_hostile_values_are_refused_and_leave_the_nodes_well(front: Front) -> None:
    member = front.member
    by = Mutator("processes", left_out=dict.fromkeys(KINDS.keys() - HOSTILE, "not of this test"))
    with bounded(front):
        for number in range(60):
            node, method = front.nodes[number % 3], sorted(SEEDS)[number % len(SEEDS)]
            ground = member.ground
            params = sealed(ground, by.mutated(SEEDS[method](ground)))
            if isinstance(params, dict):
                params = {"source_agent": ground.member} | params
            answer = member.says(
                node, {"jsonrpc": "2.0", "method": method, "params": params, "id": 1}
            )
            code = answer.get("error", {}).get("code")
            assert code not in OURS, (method, by.done, answer)
    assert front.reasons() == [None] * 3


IN_EACH_RUN = ("cacp/context/sync", "cacp/project/sync")


@pytest.mark.parametrize(
    "method",
    [one if one in IN_EACH_RUN else pytest.param(one, marks=LONG) for one in sorted(CHANGES)],
)
def test_of_two_things_under_one_name_all_nodes_keep_the_same(front: Front, method: str) -> None:
    member = front.member
    one, other = member.traitor.two_contents(member.ground, method)
    with bounded(front):
        for node, message in zip(front.nodes[:2], (one, other), strict=True):
            answer = member.says(node, message)
            assert answer.get("result", {}).get("status") in ("created", "updated"), answer


def test_of_one_content_for_different_parties_all_nodes_take_what_follows_on_either(
    front: Front,
) -> None:
    """Each was one to the nodes, so that what they had heard first decided who may go on."""
    member, alpha = front.member, front.nodes[0]
    member.joins(alpha, OTHER)
    eventually(lambda: equal(*front.nodes))
    one, other, later = member.traitor.of_other_parties(member.ground)
    with bounded(front):
        for node, first in zip(front.nodes, (one, other, one), strict=True):
            for message in (first, later):
                member.says(node, message)
    contract = {"projectId": member.ground.project, "contractId": member.ground.contract}
    for node in front.nodes:
        assert node.call("cacp/contract/get", **contract)["version"] == 3
    assert front.reasons() == [None] * 3


def test_nobody_begins_anothers_contract(front: Front) -> None:
    """A node that had heard of none took what came first, and then kept out the other."""
    member, (alpha, beta, _) = front.member, front.nodes
    contract = begun_by(ALPHA, member.ground.project, UUID(bytes=uuid7().bytes))
    said = member.traitor.begins(replace(member.ground, contract=contract))
    with bounded(front):
        for node in (alpha, beta):
            answer = member.says(node, said)
            assert "another node began the contract" in answer["result"]["reason"], answer


def test_who_is_no_member_of_a_project_rewrites_nothing_of_it(front: Front) -> None:
    member, alpha = front.member, front.nodes[0]
    made = alpha.call("cacp/project/create", name="Own", objective="o", repos=REPOS)
    project = str(made["projectId"])
    for node in front.nodes:
        eventually(partial(holds, node, project))
    with bounded(front):
        for number in range(30):
            said = member.traitor.rewritten(replace(member.ground, project=project))
            answer = member.says(front.nodes[number % 3], said)
            assert answer["result"]["status"] == "skipped", answer
        for number in range(12):
            at = replace(member.ground, project=(project, member.ground.project)[number % 2])
            node = front.nodes[number % 3]
            member.says(node, member.traitor.redescribed(at, ("alpha", "beta", "gamma")))
            said = member.traitor.renamed(member.ground, member.ground.contract)
            assert "result" in member.says(node, said)
    for node in front.nodes:
        roles = "SELECT DISTINCT role FROM repos WHERE project_id IN (?, ?)"
        assert node.query(roles, project, member.ground.project) == [("service",)]
        called = "SELECT type, name FROM contracts WHERE contract_id = ?"
        assert node.query(called, member.ground.contract) == [("api_endpoint", "Get")]
        found = node.query(
            "SELECT name, status, agreement_policy FROM projects WHERE project_id = ?", project
        )
        assert found == [("Own", "planning", "any")]


def test_what_others_said_is_not_said_again_otherwise(front: Front) -> None:
    member = front.member
    front.goes_on()
    eventually(lambda: len(member.traitor.heard) > 2)
    with bounded(front):
        for number in range(60):
            made = member.traitor.altered() if number % 2 else member.traitor.again()
            assert made is not None
            answer = member.says(front.nodes[number % 3], made)
            assert answer.get("error", {}).get("code") not in OURS, (made, answer)


def test_who_is_sent_what_is_stamped_ahead_says_so_and_nobody_else(mesh: Mesh) -> None:
    with ExitStack() as stack:
        front = fronted(mesh, stack)
        member = front.member
        ahead = replace(member.ground, now=member.ground.now + 3 * DAY)
        packet = sealed(ahead, SEEDS["cacp/context/sync"](ahead))
        said = {"source_agent": ahead.member} | packet
        member.says(
            front.nodes[0],
            {"jsonrpc": "2.0", "method": "cacp/context/sync", "params": said, "id": 1},
        )
        eventually(lambda: front.reasons()[0] == "deferred")
        with bounded(front), asked(member):
            pass
        assert front.reasons() == ["deferred", None, None]


def _is_ahead(node: Node) -> bool:
    """Whether a node shows that the member's clock is days ahead."""
    line = f'cacp_peer_clock_ahead_seconds{{peer="{agent_of(NAME)}"}} '
    found = [one for one in node.get("/metrics").text.splitlines() if one.startswith(line)]
    return bool(found) and float(found[0].removeprefix(line)) > 2 * 86_400


def _is_down(node: Node) -> bool:
    """Whether a node shows that the member is down, and why."""
    [found] = [one["sync"] for one in peers(node) if one["agentId"] == agent_of(NAME)]
    return bool(found["health"] == "down" and found["lastError"])
