"""The page docs/contracts.md: how contracts move, by trying every step in every state."""

from collections.abc import Iterator
from typing import get_args

from schemas.contract import ContractStatus
from schemas.facts import VersionFact
from server.domain import contract as domain
from server.domain import contract_steps as steps
from server.domain.contract import Facts
from server.domain.contract_steps import ALLOWED, Party

AUTHOR = Party("backend-api", "aid://example.com/backend@1.0.0")
OTHER = Party("frontend-app", "aid://example.com/frontend@1.0.0")
THIRD = Party("mobile-app", "aid://example.com/mobile@1.0.0")
PARTIES = (AUTHOR, OTHER, THIRD)

STEPS = {
    "agree": "contract/respond agree, by another party",
    "request_change": "contract/respond request_change, by any repo of the project",
    "reject": "contract/respond reject, by a party",
    "agree by who asked": "contract/respond agree, by the party that asked for the change",
    "agree by another": "contract/respond agree, by another party",
    "reject by who asked": "contract/respond reject, by the party that asked for the change",
    "reject by another": "contract/respond reject, by another party, also the author",
    "update": "contract/update, by any repo of the project",
    "start": "implementation/start, by a party",
    "complete": "implementation/complete, by the last party",
    "verify success": "implementation/verify success, by a party",
    "verify failure": "implementation/verify failure",
    "verify partial": "implementation/verify partial",
}

INTRO = """# How contracts move

A contract is a set of facts, each written by one agent: versions of its content, responses,
rounds of implementation, implementations, verifications and receipts. Its status is computed from
the facts for the current version. It is the same on every node, in whatever order the facts arrive.

- **Parties** must agree and implement. Each version fixes them: the repos that it names, else all
  repos of the project at that time.
- **Agreement is bound to content**: to the version and the SHA-256 of its canonical JSON (RFC
  8785). An update voids earlier responses. Send `version` with a response or an update, and it is
  refused if the contract has moved on (`stale_version`).
- **Only a party** writes the next version. Others can request a change.
- **The author** of the current version can't agree to it while there is another party.
- **One other party's agreement** suffices; a project created with `agreementPolicy: all` needs
  all of them. Later agreements are recorded and change nothing.
- **A request for a change stands** until its author agrees or, as a party, rejects. A rejection
  stands until the party that made it responds otherwise. An update voids both. Responses of
  others are recorded but don't settle the contract. The version's author, and repos that are not
  parties, withdraw their request by agreeing; that agreement has no other effect.
- **`status` in the result of an agreement** is `agreed` only if the contract is agreed or
  further. Otherwise the agreement is recorded, and `status` is the contract's: `negotiating` or
  `proposed`. The results of a request and a rejection have `change_requested` and `rejected`.
- **A repeated step** is not an error: in any state it returns the contract as it is now and
  writes nothing. That holds for responses, starts, completions and verifications. A repeated
  proposal or update creates another one, unless it has the same `Idempotency-Key`.
- **A failed verification** opens a new round: the contract is agreed again, and implementations
  need revision. Another failure before work has restarted is recorded in the same round.
- **Roles**: a party provides (serves, emits), consumes (calls, reads), or both: `roles` of
  `contract/propose` and `update`, by repo. Where none is named they follow from the repos' roles:
  a backend provides, of data models a shared repo, of configurations an infra repo. The answer
  tells which hold.
- **What verifies** a version is the project's `verificationPolicy` when it was written. `word`:
  `implementation/verify success` by a party, as the table below shows. `receipt`: a runner's
  receipt for each provider; `receipt_both`: for each consumer too. `independent` and
  `independent_both`: the same, of runners that are not the agents that built it. Then a success
  without a receipt is recorded, verifies nothing, and says so (`recorded`). What a receipt must be
  of, and who is believed: [proof.md](proof.md).
- **A foreign peer** sends states instead of steps, so its rejection counts in every state.
- **A version that lost a race** is kept: `cacp/contract/conflicts` lists it with both contents.

An illegal step is refused with `data.reason` `illegal_transition`, the current state (`from`) and
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
            # Who asked for the change matters only in the state that a request leads to.
            if step in ("agree", "reject") and status == "negotiating":
                continue
            if " by " in step and status != "negotiating":
                continue
            if status in ALLOWED[step.split()[0]]:  # type: ignore[index]
                yield (status, step), domain.status_of(_after(facts, step))


def _in(status: ContractStatus) -> Facts:
    """The facts of a contract of three parties in this state."""
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
        return domain.join(facts, [steps.respond(facts, who, action, stamp)])  # type: ignore[arg-type]
    if action == "update":
        parties = domain.current_of(facts).parties
        return domain.join(facts, [steps.update(facts, AUTHOR, {}, f"next{stamp}", parties, stamp)])
    if action == "verify":
        return domain.join(facts, steps.verify(facts, OTHER, result, stamp))  # type: ignore[arg-type]
    if action == "start":
        return domain.join(facts, [steps.implement(facts, OTHER, "in_progress", stamp)])
    works = [steps.implement(facts, who, "complete", stamp) for who in PARTIES]
    return domain.join(facts, works)
