-- A task is owned by acceptance or by a coordinator's assignment, and free otherwise (acp-canonical
-- §7.2 rule 3). Owners are written anew from the history: what was only offered is free again.
CREATE INDEX handoffs_by_task ON handoffs (task_id);

-- Whom a coordinator last assigned, and when; the teamspace's log has it.
ALTER TABLE tasks ADD COLUMN assigned TEXT;
ALTER TABLE tasks ADD COLUMN assigned_at BIGINT;
UPDATE tasks SET assigned = l.owner,
                 assigned_at = strftime('%s', substr(l.at, 1, 19)) * 1000000 + substr(l.at, 21, 6)
FROM (SELECT team, json_extract(line, '$.task_id') AS task_id, max(seq),
             json_extract(line, '$.owner') AS owner, json_extract(line, '$.at') AS at
      FROM team_log
      WHERE log = 'decisions' AND json_extract(line, '$.event') IN ('createTask', 'assign')
        AND json_extract(line, '$.owner') IS NOT NULL
      GROUP BY 1, 2) AS l
WHERE l.team = tasks.team AND l.task_id = tasks.task_id;

UPDATE tasks SET chain = coalesce(
    (SELECT CASE WHEN EXISTS (SELECT 1 FROM handoff_history AS e
                              WHERE e.handoff_id = h.id AND e.step = 'close')
                 THEN '[]'
                 ELSE json_insert(json_extract(h.provenance_json, '$.handoff_chain'),
                                  '$[#]', h.to_agent) END
     FROM handoffs AS h JOIN handoff_history AS p ON p.handoff_id = h.id AND p.step = 'pass'
     WHERE h.task_id = tasks.task_id AND p.at > coalesce(tasks.assigned_at, 0)
       AND NOT EXISTS (SELECT 1 FROM handoff_history AS e
                       WHERE e.handoff_id = h.id AND e.step = 'revoke')
     ORDER BY p.seq DESC LIMIT 1),
    CASE WHEN assigned IS NULL THEN '[]' ELSE json_array(assigned) END);

-- What is left of an offer that nobody accepted.
DELETE FROM tasks WHERE chain = '[]' AND (team IS NULL OR (
    NOT EXISTS (SELECT 1 FROM handoffs AS h JOIN handoff_history AS p
                  ON p.handoff_id = h.id AND p.step = 'pass'
                WHERE h.task_id = tasks.task_id)
    AND task_id NOT IN (SELECT json_extract(line, '$.task_id') FROM team_log
                        WHERE log = 'decisions'
                          AND json_extract(line, '$.event') = 'createTask')));

-- Whether a handoff that another node holds has ended, as far as that node has said.
ALTER TABLE handoffs_elsewhere ADD COLUMN ended BIGINT NOT NULL DEFAULT 0;
UPDATE handoffs_elsewhere SET ended = 1 WHERE (handoff_id, node) IN (
    SELECT coalesce(json_extract(m.payload_json, '$.handoff_id'),
                    json_extract(m.payload_json, '$.details.handoff_id')), s.node
    FROM messages AS m JOIN mail_sources AS s ON s.message_id = m.id
    WHERE m.type IN ('handoff.reject', 'status.complete'));
