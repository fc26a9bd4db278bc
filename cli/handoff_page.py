"""The page docs/handoffs.md: how work changes hands, with the table that the node itself uses."""

from collections.abc import Iterator

from server.domain.acp.handoff import MOVES
from server.domain.acp.teams import MATRIX, ROLES

INTRO = """# Handoffs and teamspaces

An agent hands work on with `acp/handoff`: the package (acp-canonical §7.1) says what is to be done,
how far it is and what comes next; the node keeps it whole, and keeps the history of every step. The
other side gets a message of the handoff's thread for each step (`handoff.initiate`,
`handoff.accept`, `handoff.reject`, `handoff.complete`, else `status.*`), which names the handoff.

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

The receiver reads it with `{"action": "get", "handoff_id": "…"}`, then `accept`s it or `reject`s it
with a `code` and a `detail`, and `complete`s it with a `summary`; the sender `close`s it. Each
answer has a `nextStep` that says what the caller may do now. `list` shows one's handoffs, and
`elsewhere` those that another node holds.

- **The node fills in** `handoff_id` (or takes a UUIDv7 of the sender's, so that a repeated call is
  one handoff), `thread_id`, `provenance.handoff_chain` and `verification`. The hash is SHA-256 of
  the canonical JSON (RFC 8785) without `package_hash`. Send `package_hash` with `accept`, and
  another package than the one that was read is refused. A package of §7.1 is taken as it stands:
  a `handoff_chain` that is not empty must be the derived one, the task's owners in order with the
  sender last; else the refusal (`chain_differs`) says at which place, and what is expected there.
- **A task has one owner and one handoff at a time.** Who accepts a handoff owns the task, or whom
  the coordinator of a teamspace has made its owner (`assign`). Who owned it before can't get it
  again (`handoff_cycle`) before it is assigned anew. Task ids are the node's: who has no part in a
  task that has the id gets `ownership_conflict`, and not whose it is.
- **An offer takes a task only while it stands.** Once a handoff is withdrawn, rejected or closed,
  the id is free for anyone, unless somebody accepted the task and owns it still: who handed it on
  and was rejected, or completed it and was not yet told that the work is taken (`close`). The tasks
  of a teamspace stay the teamspace's until it is closed.
- **No offer stands for ever.** One that is not accepted within `CACP_HANDOFF_OFFER_SECONDS` (three
  days; its `dueAt`) expires: it is rejected with the code `timeout_risk`, and both sides are told.
  Before that `{"action": "list", "role": "coordinator", "status": "proposed"}` lists what stands
  outside of teamspaces to `CACP_ACP_COORDINATORS`, else to the node's own agent, and to a human's
  key what is not restricted. A coordinator ends it with `reject`, a `code` and a `detail`: over
  loopback the operator, as the node's own agent, where no other is named. Who gets
  `ownership_conflict` is told whom to `ask`.
- **Handing on**: an owner calls `initiate` for the same task. The handoff that it came by is
  closed; should the new one be rejected or revoked, it goes on (`restore`).
- **Drafts**: `initiate` with `"draft": true` only checks and keeps the package, `propose` sends it.
  Both count for the sender's limit of direct messages; no other step does.
- **Before it is accepted** the node checks schema, hash, `export_restrictions`, approvals and
  artifacts. While something is missing it is `validating`, and `waitsFor` says what for. Both sides
  are told of the outcome.
- **Artifacts**: the path of a `file` is absolute, and `teamspace://` is refused (§6). A `file` with
  a `sha256` is compared under `CACP_ARTIFACT_ROOTS`, and must be there unless it has
  `"required": false`; without a hash it is looked for only if it is `"required": true`. A link
  or a path outside of the roots is a `policy_violation`. Without roots files are `unchecked`, and
  say so.
- **Humans**: with `requires_human_approval` a handoff waits for `acp/approve` with its id (or
  action `approve`) by a key of `cacp keys create --human`: one of the node that holds it, or of a
  node whose word on that it takes (`CACP_ACP_HUMAN_NODES`; [acp-mesh.md](acp-mesh.md#handoffs)).
- **Time**: accepted and not completed within `CACP_HANDOFF_SLA_SECONDS`, a handoff is escalated
  once: `status.blocked` to the coordinators of its teamspace, else to `CACP_ACP_COORDINATORS`, else
  to the node's own agent. They may `revoke` it: who owned the task before the handoff has it again;
  without such an owner it is free.
- **workq**: items among `task.external_refs` are released and claimed at `CACP_WORKQ_URL` after the
  acceptance, and tried again while it doesn't answer. `workq` in the answer is `pending`,
  `transferred`, or `manual`: move it by hand. `cacp_workq_manual` in `/metrics` counts these. A
  revocation has them moved back.
- **Over two nodes** it goes the same way: the node where it was initiated holds the handoff, and
  the receiver's node brings it each step ([acp-mesh.md](acp-mesh.md#handoffs)). While it can't be
  asked, a step is refused with `node_away`.
"""

TEAMS = """## Teamspaces

`acp/team` makes a teamspace (`create`; who makes it is its first coordinator), adds members and
tasks, and keeps five logs: messages, handoffs, roles, decisions and artifacts. With
`CACP_TEAMSPACES_ROOT` they are written as JSONL to `ROOT/TEAM/` too; `log` reads them. Nobody but a
member sees a teamspace. Of a restricted handoff the logs have the steps, not the words.

A handoff of a teamspace's task is the teamspace's. One from somebody who is no member waits for
`approve` by a member who may, wherever it is at home.
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
    yield "\n`initiate` drafts and proposes in one; `complete` activates what is only accepted.\n"
    yield TEAMS
    yield f"| | {' | '.join(ROLES)} |\n|---|{'---|' * len(ROLES)}"
    for shown, grants in MATRIX.values():
        yield f"| {shown} | {' | '.join(grants)} |"
    yield (
        "\nGuarded classes are handoffs that are `restricted` or require human approval. Of high\n"
        "risk is a task that was made so, and a handoff that is `restricted` or `critical`."
    )
