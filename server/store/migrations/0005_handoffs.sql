-- Handoffs, tasks and teamspaces (acp-canonical §7, §8, §9).

-- The specification's table, whose times are ISO 8601.
CREATE TABLE IF NOT EXISTS handoffs (
  id                 TEXT PRIMARY KEY,
  thread_id          TEXT NOT NULL,
  task_id            TEXT NOT NULL,
  from_agent         TEXT NOT NULL,
  to_agent           TEXT NOT NULL,
  title              TEXT NOT NULL,
  reason             TEXT NOT NULL,
  package_json       TEXT NOT NULL,
  status             TEXT NOT NULL DEFAULT 'proposed',
  provenance_json    TEXT NOT NULL,
  verification_json  TEXT NOT NULL,
  initiated_at       TEXT NOT NULL DEFAULT (datetime('now','utc')),
  resolved_at        TEXT,
  resolution_notes   TEXT
);

-- Prevent multiple active handoffs on the same task
CREATE UNIQUE INDEX IF NOT EXISTS idx_handoffs_task_active
ON handoffs(task_id)
WHERE status IN ('proposed','validating','accepted','activated');

CREATE INDEX handoffs_by_status ON handoffs (status, id);
CREATE INDEX handoffs_by_sender ON handoffs (from_agent, id);
CREATE INDEX handoffs_by_receiver ON handoffs (to_agent, id);

-- What the node keeps of a handoff beside its package. `draft_digest` is that of what was sent,
-- `previous` the handoff by which the sender got the task, `artifacts` what came of checking them
-- (NULL until they are checked), `due_at` is NULL while no timer runs.
CREATE TABLE handoff_control (
    handoff_id     TEXT PRIMARY KEY REFERENCES handoffs (id),
    draft_digest   TEXT NOT NULL,
    team           TEXT,
    previous       TEXT,
    team_gate      BIGINT NOT NULL,
    team_approval  TEXT,
    human_approval TEXT,
    artifacts      TEXT,
    session_key    TEXT,
    due_at         BIGINT,
    escalated_at   BIGINT,
    workq          TEXT NOT NULL
);
CREATE INDEX handoff_control_manual ON handoff_control (workq) WHERE workq = 'manual';
CREATE INDEX handoff_control_by_due ON handoff_control (due_at) WHERE due_at IS NOT NULL;

-- Every step of every handoff, never changed (§7.2 rule 7).
CREATE TABLE handoff_history (
    seq           INTEGER PRIMARY KEY AUTOINCREMENT,
    handoff_id    TEXT NOT NULL REFERENCES handoffs (id),
    step          TEXT NOT NULL,
    before_status TEXT,
    after_status  TEXT NOT NULL,
    actor         TEXT NOT NULL,
    role          TEXT NOT NULL,
    code          TEXT,
    detail        TEXT,
    at            BIGINT NOT NULL
);
CREATE INDEX handoff_history_by_handoff ON handoff_history (handoff_id, seq);

-- Ownership that is to be moved at workq, until its gateway has answered (§10.4).
CREATE TABLE workq_intents (
    seq         INTEGER PRIMARY KEY AUTOINCREMENT,
    handoff_id  TEXT NOT NULL REFERENCES handoffs (id),
    method      TEXT NOT NULL,
    item        TEXT NOT NULL,
    agent_id    TEXT NOT NULL,
    session_key TEXT,
    status      TEXT NOT NULL,
    attempts    BIGINT NOT NULL,
    not_before  BIGINT NOT NULL,
    error       TEXT
);
CREATE INDEX workq_intents_open ON workq_intents (status, seq);
CREATE INDEX workq_intents_by_handoff ON workq_intents (handoff_id);

CREATE TABLE teamspaces (
    team       TEXT PRIMARY KEY,
    name       TEXT NOT NULL,
    purpose    TEXT NOT NULL,
    status     TEXT NOT NULL,
    created_by TEXT NOT NULL,
    created_at BIGINT NOT NULL,
    closed_at  BIGINT
);

CREATE TABLE team_members (
    team     TEXT NOT NULL REFERENCES teamspaces (team),
    agent_id TEXT NOT NULL,
    role     TEXT NOT NULL,
    PRIMARY KEY (team, agent_id)
);
CREATE INDEX team_members_by_agent ON team_members (agent_id);

-- Who owns a task: the last of `chain`, its owners in order, as JSON; empty while nobody does.
CREATE TABLE tasks (
    task_id      TEXT PRIMARY KEY,
    team         TEXT REFERENCES teamspaces (team),
    title        TEXT NOT NULL,
    kind         TEXT NOT NULL,
    high_risk    BIGINT NOT NULL,
    status       TEXT NOT NULL,
    chain        TEXT NOT NULL,
    block_code   TEXT,
    block_detail TEXT,
    created_by   TEXT NOT NULL,
    created_at   BIGINT NOT NULL
);
CREATE INDEX tasks_by_team ON tasks (team, task_id);

-- The logs of §8.2, never changed: role ledger, decisions, registry of artifacts, handoffs, messages.
-- The files under the teamspaces' root are copied from here.
CREATE TABLE team_log (
    seq  INTEGER PRIMARY KEY AUTOINCREMENT,
    team TEXT NOT NULL REFERENCES teamspaces (team),
    log  TEXT NOT NULL,
    line TEXT NOT NULL
);
CREATE INDEX team_log_by_log ON team_log (team, log, seq);
