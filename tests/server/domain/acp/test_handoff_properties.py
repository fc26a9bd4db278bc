"""What holds for handoffs whatever agents ask for, on the real methods and a real file (§7.2)."""

from contextlib import suppress
from pathlib import Path
from tempfile import TemporaryDirectory

import orjson
from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, rule

from server.domain.acp import handoff
from server.domain.acp.handoff import ACTIVE, MOVES
from server.domain.errors import Refusal
from server.methods.handoff_duties import escalate
from tests.desk import ANA, BEN, CLEO, DORA, HOUR, HUMAN, Desk, package
from tests.node import AGENT

AGENTS = st.sampled_from([ANA, BEN, CLEO, DORA])
ANYONE = st.sampled_from([ANA, BEN, CLEO, DORA, AGENT])
TASKS = st.sampled_from(["task-1", "task-2"])
PLAIN = st.sampled_from(["accept", "activate", "close", "propose"])
NEAR = st.integers(0, 5)
EDGES = {(one.before, one.step, one.after) for one in MOVES}
STAYS = {"human_approval", "escalate"}


class Handoffs(RuleBasedStateMachine):
    """Agents ask for anything, in any order; most of it is refused."""

    def __init__(self) -> None:
        super().__init__()
        self._folder = TemporaryDirectory()
        self.desk = Desk(Path(self._folder.name))
        self.ids: list[str] = []
        self.history: list[tuple[object, ...]] = []

    def teardown(self) -> None:
        self.desk.db.close()
        self._folder.cleanup()

    @rule(sender=AGENTS, receiver=AGENTS, task=TASKS, gated=st.booleans(), draft=st.booleans())
    def initiate(self, sender: str, receiver: str, task: str, gated: bool, draft: bool) -> None:
        given = package(task, policy={"requires_human_approval": gated})
        with suppress(Refusal):
            made = self.desk.handoff(
                sender, "initiate", to=receiver, reason="r", package=given, draft=draft
            )
            self.ids.append(made["handoff"]["handoffId"])

    @rule(
        agent=ANYONE, which=NEAR, action=st.sampled_from(["accept", "activate", "close", "propose"])
    )
    def step(self, agent: str, which: int, action: str) -> None:
        self._take(agent, which, action)

    @rule(agent=ANYONE, which=NEAR)
    def reject(self, agent: str, which: int) -> None:
        self._take(agent, which, "reject", code="other", detail="no")

    @rule(agent=ANYONE, which=NEAR)
    def complete(self, agent: str, which: int) -> None:
        self._take(agent, which, "complete", summary="done")

    @rule(agent=ANYONE, which=NEAR)
    def revoke(self, agent: str, which: int) -> None:
        self._take(agent, which, "revoke", detail="back")

    @rule(which=NEAR, human=st.booleans())
    def approve(self, which: int, human: bool) -> None:
        if self.ids:
            given = {"action": "approve", "handoff_id": self.ids[-1 - which % len(self.ids)]}
            with suppress(Refusal):
                self.desk.call("acp/handoff", HUMAN, human=human, **given)

    @rule(which=NEAR, hours=st.sampled_from([1, 30]))
    def time_passes(self, which: int, hours: int) -> None:
        self.desk.now += hours * HOUR
        if self.ids:
            one = self.ids[-1 - which % len(self.ids)]
            self.desk.run(lambda ctx: escalate(ctx, one))

    def _take(self, agent: str, which: int, action: str, **params: str) -> None:
        if self.ids:
            one = self.ids[-1 - which % len(self.ids)]
            with suppress(Refusal):
                self.desk.handoff(agent, action, handoff_id=one, **params)

    @invariant()
    def a_task_has_one_active_handoff(self) -> None:
        rows = self.desk.rows("SELECT task_id, status FROM handoffs")
        active = [task for task, status in rows if status in ACTIVE]
        assert len(active) == len(set(active))

    @invariant()
    def a_task_has_one_owner_and_it_is_the_active_receiver_once_accepted(self) -> None:
        owners = {
            task: orjson.loads(chain)
            for task, chain in self.desk.rows("SELECT task_id, chain FROM tasks")
        }
        for task, status, sender, receiver in self.desk.rows(
            "SELECT task_id, status, from_agent, to_agent FROM handoffs"
        ):
            if status in ("accepted", "activated"):
                assert owners[task][-1] == receiver
            elif status in ("proposed", "validating"):
                assert owners[task][-1] == sender
        for chain in owners.values():
            assert len(set(chain)) == len(chain)

    @invariant()
    def chains_are_acyclic_and_packages_are_what_was_hashed(self) -> None:
        for receiver, text in self.desk.rows("SELECT to_agent, package_json FROM handoffs"):
            whole = orjson.loads(text)
            chain = [*whole["provenance"]["handoff_chain"], receiver]
            assert len(set(chain)) == len(chain)
            assert whole["verification"]["package_hash"] == handoff.package_hash(whole)

    @invariant()
    def history_only_grows_and_says_how_each_state_came(self) -> None:
        now = self.desk.rows("SELECT * FROM handoff_history ORDER BY seq")
        assert now[: len(self.history)] == self.history
        self.history = now
        at: dict[str, str | None] = {}
        for _, one, step, before, after, *_ in now:
            assert at.get(one) == before
            assert (before, step, after) in EDGES or step == "draft" or before == after
            assert step in STAYS or before != after
            at[one] = after
        assert at == dict(self.desk.rows("SELECT id, status FROM handoffs"))

    @invariant()
    def each_is_escalated_once_for_each_acceptance(self) -> None:
        for _, escalations, chances in self.desk.rows(
            "SELECT handoff_id, sum(step = 'escalate'), sum(step IN ('pass', 'restore'))"
            " FROM handoff_history GROUP BY handoff_id"
        ):
            assert escalations <= chances


TestHandoffs = Handoffs.TestCase
TestHandoffs.settings = settings(max_examples=15, stateful_step_count=25, deadline=None)
