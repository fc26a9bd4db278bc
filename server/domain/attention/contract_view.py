"""How an agent sees what waits for it on a contract: the summary, what it needs, and the step."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from schemas.base import iso, present
from schemas.contract import UNSETTLED, ContractType
from schemas.facts import ResponseFact, VerificationFact, VersionFact
from schemas.receipt import ProofReceipt
from schemas.verification import VERIFIED_BY
from server.domain.agents import same_agent
from server.domain.attention.contracts import has_moved_on, objections_of, openings
from server.domain.attention.items import (
    Actor,
    ItemSubject,
    NextStep,
    Opening,
    ProjectNames,
    WaitingItem,
    bounded,
    named,
)
from server.domain.content_diff import bounded_diff
from server.domain.contract import (
    Facts,
    ancestors_of,
    asks_for_receipts,
    conflicts_of,
    current_of,
    facts_about,
    failures_of,
    ground_for_receipts,
    implementations_of,
    others_of,
    round_of,
    status_of,
    unproven_sides,
)
from server.domain.contract_overview import compared_version
from server.domain.proof import problem_of
from server.domain.receipts import receipts_of
from server.domain.timeline import SHOWN

FILES_MAX = 50
RECEIPTS_MAX = 20

CHOICES = ("agree", "request_change (say what in comment)", "reject")


@dataclass(frozen=True, slots=True)
class ContractSubject:
    """A contract with all its facts."""

    project: ProjectNames
    contract_id: str
    name: str
    type: ContractType
    facts: Facts


def items(subject: ContractSubject, who: Actor) -> Iterator[WaitingItem]:
    """What waits on a contract for an agent."""
    opened = [
        opening
        for opening in openings(subject.project.project_id, subject.contract_id, subject.facts)
        if opening.concerns(who)
    ]
    if opened:
        view = _ContractView(subject, who)
        for opening in opened:
            yield view.item(opening)


COMPARED_STEPS = 100_000
"""Work of a comparison, some tenths of a second at most: what is not compared is unknown."""
CHANGES_SHOWN = 10


class _ContractView:
    """A contract as one agent sees it."""

    def __init__(self, subject: ContractSubject, who: Actor) -> None:
        self.subject, self.who = subject, who
        self.facts, self.project = subject.facts, subject.project
        self.current = current_of(self.facts)
        self.version = self.current.version
        self.repo_id = who.repos[subject.project.project_id]
        self.title = (
            f"contract {named(subject.name)} (project {named(subject.project.name)}), "
            f"version {self.version}"
        )

    def item(self, opening: Opening) -> WaitingItem:
        summary, detail, steps = _SHOWN[opening.kind](self)
        return WaitingItem(
            opening.id,
            opening.kind,
            opening.urgency,
            opening.since,
            ItemSubject("contract", self.subject.contract_id, self.subject.name),
            summary,
            present({**self._common(), **detail}),
            steps,
            self.project,
            self.repo_id,
        )

    def _common(self) -> dict[str, Any]:
        return {
            "type": self.subject.type,
            "version": self.version,
            "status": status_of(self.facts),
            "round": round_of(self.facts, self.current),
            "proposedBy": self._author(self.current),
            "parties": [self.project.repo(repo_id) for repo_id in self.current.parties],
        }

    # --- each kind ------------------------------------------------------------------------------

    def respond(self) -> "_Shown":
        author = named(self.project.repo(self.current.repo_id))
        diff = self._diff()
        changed = f", {diff['summary']}" if diff else ""
        detail = {
            "changeNote": self.current.note,
            "diff": diff,
            "content": bounded(self.current.content),
            "yourLastResponse": self._last_response(),
            "responses": self._responses(),
        }
        summary = f"Respond to {self.title}: {author} proposes it{changed}"
        return summary, detail, (self._response(),)

    def revise(self) -> "_Shown":
        objections = objections_of(self.facts)
        names = ", ".join(sorted({named(self.project.repo(fact.repo_id)) for fact in objections}))
        verb = "asks" if len({fact.repo_id for fact in objections}) == 1 else "ask"
        detail = {"content": bounded(self.current.content), "responses": self._responses()}
        summary = f"Revise {self.title}: {names} {verb} for a change or rejects it"
        if all(fact.action == "request_change" for fact in objections):
            summary = f"Revise {self.title}: {names} {verb} for a change"
        return summary, detail, (self._update(),)

    def implement(self) -> "_Shown":
        detail = {
            "content": bounded(self.current.content),
            "implementations": self._implementations(),
        }
        return f"Implement {self.title}: it is agreed", detail, (self._complete(),)

    def repair(self) -> "_Shown":
        failures = self._failures()
        by = ", ".join(sorted({named(failure["repo"]) for failure in failures}))
        detail = {
            "failures": failures,
            "content": bounded(self.current.content),
            "implementations": self._implementations(),
        }
        summary = f"Repair {self.title}: its verification failed"
        return f"{summary} (by {by})" if by else summary, detail, (self._complete(),)

    def verify(self) -> "_Shown":
        detail = {
            "content": bounded(self.current.content),
            "implementations": self._implementations(),
            "failures": self._failures(),
            "partial": self._verifications("partial", round_of(self.facts, self.current)),
        }
        if asks_for_receipts(self.facts, self.current):
            detail["receipts"] = self._receipts()
            return self._prove(detail)
        step = NextStep(
            "cacp_implementation_report",
            "cacp/implementation/verify",
            self._at(),
            {
                "result": "success or failure, from testing both sides together; partial is "
                "recorded, and leaves it open",
                "notes": "what you tested",
                "failureDetails": "optional, for a failure: the cases that failed, as a JSON "
                "object",
            },
            {"step": "verify"},
        )
        return f"Verify {self.title}: every party has implemented it", detail, (step,)

    def _prove(self, detail: dict[str, Any]) -> "_Shown":
        """What is verified by a receipt rather than by a word."""
        sides = [side for repo_id, side in unproven_sides(self.facts) if repo_id == self.repo_id]
        if self._lacks_commit():
            summary = f"Name the commit of your work on {self.title}: receipts must be of it"
            return summary, {**detail, "unproven": sides}, (self._complete(),)
        at = f"--contract {self.subject.contract_id} --side {sides[0]}"
        step = NextStep(
            None,
            "cacp/receipt/record",
            self._at(),
            {
                "receipt": "what a runner signs: run your tests with "
                f"`cacp verify {at} -- COMMAND` on the commit that you named as complete, "
                "which records it; or let `cacp probe` try a provider, `cacp mock check` hold a "
                "consumer's recorded tests against the contract"
            },
        )
        by = VERIFIED_BY[self.current.verification or "receipt"]
        failures = failures_of(self.facts)
        if any((self.repo_id, side) in failures for side in sides):
            by += "; a failure stands against it, until the same run passes or another commit is "
            by += "complete"
        summary = f"Prove your {' and '.join(sides)} side of {self.title}: it is verified by {by}"
        return summary, {**detail, "unproven": sides}, (step,)

    def _lacks_commit(self) -> bool:
        """Whether the repo's work was declared complete without its commit."""
        works = implementations_of(self.facts)
        return any(work.repo_id == self.repo_id and work.commit is None for work in works)

    def conflict(self) -> "_Shown":
        lost = [fact for fact in conflicts_of(self.facts) if fact.repo_id == self.repo_id]
        mine = [fact for fact in lost if not has_moved_on(self.facts, fact)][-1]
        winner = named(self.project.repo(self.current.repo_id))
        detail = {
            "yourVersion": {
                "version": mine.version,
                "content": bounded(mine.content),
                "changeNote": mine.note,
                "parties": [self.project.repo(repo_id) for repo_id in mine.parties],
                "at": iso(mine.stamp),
            },
            "diff": self._diff_to(mine, "yours"),
            "content": bounded(self.current.content),
            "responses": self._responses(),
        }
        steps: tuple[NextStep, ...] = (self._response(),)
        if status_of(self.facts) in UNSETTLED and self.repo_id in self.current.parties:
            steps += (self._update(),)
        summary = (
            f"Your version {mine.version} lost a race: {self.title} by {winner} is current. "
            "Respond to it, or propose yours again"
        )
        return summary, detail, steps

    # --- steps ----------------------------------------------------------------------------------

    def _at(self, **more: Any) -> dict[str, Any]:
        return {
            "projectId": self.project.project_id,
            "contractId": self.subject.contract_id,
            **more,
        }

    def _response(self) -> NextStep:
        fill = {
            "comment": "what to change, or why; optional when you agree",
            "suggestedChange": "optional: what you want instead, in any form",
        }
        params = self._at(version=self.version)
        own = same_agent(self.current.agent_id, self.who.agent_id)
        alone = others_of(self.current) == {self.current.repo_id}
        if self.repo_id in self.current.parties and (alone or not own):
            # What is agreed can be reopened, but no longer rejected.
            choices = CHOICES if status_of(self.facts) in UNSETTLED else CHOICES[:2]
            fill = {"action": " or ".join(choices), **fill}
        else:
            # Only this response is open to a repo that is no party, and to the author's agent.
            params["action"] = "request_change"
        return NextStep("cacp_contract_respond", "cacp/contract/respond", params, fill)

    def _update(self) -> NextStep:
        return NextStep(
            "cacp_contract_update",
            "cacp/contract/update",
            self._at(version=self.version, parties=list(self.current.parties)),
            {
                "content": "the whole new content, a JSON object (not a diff)",
                "changeNote": "what you changed, and why",
            },
        )

    def _complete(self) -> NextStep:
        return NextStep(
            "cacp_implementation_report",
            "cacp/implementation/complete",
            self._at(),
            {
                "files": "the paths that you changed",
                "notes": "what the other parties should know",
                "testEndpoint": "optional: the URL at which others can test it",
                **self._commit(),
            },
            {"step": "complete"},
        )

    def _commit(self) -> dict[str, str]:
        if not asks_for_receipts(self.facts, self.current):
            return {}
        return {"commit": "the git commit that is complete, its whole hash: receipts must be of it"}

    # --- facts ----------------------------------------------------------------------------------

    def _author(self, fact: Any) -> dict[str, str]:
        return {
            "repo": self.project.repo(fact.repo_id),
            "repoId": fact.repo_id,
            "agentId": fact.agent_id,
        }

    def _responses(self) -> list[dict[str, Any]] | None:
        """Every response to the current version, the oldest first."""
        facts = sorted(
            facts_about(self.facts, self.current, ResponseFact),
            key=lambda fact: (fact.stamp, fact.repo_id),
        )
        return [self._shown_response(fact) for fact in facts] or None

    def _shown_response(self, fact: ResponseFact) -> dict[str, Any]:
        return present(
            {
                **self._author(fact),
                "version": fact.version,
                "action": fact.action,
                "at": iso(fact.stamp),
                "comment": fact.comment and bounded(fact.comment),
                "suggestedChange": bounded(fact.suggested_change),
            }
        )

    def _last_response(self) -> dict[str, Any] | None:
        """The repo's response to the latest of the versions before the current one."""
        for version in reversed(ancestors_of(self.facts)):
            for fact in facts_about(self.facts, version, ResponseFact):
                if fact.repo_id == self.repo_id:
                    return self._shown_response(fact)
        return None

    def _implementations(self) -> list[dict[str, Any]] | None:
        shown = [
            present(
                {
                    **self._author(work),
                    "status": work.status,
                    "plan": work.plan and bounded(work.plan),
                    "files": list(work.files[:FILES_MAX]) or None,
                    "notes": work.notes and bounded(work.notes),
                    "testEndpoint": work.test_endpoint,
                }
            )
            for work in implementations_of(self.facts)
        ]
        return shown or None

    def _receipts(self) -> list[dict[str, Any]] | None:
        """The receipts of the repo in this round, and why each proves nothing if so."""
        ground = ground_for_receipts(self.facts)
        shown = []
        for fact in receipts_of(self.facts):
            if (fact.repo_id, fact.round) == (self.repo_id, ground.round):
                problem = problem_of(ground, ProofReceipt.model_validate(fact.receipt), fact.stamp)
                ran = {name: bounded(fact.receipt.get(name)) for name in SHOWN}
                why = {"at": iso(fact.stamp), "problem": problem and problem.why}
                shown.append(present({**ran, "runner": fact.agent_id, **why}))
        return shown[-RECEIPTS_MAX:] or None

    def _failures(self) -> list[dict[str, Any]]:
        """The failures that opened the current round."""
        return self._verifications("failure", round_of(self.facts, self.current) - 1) or []

    def _verifications(self, result: str, number: int) -> list[dict[str, Any]] | None:
        facts = sorted(
            facts_about(self.facts, self.current, VerificationFact),
            key=lambda fact: (fact.stamp, fact.repo_id),
        )
        shown = [
            present(
                {
                    **self._author(fact),
                    "round": fact.round,
                    "at": iso(fact.stamp),
                    "notes": fact.notes and bounded(fact.notes),
                    "details": bounded(fact.details),
                }
            )
            for fact in facts
            if fact.result == result and fact.round == number
        ]
        return shown or None

    def _diff(self) -> dict[str, Any] | None:
        """What the current version changes of the one that the repo agreed to last, else of the one
        before it."""
        compared = compared_version(self.facts, self.repo_id)
        return None if compared is None else self._diff_to(*compared)

    def _diff_to(self, before: VersionFact, basis: str) -> dict[str, Any]:
        diff = bounded_diff(before.content, self.current.content)
        about = {
            "agreed": f"against version {before.version}, which you agreed to last",
            "previous": f"against version {before.version}",
            "yours": f"against your version {before.version}, which lost",
        }
        return present(
            {
                "fromVersion": before.version,
                "basis": basis,
                "summary": about[basis],
                **self._broken(before),
                "lines": diff.lines,
                "more": diff.more or None,
            }
        )

    def _broken(self, before: VersionFact) -> dict[str, Any]:
        """Whom the current version breaks that is built to another one."""
        # As in server/methods/cacp/content_reading.py, by the first that needs it.
        from contracts.compare import compare
        from contracts.recognise import read

        comparison = compare(
            read(before.content, before.dialect, self.subject.type),
            read(self.current.content, self.current.dialect, self.subject.type),
            COMPARED_STEPS,
        )
        serious = [
            change
            for change in comparison.changes
            if not change.consumer == change.provider == "compatible"
        ]
        return {
            "consumer": comparison.consumer,
            "provider": comparison.provider,
            "changes": [
                present({"path": change.path, "rule": change.rule, "breaks": change.breaks})
                for change in serious[:CHANGES_SHOWN]
            ],
        }


_Shown = tuple[str, Mapping[str, Any], tuple[NextStep, ...]]
"""The summary, the detail and the steps of an item."""

_SHOWN = {
    "respond": _ContractView.respond,
    "revise": _ContractView.revise,
    "implement": _ContractView.implement,
    "repair": _ContractView.repair,
    "verify": _ContractView.verify,
    "conflict": _ContractView.conflict,
}
