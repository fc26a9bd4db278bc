-- What waits on contracts and questions, and for whom (design-next N1): derived from facts and packets
-- in the transaction that changes them. `repo_id` is empty for all repos of the project but `not_repo`;
-- `not_agent` is empty, or who can't take the step. `revision` is the newest change before the last
-- write of the subject. A start fills the tables when `attention_rules` in `meta` is not that of the
-- release.
CREATE TABLE attention_openings (
    project_id TEXT NOT NULL,
    subject_id TEXT NOT NULL,
    item_id    TEXT NOT NULL,
    kind       TEXT NOT NULL,
    urgency    TEXT NOT NULL,
    since      BIGINT NOT NULL,
    repo_id    TEXT NOT NULL,
    not_repo   TEXT NOT NULL,
    not_agent  TEXT NOT NULL,
    revision   BIGINT NOT NULL,
    PRIMARY KEY (project_id, subject_id, item_id)
) WITHOUT ROWID;
CREATE INDEX attention_by_repo ON attention_openings (project_id, repo_id);

-- How many there are of each kind in a project.
CREATE TABLE attention_counts (
    project_id TEXT NOT NULL,
    kind       TEXT NOT NULL,
    open       BIGINT NOT NULL,
    PRIMARY KEY (project_id, kind)
) WITHOUT ROWID;

-- Messages of type knowledge.query to which nobody but their sender has replied.
CREATE TABLE unanswered_queries (
    message_id TEXT PRIMARY KEY REFERENCES messages (id) ON DELETE CASCADE
);
INSERT INTO unanswered_queries (message_id)
SELECT q.id FROM messages AS q
WHERE q.type = 'knowledge.query' AND NOT EXISTS (
    SELECT 1 FROM messages AS r
    WHERE r.type <> 'knowledge.query' AND r.from_agent <> q.from_agent
      AND (r.reply_to = q.id OR (r.type = 'knowledge.response'
                                 AND json_extract(r.payload_json, '$.query_id') = q.id)));

-- The message that offered a handoff of another node, and the last status of the handoff that its node
-- has reported; both are NULL for offers from before.
ALTER TABLE handoffs_elsewhere ADD COLUMN offer TEXT;
ALTER TABLE handoffs_elsewhere ADD COLUMN status TEXT;
CREATE INDEX handoffs_elsewhere_by_recipient ON handoffs_elsewhere (recipient);

CREATE INDEX messages_replies ON messages (reply_to) WHERE reply_to IS NOT NULL;

CREATE INDEX repos_without_agent ON repos (name) WHERE agent_id IS NULL;
CREATE INDEX repos_by_agent ON repos (agent_id) WHERE agent_id IS NOT NULL;
CREATE INDEX claim_conflicts_by_agent ON claim_conflicts (agent_id);
CREATE INDEX handoffs_open_to ON handoffs (to_agent)
    WHERE status IN ('proposed', 'validating', 'accepted', 'activated');
CREATE INDEX handoffs_open_from ON handoffs (from_agent) WHERE status IN ('draft', 'completed');
CREATE INDEX handoff_control_by_team ON handoff_control (team) WHERE team IS NOT NULL;
