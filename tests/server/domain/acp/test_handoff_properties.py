"""What holds for handoffs whatever agents ask for, on the real methods and a real file (§7.2)."""

import sqlite3
from contextlib import closing, suppress
from functools import partial
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import orjson
import pytest
from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, rule

from schemas.handoff import HandoffParams
from server.auth.authenticator import Caller
from server.domain.acp import handoff
from server.domain.acp.handoff import ACTIVE, MOVES
from server.domain.errors import Refusal
from server.methods import METHODS
from server.methods.base import Context
from server.methods.handoff.automatic import escalate
from server.store import handoffs
from server.store.connection import Connection
from tests.support.in_process_node import ANA, BEN, CLEO, DORA, HOUR, HUMAN, InProcessNode, package
from tests.support.located import ON_POSTGRESQL, connect, prepare
from tests.support.node import AGENT

AGENTS = st.sampled_from([ANA, BEN, CLEO, DORA])
ANYONE = st.sampled_from([ANA, BEN, CLEO, DORA, AGENT])
TASKS = st.sampled_from(["task-1", "task-2", "crew-1"])
PLAIN = st.sampled_from(["accept", "activate", "close", "propose"])
NEAR = st.integers(0, 5)
EDGES = {(one.before, one.step, one.after) for one in MOVES}
STAYS = {"human_approval", "team_approval", "escalate"}


class Undone(Exception):
    """Rolls back what only was to be shown to be possible."""


def _offered(task: str, ctx: Context) -> None:
    receiver = "aid://example.com/backend"
    given = {"action": "initiate", "to": receiver, "reason": "r", "package": package(task)}
    METHODS["acp/handoff"].run(ctx, HandoffParams.model_validate(given))
    raise Undone


def as_before_0011(db: Connection) -> None:
    """Make a database as it was before tasks were free again: each is its first sender's."""
    assert isinstance(db, sqlite3.Connection)
    db.executescript(
        "DROP INDEX handoffs_by_task;"
        "ALTER TABLE tasks DROP COLUMN assigned; ALTER TABLE tasks DROP COLUMN assigned_at;"
        "ALTER TABLE handoffs_elsewhere DROP COLUMN ended;"
        "UPDATE tasks SET chain = '[\"somebody\"]';"
        "INSERT INTO tasks SELECT task_id, NULL, title, 'execution', 0, 'open',"
        " json_array(from_agent), NULL, NULL, from_agent, 1 FROM handoffs WHERE status <> 'draft'"
        " ON CONFLICT DO NOTHING;"
        "DELETE FROM migrations WHERE name = 'free_tasks';"
    )


class Handoffs(RuleBasedStateMachine):
    """Agents ask for anything, in any order; most of it is refused."""

    def __init__(self) -> None:
        super().__init__()
        self._folder = TemporaryDirectory()
        self.desk = InProcessNode(Path(self._folder.name))
        self.ids: list[str] = []
        self.history: list[tuple[object, ...]] = []
        members = [{"agent_id": agent, "role": "executor"} for agent in (BEN, CLEO)]
        self.desk.team(ANA, "create", team="crew", name="Crew", members=members)
        self.desk.team(ANA, "createTask", team="crew", task_id="crew-1", title="t", agent_id=BEN)

    def teardown(self) -> None:
        """A database from before says who owns what, once it is migrated, by the same history."""
        if ON_POSTGRESQL:
            # There was none before.
            self.desk.close()
            self._folder.cleanup()
            return
        owners = "SELECT task_id, team, chain, assigned, assigned_at FROM tasks ORDER BY task_id"
        expected = self.desk.rows(owners)
        as_before_0011(self.desk.db)
        self.desk.db.close()
        prepare(Path(self._folder.name) / "desk.db")
        with closing(connect(Path(self._folder.name) / "desk.db")) as db:
            assert db.execute(owners).fetchall() == expected
        self._folder.cleanup()

    @rule(
        sender=AGENTS,
        receiver=AGENTS,
        task=TASKS,
        team=st.sampled_from([None, None, "crew"]),
        gated=st.booleans(),
        draft=st.booleans(),
    )
    def initiate(
        self, sender: str, receiver: str, task: str, team: str | None, gated: bool, draft: bool
    ) -> None:
        given = package(task, policy={"requires_human_approval": gated})
        with suppress(Refusal):
            made = self.desk.handoff(
                sender, "initiate", to=receiver, reason="r", package=given, draft=draft, team=team
            )
            self.ids.append(made["handoff"]["handoffId"])

    @rule(agent=st.sampled_from([BEN, CLEO]), task=TASKS)
    def assign(self, agent: str, task: str) -> None:
        with suppress(Refusal):
            self.desk.team(ANA, "assign", team="crew", task_id=task, agent_id=agent)

    @rule(which=NEAR)
    def admit(self, which: int) -> None:
        self._take(ANA, which, "approve")

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
                given: dict[str, Any] = {"action": action, "handoff_id": one, **params}
                self.desk.call("acp/handoff", agent, operator=agent == AGENT, **given)

    @invariant()
    def a_task_has_one_active_handoff(self) -> None:
        rows = self.desk.rows("SELECT task_id, status FROM handoffs")
        active = [task for task, status in rows if status in ACTIVE]
        assert len(active) == len(set(active))

    @invariant()
    def a_task_has_one_owner_and_it_is_the_active_receiver_once_accepted(self) -> None:
        owners = self._owners()
        for task, status, sender, receiver in self.desk.rows(
            "SELECT task_id, status, from_agent, to_agent FROM handoffs"
        ):
            if status in ("accepted", "activated"):
                assert owners[task][-1] == receiver
            elif status in ("proposed", "validating") and owners.get(task):
                assert owners[task][-1] == sender
        for chain in owners.values():
            assert len(set(chain)) == len(chain)

    @invariant()
    def the_owner_is_who_the_history_says(self) -> None:
        for task, chain in self._owners().items():
            ((assigned,),) = self.desk.rows("SELECT assigned FROM tasks WHERE task_id = ?", task)
            granted = handoffs.grants(self.desk.db, task)
            found = handoff.owner(
                granted + ([handoff.OwnershipGrant((assigned,))] if assigned else [])
            )
            assert tuple(chain) == (found.chain if found else ())

    @invariant()
    def a_task_that_nobody_has_is_anybodys(self) -> None:
        """No active handoff and nobody who accepted and still owns it: anyone may initiate."""
        owners = self._owners()
        for task in ("task-1", "task-2"):
            active = handoffs.active(self.desk.db, task)
            ((teams,),) = self.desk.rows(
                "SELECT count(*) FROM tasks WHERE task_id = ? AND team IS NOT NULL", task
            )
            if active is None and not owners.get(task) and not teams:
                for agent in (ANA, BEN, CLEO, DORA):
                    caller = Caller(agent, "r", "verified", "key")
                    with pytest.raises(Undone):
                        self.desk.run(partial(_offered, task), caller)

    def _owners(self) -> dict[str, list[str]]:
        rows = self.desk.rows("SELECT task_id, chain FROM tasks")
        return {task: orjson.loads(chain) for task, chain in rows}

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
            "SELECT handoff_id, sum(CASE WHEN step = 'escalate' THEN 1 ELSE 0 END),"
            " sum(CASE WHEN step IN ('pass', 'restore') THEN 1 ELSE 0 END)"
            " FROM handoff_history GROUP BY handoff_id"
        ):
            assert escalations <= chances


TestHandoffs = Handoffs.TestCase
TestHandoffs.settings = settings(max_examples=15, stateful_step_count=25, deadline=None)
