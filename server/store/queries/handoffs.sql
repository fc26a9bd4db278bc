-- name: insert_handoff(id, thread_id, task_id, from_agent, to_agent, title, reason, package_json, status, provenance_json, verification_json, initiated_at)!
INSERT INTO handoffs (id, thread_id, task_id, from_agent, to_agent, title, reason, package_json,
                      status, provenance_json, verification_json, initiated_at)
VALUES (:id, :thread_id, :task_id, :from_agent, :to_agent, :title, :reason, :package_json,
        :status, :provenance_json, :verification_json, :initiated_at);

-- name: insert_handoff_control(handoff_id, draft_digest, team, previous, team_gate)!
INSERT INTO handoff_control (handoff_id, draft_digest, team, previous, team_gate, workq)
VALUES (:handoff_id, :draft_digest, :team, :previous, :team_gate, 'none');

-- name: put_handoff_package(id, package_json, provenance_json, verification_json)!
UPDATE handoffs SET package_json = :package_json, provenance_json = :provenance_json,
                    verification_json = :verification_json
WHERE id = :id AND status = 'draft';

-- name: put_handoff_plan(id, previous, team_gate)!
UPDATE handoff_control SET previous = :previous, team_gate = :team_gate WHERE handoff_id = :id;

-- name: put_handoff_status(id, status, resolved_at, resolution_notes)!
UPDATE handoffs SET status = :status, resolved_at = :resolved_at,
                    resolution_notes = :resolution_notes
WHERE id = :id;

-- name: handoff(id)^
SELECT h.id, h.thread_id, h.task_id, h.from_agent, h.to_agent, h.title, h.reason, h.package_json,
       h.status, h.verification_json, h.initiated_at, h.resolved_at, h.resolution_notes,
       c.draft_digest, c.team, c.previous, c.team_gate, c.team_approval, c.human_approval,
       c.artifacts, c.session_key, c.due_at, c.escalated_at, c.workq
FROM handoffs h JOIN handoff_control c ON c.handoff_id = h.id WHERE h.id = :id;

-- name: active_handoff(task_id)$
SELECT id FROM handoffs
WHERE task_id = :task_id AND status IN ('proposed', 'validating', 'accepted', 'activated');

-- name: grants_of_task(task_id)
-- Acceptances since the last assignment of the task, the newest first, and the step that ended each.
SELECT h.provenance_json, h.to_agent,
       (SELECT e.step FROM handoff_history AS e
        WHERE e.handoff_id = h.id AND e.step IN ('close', 'revoke'))
FROM handoffs AS h JOIN handoff_history AS p ON p.handoff_id = h.id AND p.step = 'pass'
WHERE h.task_id = :task_id
  AND p.at > coalesce((SELECT t.assigned_at FROM tasks AS t WHERE t.task_id = :task_id), 0)
ORDER BY p.seq DESC;

-- name: handoffs_of(agent, as_sender, as_receiver, as_coordinator, everything, team, task_id, before, limit)
SELECT h.id
FROM handoffs h JOIN handoff_control c ON c.handoff_id = h.id
WHERE h.id < :before
  AND (:everything = 1
       OR (:as_coordinator = 1 AND c.team IS NULL AND h.status <> 'draft')
       OR (:as_sender = 1 AND h.from_agent = :agent)
       OR (:as_receiver = 1 AND h.to_agent = :agent AND h.status <> 'draft'))
  AND (CAST(:team AS TEXT) IS NULL OR c.team = :team)
  AND (CAST(:task_id AS TEXT) IS NULL OR h.task_id = :task_id)
ORDER BY h.id DESC LIMIT :limit;

-- name: handoffs_in_state(agent, as_sender, as_receiver, as_coordinator, everything, team, task_id, status, before, limit)
-- As `handoffs_of`, by the index of states.
SELECT h.id
FROM handoffs h JOIN handoff_control c ON c.handoff_id = h.id
WHERE h.status = :status AND h.id < :before
  AND (:everything = 1
       OR (:as_coordinator = 1 AND c.team IS NULL AND h.status <> 'draft')
       OR (:as_sender = 1 AND h.from_agent = :agent)
       OR (:as_receiver = 1 AND h.to_agent = :agent AND h.status <> 'draft'))
  AND (CAST(:team AS TEXT) IS NULL OR c.team = :team)
  AND (CAST(:task_id AS TEXT) IS NULL OR h.task_id = :task_id)
ORDER BY h.id DESC LIMIT :limit;

-- name: unapproved_handoffs(after, limit)
SELECT h.id FROM handoffs h JOIN handoff_control c ON c.handoff_id = h.id
WHERE h.id > :after AND h.status IN ('proposed', 'validating') AND c.human_approval IS NULL
  AND h.package_json LIKE '%"requires_human_approval":true%'
ORDER BY h.id LIMIT :limit;

-- name: unapproved_count(sender)$
SELECT count(*) FROM handoffs h JOIN handoff_control c ON c.handoff_id = h.id
WHERE h.from_agent = :sender AND h.status IN ('proposed', 'validating')
  AND c.human_approval IS NULL AND h.package_json LIKE '%"requires_human_approval":true%';

-- name: put_handoff_session(id, session_key)!
UPDATE handoff_control SET session_key = :session_key WHERE handoff_id = :id;

-- name: put_human_approval(id, agent)!
UPDATE handoff_control SET human_approval = :agent WHERE handoff_id = :id;

-- name: put_team_approval(id, agent)!
UPDATE handoff_control SET team_approval = :agent WHERE handoff_id = :id;

-- name: put_artifact_checks(id, artifacts)!
UPDATE handoff_control SET artifacts = :artifacts WHERE handoff_id = :id;

-- name: put_due(id, due_at)!
UPDATE handoff_control SET due_at = :due_at WHERE handoff_id = :id;

-- name: put_escalated(id, at)!
UPDATE handoff_control SET escalated_at = :at WHERE handoff_id = :id;

-- name: put_workq(id, status)!
UPDATE handoff_control SET workq = :status WHERE handoff_id = :id;

-- name: handoffs_due(now)
SELECT handoff_id FROM handoff_control
WHERE due_at <= :now AND escalated_at IS NULL ORDER BY due_at LIMIT 100;

-- name: handoffs_to_check()
SELECT h.id FROM handoffs h JOIN handoff_control c ON c.handoff_id = h.id
WHERE h.status = 'validating' AND c.artifacts IS NULL ORDER BY h.id LIMIT 100;

-- name: append_handoff_event(handoff_id, step, before_status, after_status, actor, role, code, detail, at)!
INSERT INTO handoff_history
    (handoff_id, step, before_status, after_status, actor, role, code, detail, at)
VALUES (:handoff_id, :step, :before_status, :after_status, :actor, :role, :code, :detail, :at);

-- name: handoff_events(handoff_id)
SELECT seq, step, before_status, after_status, actor, role, code, detail, at
FROM handoff_history WHERE handoff_id = :handoff_id ORDER BY seq;

-- name: insert_workq_intent(handoff_id, method, item, agent_id, session_key, status)!
INSERT INTO workq_intents
    (handoff_id, method, item, agent_id, session_key, status, attempts, not_before)
VALUES (:handoff_id, :method, :item, :agent_id, :session_key, :status, 0, 0);

-- name: open_workq_intents(now)
-- Only the first call of each handoff: items must be released before they are claimed.
SELECT seq, handoff_id, method, item, agent_id, session_key, attempts FROM workq_intents AS one
WHERE status = 'pending' AND not_before <= :now
  AND NOT EXISTS (SELECT 1 FROM workq_intents AS other
                  WHERE other.handoff_id = one.handoff_id AND other.status = 'pending'
                    AND other.seq < one.seq)
ORDER BY seq LIMIT 20;

-- name: put_workq_intent(seq, status, attempts, not_before, error)!
UPDATE workq_intents SET status = :status, attempts = :attempts, not_before = :not_before,
                         error = :error
WHERE seq = :seq;

-- name: give_up_workq(handoff_id)!
UPDATE workq_intents SET status = 'manual' WHERE handoff_id = :handoff_id AND status = 'pending';

-- name: workq_left(handoff_id)$
SELECT count(*) FROM workq_intents WHERE handoff_id = :handoff_id AND status = 'pending';

-- name: workq_manual()$
SELECT count(*) FROM handoff_control WHERE workq = 'manual';

-- name: insert_handoff_elsewhere(handoff_id, recipient, task_id, node, offer)!
INSERT INTO handoffs_elsewhere (handoff_id, recipient, task_id, node, offer, status)
VALUES (:handoff_id, :recipient, :task_id, :node, :offer, 'proposed')
ON CONFLICT DO NOTHING;

-- name: put_status_elsewhere(handoff_id, node, status)!
UPDATE handoffs_elsewhere SET status = :status
WHERE handoff_id = :handoff_id AND node = :node AND coalesce(status, '') <> :status;

-- name: end_handoff_elsewhere(handoff_id, node)!
UPDATE handoffs_elsewhere SET ended = 1
WHERE handoff_id = :handoff_id AND node = :node AND ended = 0;

-- name: handoff_elsewhere(handoff_id, recipient)$
SELECT node FROM handoffs_elsewhere WHERE handoff_id = :handoff_id AND recipient = :recipient;

-- name: handoffs_elsewhere_of(recipient, task_id, before, limit)
SELECT handoff_id, task_id, node FROM handoffs_elsewhere AS e
WHERE recipient = :recipient AND handoff_id < :before
  AND (CAST(:task_id AS TEXT) IS NULL OR task_id = :task_id)
  AND NOT EXISTS (SELECT 1 FROM handoffs AS h WHERE h.id = e.handoff_id)
ORDER BY handoff_id DESC LIMIT :limit;

-- name: nodes_offering(handoff_id)
SELECT DISTINCT node FROM handoffs_elsewhere WHERE handoff_id = :handoff_id ORDER BY node;

-- name: task_elsewhere(task_id, recipient)
SELECT handoff_id, task_id, node FROM handoffs_elsewhere
WHERE task_id = :task_id AND recipient = :recipient AND ended = 0
ORDER BY handoff_id DESC;

-- name: put_handoff_check(handoff_id, checked_by, package_hash, commands_json, at)!
INSERT INTO handoff_checks (handoff_id, checked_by, package_hash, commands_json, at)
VALUES (:handoff_id, :checked_by, :package_hash, :commands_json, :at)
ON CONFLICT (handoff_id, checked_by) DO UPDATE
SET package_hash = excluded.package_hash, commands_json = excluded.commands_json,
    at = excluded.at;

-- name: handoff_check(handoff_id, package_hash)^
SELECT checked_by, at, commands_json FROM handoff_checks
WHERE handoff_id = :handoff_id AND package_hash = :package_hash ORDER BY at DESC LIMIT 1;
