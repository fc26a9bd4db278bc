-- The runs of the threader that report to this node: what each said last. `agent` is the address of
-- the agent that reports it.
CREATE TABLE thread_runs (
    project_id  TEXT NOT NULL,
    agent       TEXT NOT NULL,
    run_id      TEXT NOT NULL,
    agent_id    TEXT NOT NULL,
    status      TEXT NOT NULL,
    started_at  TEXT NOT NULL,
    reported_at BIGINT NOT NULL,
    body        TEXT NOT NULL,
    PRIMARY KEY (project_id, agent, run_id)
);
CREATE INDEX thread_runs_reported ON thread_runs (reported_at, run_id);
