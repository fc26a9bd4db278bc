-- Handoffs that another node holds (acp-canonical §7.2 rule 3): what was offered to whom by a
-- `handoff.initiate` from that node. Agents and nodes without a version.
CREATE TABLE handoffs_elsewhere (
    handoff_id TEXT NOT NULL,
    recipient  TEXT NOT NULL,
    task_id    TEXT,
    node       TEXT NOT NULL,
    PRIMARY KEY (handoff_id, recipient)
);
CREATE INDEX handoffs_elsewhere_by_task ON handoffs_elsewhere (task_id, recipient);
