"""The page docs/contracts.md: how contracts move, found by playing every step from every state."""

from collections.abc import Iterator
from typing import get_args

from schemas.contract import ContractStatus
from schemas.facts import VersionFact
from server.domain import contract as domain
from server.domain.contract import ALLOWED, Facts, Party

AUTHOR = Party("backend-api", "aid://example.com/backend@1.0.0")
OTHER = Party("frontend-app", "aid://example.com/frontend@1.0.0")
THIRD = Party("mobile-app", "aid://example.com/mobile@1.0.0")
PARTIES = (AUTHOR, OTHER, THIRD)

STEPS = {
    "agree": "contract/respond agree, by another party",
    "request_change": "contract/respond request_change, by any repo of the project",
    "reject": "contract/respond reject, by a party",
    "agree by who asked": "contract/respond agree, by the party that asked for the change",
    "agree by another": "contract/respond agree, by a party that did not",
    "reject by who asked": "contract/respond reject, by the party that asked for the change",
    "reject by another": "contract/respond reject, by a party that did not, its author too",
    "update": "contract/update, by any repo of the project",
    "start": "implementation/start, by a party",
    "complete": "implementation/complete, by the last party",
    "verify success": "implementation/verify success, by a party",
    "verify failure": "implementation/verify failure",
    "verify partial": "implementation/verify partial",
}

INTRO = """# How contracts move

A contract is a set of facts, each written by one agent: versions of its content, responses, rounds
of implementation, implementations and verifications. Its status is never stored as such: it follows
from the facts for the current version, the same on every node, in whatever order they arrive.

- **Parties** must agree and implement. They are frozen into each version: the repos that it names,
  else all repos of the project at that time.
- **Agreement is bound to content**: to the version and the SHA-256 of its canonical JSON (RFC
  8785). An update voids what was said before. Send `version` with a response or an update, and it
  is refused when the contract has moved on meanwhile (`stale_version`).
- **Only a party** writes the next version; who is none asks for a change.
- **The author** of the current version can't agree to it while there is another party.
- **One other party** suffices; a project made with `agreementPolicy: all` asks for every one. The
  others may agree later: that is recorded, and moves nothing.
- **A request for a change stands** until who made it agrees, or, as a party, rejects instead, and a
  rejection until the party that made it says otherwise; an update voids both. What others say
  meanwhile is recorded, and does not settle the contract. Who is no party, and the author, take a
  request of theirs back by agreeing; their agreement counts for no more than that.
- **`status` in the answer to an agreement** is `agreed` only when the contract is agreed, or
  further. Otherwise the agreement is recorded, and `status` is the contract's: `negotiating` or
  `proposed`. The answers to a request and to a rejection say `change_requested` and `rejected`.
- **A retry** is no step: who says again what stands already is answered as the contract is now, in
  whichever state, and nothing is written. That holds for responses, starts, completions and
  verifications; a second proposal or update is one more, unless it has the first one's
  `Idempotency-Key`.
- **A failed verification** opens a new round: back to agreed, implementations need revision. A
  failure that comes after it, before anybody has begun anew, is recorded with it.
- **A foreign peer** tells of states, not of steps: its rejection counts in every state.
- **A version that lost a race** stays: `cacp/contract/conflicts` lists it with both contents.

An illegal step is refused with `data.reason` `illegal_transition`, the state it is in (`from`) and
what is `allowed`.
"""


def page() -> Iterator[str]:
    """The page, in pieces."""
    yield INTRO
    yield "```mermaid\nstateDiagram-v2\n    [*] --> proposed: contract/propose"
    moves = dict(_moves())
    for (status, step), after in moves.items():
        if after != status:
            yield f"    {status} --> {after}: {step}"
    yield "```\n"
    yield "| in state | step | then |\n|---|---|---|"
    for (status, step), after in moves.items():
        yield f"| {status} | {STEPS[step]} | {after} |"


def _moves() -> Iterator[tuple[tuple[ContractStatus, str], ContractStatus]]:
    for status in get_args(ContractStatus):
        facts = _in(status)
        for step in STEPS:
            # Who asked for the change counts in the one state that a request leads to.
            if step in ("agree", "reject") and status == "negotiating":
                continue
            if " by " in step and status != "negotiating":
                continue
            if status in ALLOWED[step.split()[0]]:  # type: ignore[index]
                yield (status, step), domain.status_of(_after(facts, step))


def _in(status: ContractStatus) -> Facts:
    """A contract of three parties that has come to this state."""
    first = VersionFact(
        version=1,
        digest="first",
        content={},
        repo_id=AUTHOR.repo_id,
        agent_id=AUTHOR.agent_id,
        parties=tuple(who.repo_id for who in PARTIES),
        policy="any",
        stamp=1,
    )
    facts: Facts = {(first.kind, first.key): first}
    if status == "negotiating":
        return _after(facts, "request_change")
    for step in ("agree", "complete", "verify success"):
        if domain.status_of(facts) == status:
            break
        facts = _after(facts, step)
    return facts


def _after(facts: Facts, step: str) -> Facts:
    stamp = domain.updated_at(facts) + 1
    action, _, result = step.partition(" ")
    if action in ("agree", "request_change", "reject"):
        who = OTHER
        if result == "by another":
            who = AUTHOR if action == "reject" else THIRD
        return domain.join(facts, [domain.respond(facts, who, action, stamp)])  # type: ignore[arg-type]
    if action == "update":
        parties = domain.current_of(facts).parties
        return domain.join(
            facts, [domain.update(facts, AUTHOR, {}, f"next{stamp}", parties, stamp)]
        )
    if action == "verify":
        return domain.join(facts, domain.verify(facts, OTHER, result, stamp))  # type: ignore[arg-type]
    if action == "start":
        return domain.join(facts, [domain.implement(facts, OTHER, "in_progress", stamp)])
    works = [domain.implement(facts, who, "complete", stamp) for who in PARTIES]
    return domain.join(facts, works)
