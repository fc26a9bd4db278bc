"""The page docs/handoffs.md: how handoffs work, with the tables that the node itself uses."""

from collections.abc import Iterator

from server.domain.acp.handoff import MOVES
from server.domain.acp.teams import MATRIX, ROLES

INTRO = """# Handoffs and teamspaces

An agent hands work to another with `acp/handoff`. The package (acp-canonical §7.1) describes the
task, its progress and the next step. The node stores it whole, with the history of every step.
Each step is reported to the other side by a message in the handoff's thread (`handoff.initiate`,
`handoff.accept`, `handoff.reject`, `handoff.complete`, else `status.*`).

```json
{"action": "initiate", "to": "aid://example.com/frontend", "reason": "End of shift", "package": {
  "task": {"task_id": "login-1", "title": "Login by token", "objective": "Users sign in by token",
           "success_criteria": ["the login tests pass"], "priority": "normal"},
  "context": {"summary": "The server side is done."},
  "work_state": {"status": "in_progress", "next_step": "Write the client."},
  "artifacts": [],
  "provenance": {"origin_session": "session-1"},
  "policy": {"classification": "internal", "requires_human_approval": false}}}
```

With this in a file, `cacp call acp/handoff - < handoff.json` calls it.

The receiver reads it with `{"action": "get", "handoff_id": "…"}`, then `accept`s it, or `reject`s
it with a `code` and a `detail`, and `complete`s it with a `summary`. The sender `close`s it. Each
result has a `nextStep` for the caller. `list` shows the caller's handoffs, and as `elsewhere`
those that another node holds.

- **The node fills in** `handoff_id` (or accepts a UUIDv7 from the sender, which makes a repeated
  call idempotent), `thread_id`, `provenance.handoff_chain` and `verification`. The hash is the
  SHA-256 of the canonical JSON (RFC 8785) without `package_hash`. Send `package_hash` with
  `accept` to refuse any package other than the one you read. A `handoff_chain` in the package
  must be empty or the derived one: the task's owners in order, the sender last. Otherwise
  `chain_differs` names the position and the expected value.
- **A task has one owner and one handoff at a time.** The owner is whoever accepted the handoff,
  or whom the coordinator of a teamspace assigned (`assign`). An earlier owner can't receive the
  task again (`handoff_cycle`) until it is assigned again. Task ids are scoped to the node: a
  caller without a part in the task gets `ownership_conflict`, which does not name the owner.
- **An open offer reserves its task.** Once a handoff is withdrawn, rejected or closed, the task
  id is free, unless somebody accepted the task and still owns it: a receiver whose own handing-on
  was rejected, or one that completed it and waits for `close`. Tasks of a teamspace belong to it
  until it is closed.
- **Offers expire.** An offer that is not accepted within `CACP_HANDOFF_OFFER_SECONDS` (three
  days; its `dueAt`) is rejected with the code `timeout_risk`, and both sides get a message. Until
  then `{"action": "list", "role": "coordinator", "status":
  "proposed"}` lists open offers outside teamspaces to their coordinators, who can end one with
  `reject`, a `code` and a `detail`. `ownership_conflict` names whom to `ask`.
- **Coordinators** of a teamspace are its members with that role. Outside teamspaces they are
  callers with the operator's key, with a key of `cacp keys create --human` (except for restricted
  handoffs), or with the key of an agent of `CACP_ACP_COORDINATORS`. They read, reject, close and
  revoke the handoffs of others. A program of the node's machine that calls without a key is the
  node's own agent: it sees only handoffs to which that agent is a party. The operator on that
  machine calls `cacp call --operator acp/handoff action=list role=coordinator`
  ([SECURITY.md](../SECURITY.md#programs-on-the-nodes-machine)).
- **Handing on**: the owner calls `initiate` for the same task. Its own handoff is closed, and
  resumes (`restore`) if the new one is rejected or revoked.
- **Drafts**: `initiate` with `"draft": true` validates and stores the package, `propose` sends
  it. Both count against the sender's limit of direct messages; no other step does.
- **Before acceptance** the node checks schema, hash, `export_restrictions`, approvals and
  artifacts. Until then the handoff is `validating`, and `waitsFor` lists what is missing. Both
  sides get a message with the outcome.
- **Artifacts**: the path of a `file` is absolute; `teamspace://` is refused (§6). A `file` with a
  `sha256` is compared under `CACP_ARTIFACT_ROOTS` and must exist unless it has
  `"required": false`. Without a hash it must exist only if it has `"required": true`. A link or a
  path outside the roots is a `policy_violation`. Without roots, files are marked `unchecked`.
- **Evidence**: `work_state.test_evidence` shows that `test_status: passing` is more than word, by
  commands that the receiver runs again (`cacp handoff check ID`) or by receipts. With
  `CACP_HANDOFF_EVIDENCE=checked` the agents of a node accept such a package only when its evidence
  holds there; until then `accept` is refused with a reason that begins with `evidence_`
  ([proof.md](proof.md#evidence-in-handoffs)).
- **Humans**: with `requires_human_approval` a handoff waits for `acp/approve` with its id (or
  action `approve`) by a key of `cacp keys create --human`, of the node that holds it or of a node
  in `CACP_ACP_HUMAN_NODES` ([acp-mesh.md](acp-mesh.md#handoffs)).
- **Time**: a handoff that is accepted but not completed within `CACP_HANDOFF_SLA_SECONDS` is
  escalated once: `status.blocked` to the coordinators of its teamspace, else to
  `CACP_ACP_COORDINATORS`, else to the node's own agent. A coordinator may `revoke` it, which
  returns the task to its previous owner or, if there is none, frees it.
- **workq**: items in `task.external_refs` are released and claimed at `CACP_WORKQ_URL` after the
  acceptance, with retries. `workq` in the result is `pending`, `transferred`, or `manual`:
  transfer it by hand. `cacp_workq_manual` in `/metrics` counts these. A revocation transfers them
  back.
- **Across nodes** handoffs work the same way: the node where it was initiated holds the handoff,
  and the receiver's node forwards each step to it ([acp-mesh.md](acp-mesh.md#handoffs)). While
  the holding node is down, steps are refused with `node_away`.
"""

TEAMS = """## Teamspaces

`acp/team` creates a teamspace (`create`; its creator is the first coordinator), adds members and
tasks, and keeps five logs: messages, handoffs, roles, decisions and artifacts. With
`CACP_TEAMSPACES_ROOT` they are also written as JSONL to `ROOT/TEAM/`; `log` reads them. Only
members see a teamspace. For a restricted handoff the logs record the steps without their text.

A handoff of a teamspace's task belongs to the teamspace. If its sender is not a member, it waits
for `approve` by a member whose role allows it, on whichever node that member has its home.
"""


def page() -> Iterator[str]:
    """The page, in pieces."""
    yield INTRO
    yield "## The states\n"
    yield "```mermaid\nstateDiagram-v2\n    [*] --> draft: initiate"
    for move in MOVES:
        yield f"    {move.before} --> {move.after}: {move.step}"
    yield "    rejected --> [*]\n    closed --> [*]\n```\n"
    yield "| in state | step | by | then | |\n|---|---|---|---|---|"
    for move in MOVES:
        by = ", ".join(move.by)
        yield f"| {move.before} | {move.step} | {by} | {move.after} | {move.about} |"
    yield "\n`initiate` drafts and proposes in one step; `complete` also activates.\n"
    yield TEAMS
    yield f"| | {' | '.join(ROLES)} |\n|---|{'---|' * len(ROLES)}"
    for shown, grants in MATRIX.values():
        yield f"| {shown} | {' | '.join(grants)} |"
    yield (
        "\nGuarded classes are handoffs that are `restricted` or require human approval. High\n"
        "risk are tasks created as such, and handoffs that are `restricted` or `critical`."
    )
